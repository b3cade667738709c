"""Servers on a simulated database: a fault after each statement in turn, then several at random.

A run is replayed by its seed and its faults, which a failure names.
"""

import logging
from collections.abc import Iterator, Mapping

import pytest

from payment_sandbox.kernel.ids import Ids
from tests.simulation.company import Company
from tests.simulation.database import Fault, Mistake

STATEMENTS: int = 420  # more than a run has without faults
SHARES: int = 40  # of the statements, in the quick tests one of them each
TRIES_MAX: int = 200


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """What servers log about trouble is of no interest."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


def run(seed: int, faults: Mapping[int, Fault], mistake: Mistake | None = None) -> None:
    """Run once; a failure says how to run it again."""
    try:
        Company(seed, faults, mistake).run()
    except AssertionError as failed:
        again = ", ".join(f"{number}: Fault.{fault.name}" for number, fault in faults.items())
        raise AssertionError(f"run({seed}, {{{again}}}): {failed}") from failed


def at_random(seed: int) -> dict[int, Fault]:
    """Some faults."""
    ids, kinds = Ids(seed), list(Fault)
    count = 1 + ids.number("count", 4)
    return {
        1 + ids.number("statement", STATEMENTS): kinds[ids.number("fault", len(kinds))] for _ in range(count)
    }


def test_nothing_goes_wrong_without_faults() -> None:
    """Orders, captures, webhooks and time on three servers that nothing disturbs."""
    for seed in range(5):
        run(seed, {})


@pytest.mark.parametrize("fault", Fault)
def test_a_fault_at_some_statements(fault: Fault) -> None:
    """Each kind at one of forty statements."""
    for number in range(1, STATEMENTS, SHARES):
        run(number, {number: fault})


@pytest.mark.prove
@pytest.mark.timeout(600)
@pytest.mark.parametrize("fault", Fault)
def test_a_fault_at_each_statement(fault: Fault) -> None:
    """Each kind at every one."""
    for number in range(1, STATEMENTS):
        run(number, {number: fault})


@pytest.mark.prove
@pytest.mark.timeout(600)
@pytest.mark.parametrize("part", range(4))
def test_several_faults_at_random(part: int) -> None:
    """Up to four in each run."""
    for seed in range(250 * part, 250 * (part + 1)):
        run(seed, at_random(seed))


@pytest.mark.prove
@pytest.mark.timeout(600)
@pytest.mark.parametrize("mistake", Mistake)
def test_a_planted_mistake_is_noticed(mistake: Mistake) -> None:
    """Each of them, or nobody could trust the other tests."""
    for seed in range(TRIES_MAX):
        try:
            run(seed, at_random(seed), mistake)
        except Exception:  # or memory is such that it cannot be compared
            return
    pytest.fail(f"{mistake} was not noticed")
