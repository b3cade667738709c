"""Eight clients at once are the first that look at a fresh server."""

import pytest

from tests.attack.first_uses import EVERYTHING, FIRST_USES, failures_of


def test_everything_is_shown_to_eight_clients_at_once() -> None:
    """Each loads something that no request has needed before."""
    assert failures_of(EVERYTHING) == []


@pytest.mark.prove
@pytest.mark.parametrize("time", range(10))
@pytest.mark.parametrize("name", FIRST_USES)
def test_one_kind_of_page_is_shown_to_eight_clients_at_once(name: str, time: int) -> None:
    """Each loads the same."""
    assert failures_of(name, time) == []
