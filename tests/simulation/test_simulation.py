"""Servers on a simulated database stay consistent with a fault at any statement, or several random faults.

A failure names the seed and the faults of its run, which replay it.
"""

import logging
from collections.abc import Callable, Iterator, Mapping

import pytest

from payment_sandbox.kernel.ids import Ids
from tests.attack import FULL
from tests.simulation.company import Company, ResettingCompany
from tests.simulation.database import Fault

STATEMENTS: int = 420  # more than in a run without faults
SAMPLE_STEP: int = 40  # the fast tests try every fortieth statement
STACKS: int = 20  # runs of the fast tests
RESETTING: int = 3  # runs with resets in the fast tests
STACK_STATEMENTS: int = 30  # the distance of stacked faults
SHARE: int = 1 if FULL else 9  # of the slow runs, one in so many


@pytest.fixture(autouse=True)
def no_logs() -> Iterator[None]:
    """Silence the servers' logs about faults."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


def run(seed: int, faults: Mapping[int, Fault], kind: type[Company] = Company) -> None:
    """Run a simulation; a failure names the call that replays it."""
    try:
        kind(seed, faults).run()
    except Exception as failed:
        arguments = ", ".join(f"{number}: Fault.{fault.name}" for number, fault in faults.items())
        raise AssertionError(f"run({seed}, {{{arguments}}}, {kind.__name__}): {failed}") from failed


def random_faults(seed: int) -> dict[int, Fault]:
    """Return one to four random faults."""
    ids, kinds = Ids(seed), list(Fault)
    count = 1 + ids.number("count", 4)
    return {
        1 + ids.number("statement", STATEMENTS): kinds[ids.number("fault", len(kinds))] for _ in range(count)
    }


def stacked_faults(seed: int) -> dict[int, Fault]:
    """Return two to six faults that hit the same piece of work and its recovery."""
    ids, kinds = Ids(seed, series=1), list(Fault)
    first, count = 1 + ids.number("statement", STATEMENTS), 2 + ids.number("count", 5)
    return {
        first + ids.number("distance", STACK_STATEMENTS): kinds[ids.number("fault", len(kinds))]
        for _ in range(count)
    }


def test_runs_without_faults() -> None:
    """Servers are consistent in runs without faults."""
    for seed in range(5):
        run(seed, {})


@pytest.mark.parametrize("fault", Fault)
def test_a_fault_at_some_statements(fault: Fault) -> None:
    """Servers are consistent with a fault at every fortieth statement."""
    for number in range(1, STATEMENTS, SAMPLE_STEP):
        run(number, {number: fault})


def test_stacked_faults() -> None:
    """Servers are consistent with several faults that hit the same work and its recovery."""
    for seed in range(STACKS):
        run(seed, stacked_faults(seed))


@pytest.mark.parametrize("faults_of", [lambda seed: {}, random_faults, stacked_faults])
def test_resets_and_restores(faults_of: Callable[[int], dict[int, Fault]]) -> None:
    """Servers are consistent if the project is reset and restored, with and without faults."""
    for seed in range(RESETTING):
        run(seed, faults_of(seed), ResettingCompany)


def test_a_lock_of_a_lost_connection_repeats_no_webhook() -> None:
    """A courier records its attempt before its claim ends, even if a lost connection locks the row."""
    for number in range(60, 80):
        run(334, {number: Fault.UNANSWERED})


def test_a_server_that_paused_sends_no_older_webhook() -> None:
    """A courier that pauses before an attempt sends it only if its claim is still valid."""
    run(79, random_faults(79))
    run(240, stacked_faults(240))


@pytest.mark.prove
@pytest.mark.timeout(600)
@pytest.mark.parametrize("fault", Fault)
def test_a_fault_at_each_statement(fault: Fault) -> None:
    """Servers are consistent with a fault at any single statement; each kind tries other statements."""
    for number in range(1 + list(Fault).index(fault) % SHARE, STATEMENTS, SHARE):
        run(number, {number: fault})


@pytest.mark.prove
@pytest.mark.timeout(600)
@pytest.mark.parametrize("part", range(4))
@pytest.mark.parametrize("faults_of", [random_faults, stacked_faults])
def test_several_faults_at_random(faults_of: Callable[[int], dict[int, Fault]], part: int) -> None:
    """Servers are consistent with up to four random faults, and with stacked faults anywhere."""
    for seed in range(part, 1000, 4 * SHARE):
        run(seed, faults_of(seed))
    for seed in range(part, 200, 4 * SHARE):
        run(seed, faults_of(seed), ResettingCompany)
