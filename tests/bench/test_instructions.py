"""A gate for speed that other load cannot hide."""

from subprocess import CalledProcessError, TimeoutExpired

import pytest

from tests.bench.instructions import Cost, ratios
from tests.support.tools import require

RECORDED = Cost(creation=1.422, read=0.968)
"""Multiples of the instructions of a little application; only a commit of its own raises one, with the reason."""
ALLOWED = Cost(creation=1.05, read=1.12)


@pytest.mark.prove
def test_a_call_costs_no_more_instructions_than_recorded() -> None:
    """A creation and a read cost what they did, as multiples of the calls of a little application."""
    require("valgrind")
    try:
        now = ratios()
    except (CalledProcessError, TimeoutExpired) as problem:
        pytest.skip(f"this system does not let valgrind be controlled: {problem}")
    limits = Cost(*(recorded * allowed for recorded, allowed in zip(RECORDED, ALLOWED, strict=True)))
    assert now.creation <= limits.creation, now
    assert now.read <= limits.read, now
