"""Clients can wait for a condition, watch events and redeliver webhooks."""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any

import pytest
import requests

from payment_sandbox.projects.events import EVENTS_STORED_MAX
from tests.support.driver import START, Sandbox, card, refused
from tests.support.shop import Shop


def with_own_connection(sandbox: Sandbox) -> Sandbox:
    """Return the same project with a separate connection, for another thread."""
    other = Sandbox.__new__(Sandbox)
    other.__dict__.update(sandbox.__dict__, http=requests.Session())
    return other


@pytest.mark.rule("CTL-26")
def test_a_wait_ends_when_its_condition_holds(watched: Sandbox, shop: Shop) -> None:
    """A wait returns immediately or as soon as its condition holds, long before the timeout."""
    order = watched.place(card())
    assert watched.get(f"/control/wait/?order_id={order['id']}&status=new").json() == {"status": "new"}
    waiter = with_own_connection(watched)
    with ThreadPoolExecutor(2) as threads:
        paid = threads.submit(waiter.get, f"/control/wait/?order_id={order['id']}&status=completed")
        notified = threads.submit(
            with_own_connection(watched).get, f"/control/wait/?webhook={order['id']}&idle=1&timeout=20"
        )
        watched.pay(order)
        assert (paid.result().status_code, paid.result().json()) == (200, {"status": "completed"})
        assert notified.result().json()["idle"] is True
        assert 200 in notified.result().json()["webhook_answers"]


@pytest.mark.rule("CTL-26")
def test_a_wait_that_times_out_has_the_current_values(watched: Sandbox, shop: Shop) -> None:
    """A wait times out with 408 and the current values; on a frozen clock, it names the clock and the next event."""
    order = watched.place(card())
    path = f"/control/wait/?order_id={order['id']}&status=expired&timeout=0.05"
    error = refused(watched.get(path), 408, "RequestTimeout")
    assert error["now"] == {"status": "new"}
    assert error["value"] == (
        f"timed out after 0.05 seconds: status is new; the clock is frozen at {START}, advance it; "
        f"the next event: expiry of {order['id']}, due at 2026-03-01T12:30:00.000000+00:00"
    )
    watched.patch("/control/clock/", {"mode": "running"})
    assert refused(watched.get(path), 408, "RequestTimeout")["value"].endswith("status is new")
    _, released = shop.hold()
    watched.acted(order, "customer visit")
    error = refused(watched.get("/control/wait/?idle=1&timeout=0"), 408, "RequestTimeout")
    assert error["now"] == {"idle": False}
    released.set()
    assert watched.get("/control/wait/?idle=1").json() == {"idle": True}


def parse_events(answer: requests.Response) -> Iterator[tuple[int, str, dict[str, Any]]]:
    """Yield the events of a stream as they arrive: number, kind and data."""
    number, kind = 0, ""
    for line in answer.iter_lines(chunk_size=1, decode_unicode=True):
        name, _, value = line.partition(": ")
        if name == "id":
            number = int(value)
        elif name == "event":
            kind = value
        elif name == "data":
            yield number, kind, json.loads(value)


@pytest.mark.rule("CTL-27")
def test_all_that_happens_is_streamed(watched: Sandbox) -> None:
    """The stream has requests, statuses, webhooks and clock changes of this project only."""
    watcher = with_own_connection(watched)
    with watcher.http.get(f"{watched.url}/control/events/", auth=(watched.key, ""), stream=True) as answer:
        assert answer.headers["Content-Type"].startswith("text/event-stream")
        stream = parse_events(answer)
        order = watched.place(card())
        watched.pay(order)
        watched.advance("PT1M")
        events: list[tuple[str, dict[str, Any]]] = []
        while not events or "now" not in events[-1][1]:  # the clock's event
            events.append(next(stream)[1:])
    assert events[-1][0] == "clock"
    statuses = [(data["before"], data["after"]) for kind, data in events if kind == "status"]
    assert statuses == [(None, "new"), ("new", "processing"), ("processing", "completed")]
    requests_seen = [data for kind, data in events if kind == "request"]
    created = {"method": "POST", "path": "/v1/orders/", "status": 201, "order_id": order["id"], "rule": None}
    assert created.items() <= requests_seen[0].items()
    assert [data["state"] for kind, data in events if kind == "webhook"] == ["delivered", "delivered"]
    assert all(data.get("order_id", order["id"]) == order["id"] for _, data in events)


def test_a_stream_resumes_after_the_last_event(sandbox: Sandbox) -> None:
    """A stream resumes after the number in Last-Event-ID or in the query."""
    order = sandbox.place(card())
    sandbox.pay(order)
    options: dict[str, Any] = {"auth": (sandbox.key, ""), "stream": True, "timeout": 10}
    url = f"{sandbox.url}/control/events/"
    with sandbox.http.get(f"{url}?after=0", **options) as answer:
        stream = parse_events(answer)
        events = [next(stream) for _ in range(5)]
    kinds = {kind: data for _, kind, data in events}
    assert kinds["status"]["order_id"] == order["id"]
    assert kinds["action"]["actor"] == "customer"
    for (number, *_), following in pairwise(events):
        with sandbox.http.get(url, headers={"Last-Event-ID": str(number)}, **options) as answer:
            assert next(parse_events(answer)) == following
        with sandbox.http.get(f"{url}?after={number}", **options) as answer:
            assert next(parse_events(answer)) == following
    refused(sandbox.get("/control/events/?after=x"), 400, "ValidationError")


def test_a_stream_reports_missed_events(sandbox: Sandbox) -> None:
    """The stream reports missed events, if the number is too old or from another server."""
    options: dict[str, Any] = {"auth": (sandbox.key, ""), "stream": True, "timeout": 10}
    url, project = f"{sandbox.url}/control/events/", sandbox.project_in_process
    with sandbox.http.get(url, **options) as answer:
        for number in range(1, EVENTS_STORED_MAX + 11):
            project.events.publish("idle", number=number)
        assert number in (data.get("number") for *_, data in parse_events(answer))
    for after in (5, 10_000):
        with sandbox.http.get(f"{url}?after={after}", **options) as answer:
            assert next(parse_events(answer))[1:] == ("missed", {"after": after, "first_kept": 11})
    with sandbox.http.get(f"{url}?after=10", **options) as answer:
        assert next(parse_events(answer)) == (11, "idle", {"number": 11})
