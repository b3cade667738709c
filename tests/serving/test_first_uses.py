"""Eight concurrent clients send the first requests to a fresh server."""

import pytest

from tests.attack.first_uses import EVERYTHING, FIRST_USES, failures_of


def test_everything_is_shown_to_eight_clients_at_once() -> None:
    """Each client needs a page whose modules are not loaded yet."""
    assert failures_of(EVERYTHING) == []


@pytest.mark.prove
@pytest.mark.parametrize("repetition", range(10))
@pytest.mark.parametrize("name", FIRST_USES)
def test_one_kind_of_page_is_shown_to_eight_clients_at_once(name: str, repetition: int) -> None:
    """All clients need the same page."""
    assert failures_of(name, repetition) == []
