"""The records of each order."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier, Event

from payment_sandbox.projects.events import Events
from payment_sandbox.projects.journal import (
    ENTRIES_MAX,
    EpochJournal,
    LoggedRequest,
    ReachedStatus,
    ReceivedRequest,
)
from tests.support.state_files import NOON


def reached(number: int) -> ReachedStatus:
    """Return a record about the same order."""
    return ReachedStatus(f"status-{number}", "o", None, None, "open", NOON, NOON, None)


def test_the_oldest_records_leave_the_log_of_their_order() -> None:
    """A full journal drops the oldest records from the logs, too, and a log without records goes."""
    journal = EpochJournal(Events())
    journal.add([reached(1)._replace(order_id="first"), *map(reached, range(2, ENTRIES_MAX + 1))])
    assert len(journal.logs["first"]) == 1
    journal.add([reached(ENTRIES_MAX + 1), reached(ENTRIES_MAX + 2)])
    assert "first" not in journal.logs
    assert journal.logs["o"][0].id == "status-3"


def received(number: int, made: list[int]) -> ReceivedRequest:
    """Return a request about an order; ``made`` gets its number when its entry is made."""
    entry = LoggedRequest(f"request-{number}", NOON, "GET", "/", "", 200, b"", b"", order_id="o")

    def make_entry() -> LoggedRequest:
        Event().wait(0.01)  # so that other readers come meanwhile
        made.append(number)
        return entry

    return ReceivedRequest(entry.id, "o", make_entry)


def test_a_request_is_masked_once_when_somebody_looks_at_it() -> None:
    """However many readers come at once, in whatever way, a request's entry is made once, and not before."""
    events, made = Events(), list[int]()
    journal = EpochJournal(events, is_stored=True)
    journal.add([received(1, made), reached(2)])
    assert journal.dropped_count == 0
    assert made == []
    at_once = Barrier(4)
    ways = (
        lambda: journal.of(LoggedRequest)[0],
        lambda: journal.logs["o"][0],
        lambda: next(iter(journal.take_unstored())),
        lambda: events.events_after(0)[0],
    )
    with ThreadPoolExecutor(len(ways)) as pool:
        one, other, stored, event = pool.map(lambda way: (at_once.wait(), way())[1], ways)
    assert made == [1]
    assert one is other is stored
    assert event.data["id"] == "request-1"


def test_a_request_that_nobody_looks_at_is_never_masked() -> None:
    """A full journal drops its oldest requests as they came."""
    made: list[int] = []
    journal = EpochJournal(Events())
    journal.add([received(number, made) for number in range(1, ENTRIES_MAX + 3)])
    assert journal.dropped_count == 2
    assert made == []
