"""Events wake the threads that wait for them."""

from threading import Thread
from time import process_time

import pytest

from payment_sandbox.projects.events import Events

THREADS = 300


def start_waiting(events: Events, order_id: str | None, count: int = 1) -> tuple[list[Thread], list[bool]]:
    """Start threads that wait for the next event; return them and the list of their results."""
    number, results = events.number, list[bool]()

    def wait() -> None:
        results.append(events.wait_after(number, 10, order_id))

    threads = [Thread(target=wait, daemon=True) for _ in range(count)]
    for thread in threads:
        thread.start()
    return threads, results


@pytest.mark.parametrize(
    ("kind", "data"), [("status", {"order_id": "mine"}), ("reset", {}), ("restored", {})]
)
def test_events_of_an_order_wake_its_waiting_threads(kind: str, data: dict[str, str]) -> None:
    """A thread that waits for an order is woken by the order's events, and by events about all orders."""
    events = Events()
    threads, results = start_waiting(events, "mine")
    events.publish("status", order_id="another")
    assert not results
    events.publish(kind, **data)
    threads[0].join(60)
    assert results == [True]
    assert not events._groups_by_order


def test_every_event_wakes_threads_that_wait_for_any() -> None:
    """A thread that waits for any event is woken by each event, also by an earlier one."""
    events = Events()
    threads, results = start_waiting(events, None)
    events.publish("status", order_id="another")
    threads[0].join(60)
    assert results == [True]
    assert events.wait_after(0, 0, "mine")


def test_the_end_wakes_all_threads() -> None:
    """The end of the events wakes all threads with False."""
    events = Events()
    order_threads, order_results = start_waiting(events, "mine")
    any_threads, any_results = start_waiting(events, None)
    events.end()
    for thread in (*order_threads, *any_threads):
        thread.join(60)
    assert (order_results, any_results) == ([False], [False])


def test_waiting_threads_do_not_slow_down_other_orders() -> None:
    """Events of other orders do not wake threads that wait for one order."""
    events = Events()
    threads, _ = start_waiting(events, "mine", THREADS)
    started = process_time()
    for _ in range(500):
        events.publish("status", order_id="another")
    elapsed = process_time() - started
    events.end()
    for thread in threads:
        thread.join(60)
    assert elapsed < 1
