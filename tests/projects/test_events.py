"""Events wake the threads that wait for them."""

from threading import Thread

import pytest

from payment_sandbox.projects.events import Events, UnstoredEntry


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
    thread = Thread(target=lambda: results.append(log.wait_after(number, 10, order_id)), daemon=True)
    thread.start()
    for kind, data in events:
        assert not results
        log.publish(kind, **data)
    if not events:
        log.end()
    thread.join(60)
    assert results == [result]
    assert not log._groups_by_order
    assert log.wait_after(0, 0, "mine") is bool(events), "an earlier event counts, too"


def test_lazily_read_events_are_masked() -> None:
    """Lazily read values of events are masked and shortened like those of whole events."""
    events = Events()
    events.masking.api_key = "key-of-the-shop"
    events.publish("request", path="/v1/key-of-the-shop/", text="4111 1111 1111 1111", cvc="123", status=404)
    long = UnstoredEntry({"nested": [{"card_code": 123}], "long": "x" * 5000, "rule": None})
    events.add([("request", long)])
    events.publish("other", path="/v1/")
    stored = events.stored_events_after(0, ("request",))
    read = [each.read_lazily(events.masking) for each in stored]
    assert [(each.number, each.kind, dict(each.data)) for each in read] == [
        (each.number, each.kind, each.data) for each in events.events_after(0)[:2]
    ]
    assert dict(read[0].data) == {"path": "/v1/***/", "text": "0", "cvc": "***", "status": 404}
