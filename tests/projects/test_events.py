"""Who is woken by which events."""

from threading import Thread
from time import process_time

import pytest

from payment_sandbox.projects.events import Events

WAITING = 300


def waiting(events: Events, order_id: str | None, count: int = 1) -> tuple[list[Thread], list[bool]]:
    """Threads that wait for the next event, and what they got."""
    number, got = events.number, list[bool]()

    def wait() -> None:
        got.append(events.wait_after(number, 10, order_id))

    threads = [Thread(target=wait, daemon=True) for _ in range(count)]
    for thread in threads:
        thread.start()
    return threads, got


@pytest.mark.parametrize(
    ("kind", "data"), [("status", {"order_id": "mine"}), ("reset", {}), ("restored", {})]
)
def test_what_concerns_an_order_wakes_those_who_wait_for_it(kind: str, data: dict[str, str]) -> None:
    """Its own events, and those that change every order."""
    events = Events()
    threads, got = waiting(events, "mine")
    events.publish("status", order_id="another")
    assert not got
    events.publish(kind, **data)
    threads[0].join(5)
    assert got == [True]
    assert not events._groups_by_order


def test_who_waits_for_anything_is_woken_by_anything() -> None:
    """Also by what has happened before the wait began."""
    events = Events()
    threads, got = waiting(events, None)
    events.publish("status", order_id="another")
    threads[0].join(5)
    assert got == [True]
    assert events.wait_after(0, 0, "mine")


def test_the_end_wakes_everybody() -> None:
    """With False."""
    events = Events()
    mine, got = waiting(events, "mine")
    any_, others = waiting(events, None)
    events.end()
    for thread in (*mine, *any_):
        thread.join(5)
    assert (got, others) == ([False], [False])


def test_a_crowd_that_waits_for_one_order_costs_the_others_nothing() -> None:
    """Waking three hundred threads for each event would take seconds."""
    events = Events()
    threads, _ = waiting(events, "mine", WAITING)
    begun = process_time()
    for _ in range(500):
        events.publish("status", order_id="another")
    took = process_time() - begun
    events.end()
    for thread in threads:
        thread.join(5)
    assert took < 1


def test_events_that_are_read_in_part_have_no_secrets_either() -> None:
    """Each value is masked and shortened when it is read, as all are when an event is read whole."""
    events = Events()
    events.masking.api_key = "key-of-the-shop"
    events.publish("request", path="/v1/key-of-the-shop/", text="4111 1111 1111 1111", cvc="123", status=404)
    events.publish_lazily(
        "request", lambda: {"nested": [{"card_code": 123}], "long": "x" * 5000, "rule": None}
    )
    events.publish("other", path="/v1/")
    stored = events.stored_events_after(0, ("request",))
    read = [one.read_lazily(events.masking) for one in stored]
    assert [(one.number, one.kind, dict(one.data)) for one in read] == [
        (one.number, one.kind, one.data) for one in events.events_after(0)[:2]
    ]
    assert dict(read[0].data) == {"path": "/v1/***/", "text": "0", "cvc": "***", "status": 404}
