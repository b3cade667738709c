"""Events wake the threads that wait for them."""

from threading import Event, Thread

import pytest

from payment_sandbox.projects.events import Events


@pytest.mark.parametrize(
    ("order_id", "events", "result"),
    [
        ("mine", [("status", {"order_id": "another"}), ("status", {"order_id": "mine"})], True),
        ("mine", [("status", {"order_id": "another"}), ("reset", {})], True),
        ("mine", [("restored", {})], True),
        (None, [("status", {"order_id": "another"})], True),
        ("mine", [], False),
        (None, [], False),
    ],
)
def test_events_wake_the_threads_that_wait_for_them(
    order_id: str | None, events: list[tuple[str, dict[str, str]]], result: bool
) -> None:
    """Events of an order, of all orders, or any event, and the end, wake a thread; other events do not."""
    log, results = Events(), list[bool]()
    number = log.number
    thread = Thread(target=lambda: results.append(log.wait_after(number, 600, order_id)), daemon=True)
    thread.start()
    while not log._waiting_count:
        Event().wait(0.01)
    for kind, data in events:
        log.publish(kind, **data)
    if not events:
        log.end()
    thread.join(60)
    assert results == [result]
    assert not log._groups_by_order
    assert log.wait_after(0, 0, "mine") is bool(events), "an earlier event counts, too"


def test_an_event_wakes_only_the_threads_that_wait_for_its_order() -> None:
    """An event of one order wakes no thread that waits for another; a reset wakes all."""
    log = Events()
    with log._join_group("mine") as mine, log._join_group("another") as another:
        log.publish("status", order_id="another")
        assert (mine.number, another.number) == (0, 1)
        log.publish("reset")
        assert (mine.number, another.number) == (2, 2)
