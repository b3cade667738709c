"""While the disk is full, due commands wait; they run once there is space."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import datetime, timedelta
from itertools import count
from pathlib import Path

import pytest

from payment_sandbox.operations.advance import advance_clock, change_clock
from payment_sandbox.operations.agenda import agenda
from payment_sandbox.operations.create_order import create_order
from payment_sandbox.projects.journal import LoggedFailure
from payment_sandbox.projects.project import Project
from payment_sandbox.projects.store import NotStored
from payment_sandbox.storage.codec import StepsInterrupted
from payment_sandbox.storage.sqlite import WAL_BYTES, StateFile
from tests.storage.full_disk import full
from tests.support.driver import card
from tests.support.projects import stored_registry
from tests.support.state_files import NOON, check_state, snapshot_of

HOURS = 3
LONG = "x" * 1500  # each webhook needs new pages of the file


@contextmanager
def project_with_orders(path: Path) -> Iterator[tuple[StateFile, Project]]:
    """Yield a project whose orders expire after one, two and three hours."""
    file = StateFile(path)
    registry = stored_registry(file, NOON)
    project, _ = registry.create({"clock": "frozen"})
    for hour in range(1, HOURS + 1):
        transaction = {**card(), "expiration_period": f"PT{hour}H"}
        body = {"currency": "EUR", "amount": 5, "client": {}, "transactions": [transaction]}
        create_order(project, {**body, "webhook_url": f"http://127.0.0.1:9/{LONG}"})
    yield file, project
    check_state(file, registry)
    file.close()


def statuses(project: Project) -> list[str]:
    """Return the statuses of all orders, oldest first."""
    return [order.status for order in project.epoch.store.orders_newest_first()][::-1]


def interrupt(file: StateFile, project: Project, written: int) -> NotStored:
    """Advance ten hours, and let the disk be full after some of the due commands; return the error."""
    moves = count(1)
    with ExitStack() as stack:
        disk = full(file)
        if not written:
            stack.enter_context(disk)

        def fill(moment: datetime) -> None:
            if next(moves) == written:
                stack.enter_context(disk)

        project.epoch.timeline.on_move = fill
        with pytest.raises(NotStored) as stopped:
            advance_clock(project, {"by": "PT10H"})
        project.epoch.timeline.on_move = None
    return stopped.value


@pytest.mark.parametrize("written", range(HOURS))
def test_a_disk_that_fills_during_an_advance_stops_it_at_a_true_time(tmp_path: Path, written: int) -> None:
    """With a disk that fills at any commit of an advance, the error says how far it came; the rest runs later."""
    with project_with_orders(tmp_path / "state.db") as (file, project):
        start, before, due = project.now(), snapshot_of(project), agenda(project.epoch)
        stopped = interrupt(file, project, written)
        assert stopped.is_full
        assert not project.epoch.is_advancing
        assert ((snapshot_of(project), agenda(project.epoch)) == (before, due)) == (not written)
        assert isinstance(stopped, StepsInterrupted) == bool(written)
        assert ("nothing has changed" in str(stopped)) == (not written)
        assert (project.now() - start).total_seconds() == written * 3600
        assert statuses(project) == ["expired"] * written + ["new"] * (HOURS - written)
        assert project.epoch.journal.of(LoggedFailure) == []
        assert len(advance_clock(project, {"by": "PT10H"}).events) == HOURS - written
        assert statuses(project) == ["expired"] * HOURS


def test_the_log_of_the_file_stays_small(tmp_path: Path) -> None:
    """The write-ahead log takes no more space than a few commits, also after a large one."""
    with project_with_orders(tmp_path / "state.db") as (_, project):
        log = tmp_path / "state.db-wal"
        create_order(project, {"currency": "EUR", "amount": 5, "client": {}, "description": LONG * 4000})
        for _ in range(500):
            create_order(project, {"currency": "EUR", "amount": 5, "client": {}, "description": LONG * 2})
        assert log.stat().st_size <= WAL_BYTES + 200_000


def test_a_running_clock_continues_from_the_last_stored_event(tmp_path: Path) -> None:
    """After an interrupted advance, a running clock does not stand still."""
    with project_with_orders(tmp_path / "state.db") as (file, project):
        change_clock(project, mode="running")
        interrupt(file, project, 2)
        assert project.epoch.state.clock.read() >= project.epoch.timeline.now
        change_clock(project, mode="frozen")


def test_a_change_of_the_clock_on_a_full_disk_says_what_happened(tmp_path: Path) -> None:
    """Setting the clock forward on a full disk leaves the clock and its mode."""
    with project_with_orders(tmp_path / "state.db") as (file, project):
        before = snapshot_of(project)
        with full(file), pytest.raises(NotStored, match="nothing has changed"):
            change_clock(project, mode="running", now=project.now() + timedelta(hours=1))
        assert snapshot_of(project) == before
