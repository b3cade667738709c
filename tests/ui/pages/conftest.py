"""A payer for the pages."""

import pytest

from tests.support.driver import Sandbox
from tests.support.payer import Payer


@pytest.fixture
def payer(live: Sandbox) -> Payer:
    """A customer of a project in mode live, where every method can be paid."""
    return Payer(live)
