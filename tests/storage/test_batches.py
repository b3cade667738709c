"""Commits of several projects go to the database together, and each stands on its own."""

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from threading import Event

import psycopg
import pytest

from payment_sandbox.projects.clock import FROZEN, ClockStart
from payment_sandbox.projects.identity import Identity
from payment_sandbox.projects.project import ProjectMoved
from payment_sandbox.serving.services import REAL_TIME
from payment_sandbox.storage.batches import MOST, Batches
from payment_sandbox.storage.codec import NotStored
from payment_sandbox.storage.postgresql import Database, Lease, Written
from payment_sandbox.storage.rows import Row
from tests.support.postgres import Postgres, needs_postgres


class Slow:
    """Work on batches that goes on when the test says so."""

    def __init__(self) -> None:
        self.batches: list[list[int]] = []
        self.begun, self.may_end = Event(), Event()

    def __call__(self, items: Sequence[int]) -> list[int]:
        """Double them; ten is refused."""
        self.batches.append(list(items))
        self.begun.set()
        assert self.may_end.wait(10)
        if 10 in items:
            raise ValueError("ten")
        return [2 * item for item in items]


def until(is_so: Callable[[], bool]) -> None:
    """Wait until something is so."""
    for _ in range(1000):
        if is_so():
            return
        Event().wait(0.01)
    raise AssertionError("it never was so")


def calls(pool: ThreadPoolExecutor, batches: Batches[int, int], *items: int) -> list["Future[int]"]:
    """Calls of as many threads, in this order."""
    made: list[Future[int]] = []
    for item in items:
        waiting = len(batches._waiting)
        made.append(pool.submit(batches.call, item))
        until(lambda count=waiting: len(batches._waiting) > count)  # type: ignore[misc]
    return made


def test_what_comes_meanwhile_goes_together() -> None:
    """The first call is alone; those that come while it is under way are the second batch."""
    slow = Slow()
    batches: Batches[int, int] = Batches(slow)
    with ThreadPoolExecutor(8) as pool:
        first = pool.submit(batches.call, 1)
        assert slow.begun.wait(10)
        others = calls(pool, batches, 2, 3, 4)
        slow.may_end.set()
        assert [each.result(10) for each in (first, *others)] == [2, 4, 6, 8]
    assert slow.batches == [[1], [2, 3, 4]]


def test_a_refusal_reaches_all_of_a_batch_and_nobody_else() -> None:
    """What the work raises, all callers of that batch get; the next batch is made all the same."""
    slow = Slow()
    batches: Batches[int, int] = Batches(slow)
    with ThreadPoolExecutor(8) as pool:
        first = pool.submit(batches.call, 1)
        assert slow.begun.wait(10)
        refused = calls(pool, batches, 10, 3)
        slow.may_end.set()
        assert first.result(10) == 2
        for each in refused:
            with pytest.raises(ValueError, match="ten"):
                each.result(10)
    assert batches.call(4) == 8


def test_many_threads_get_their_own_results() -> None:
    """Whatever goes together, each caller gets its own; no batch is too long."""
    sizes: list[int] = []

    def double(items: Sequence[int]) -> list[int]:
        sizes.append(len(items))
        return [2 * item for item in items]

    batches: Batches[int, int] = Batches(double)
    with ThreadPoolExecutor(100) as pool:
        assert list(pool.map(batches.call, range(5000))) == [2 * item for item in range(5000)]
    assert sum(sizes) == 5000
    assert max(sizes) <= MOST


def write(database: Database, lease: Lease, body: str = "{}") -> None:
    """Commit one order of a project."""
    identity = Identity(lease.project_id, "merchant", "digest", ClockStart(FROZEN))
    database.write(lease, Written([Row("orders", "o", body)], [], None, None, False, identity))


def written_together(
    postgresql: Postgres, leases: Sequence[Lease], token: int, **bodies: str
) -> tuple[list["Future[None]"], list[tuple[str]]]:
    """Commits of projects whose newest ``token`` is this; all but the first go together.

    Returns the commits, which are over, and the projects of which something was written.
    """
    address = postgresql.new_database()
    database = Database(address, "this-server", REAL_TIME)
    with psycopg.connect(address, autocommit=True) as aside, ThreadPoolExecutor(len(leases)) as pool:
        for lease in leases:
            add = "INSERT INTO sandbox_project (id, key_digest, identity, token) VALUES (%s, %s, '{}', %s)"
            aside.execute(add, (lease.project_id, f"digest-{lease.project_id}", token))
        aside.execute("BEGIN; SELECT FROM sandbox_project WHERE id = 'p0' FOR UPDATE")
        writing = [pool.submit(write, database, leases[0])]
        until(lambda: database._batches._is_busy)
        writing += [
            pool.submit(write, database, lease, bodies.get(lease.project_id, "{}")) for lease in leases[1:]
        ]
        until(lambda: len(database._batches._waiting) == len(leases) - 1)
        aside.execute("COMMIT")
        wait(writing, timeout=10)
        written = aside.execute("SELECT project FROM sandbox_record ORDER BY project").fetchall()
    database.close()
    return writing, written


@needs_postgres
def test_a_lost_project_stops_no_other_one(postgresql: Postgres) -> None:
    """Of three projects that are written together, one has another owner: the other two are written."""
    leases = [Lease(f"p{number}", token=2) for number in range(4)]
    leases[2].token = 1  # from before a take-over
    writing, written = written_together(postgresql, leases, token=2)
    for number in (0, 1, 3):
        writing[number].result(10)
    with pytest.raises(ProjectMoved):
        writing[2].result(10)
    assert written == [("p0",), ("p1",), ("p3",)]
    assert [lease.sequence for lease in leases] == [1, 1, 0, 1]


@needs_postgres
def test_a_refused_change_set_stops_no_other_one(postgresql: Postgres) -> None:
    """What the database refuses of one project, it refuses of that one only."""
    leases = [Lease(f"p{number}", token=1) for number in range(3)]
    writing, _ = written_together(postgresql, leases, token=1, p2="\0")
    writing[1].result(10)
    with pytest.raises(NotStored):
        writing[2].result(10)
    assert [(lease.token, lease.sequence) for lease in leases] == [(1, 1), (1, 1), (1, 0)]
