"""Faults refuse, delay or cut off requests, or lose their responses; faults of one order end with it."""

import contextlib
from importlib.metadata import version
from time import perf_counter
from typing import Any

import pytest
import requests

from tests.support.driver import Sandbox, by, card, refused
from tests.support.shop import Shop


def set_fault(sandbox: Sandbox, then: dict[str, Any], **when: Any) -> None:
    """Set one fault for the matching requests."""
    answer = sandbox.put("/control/faults/", {"faults": [{"when": when, "then": then}]})
    assert answer.status_code == 200, answer.text


@pytest.mark.rule("CTL-23")
def test_the_nth_request_is_refused_and_nothing_done(sandbox: Sandbox) -> None:
    """Only the second matching request is refused; a trailing slash makes no difference."""
    set_fault(sandbox, {"status": 503}, method="POST", path="/v1/orders", nth=2)
    order = sandbox.place(card())
    for _ in range(3):
        sandbox.read(order)
    error = refused(sandbox.create(card()), 503, "ServiceUnavailable")
    assert "fault" in error["value"]
    assert sandbox.create(card()).status_code == 201
    assert len(sandbox.agenda()) == 2
    assert sandbox.get("/control/journal/?status=503").json()["items"][0]["fault"] == {"status": 503}


@pytest.mark.rule("CTL-23")
def test_a_fault_after_handling_loses_only_the_response(sandbox: Sandbox) -> None:
    """The capture succeeds although its response says that it failed."""
    order = sandbox.authorized()
    set_fault(sandbox, {"status": 500, "phase": "after"}, path="/v1/orders/*/captures", nth=[1, 3])
    assert sandbox.take(order, "captures").status_code == 500
    sandbox.delete("/control/faults/")
    assert sandbox.read(order, "amount_details")["amount_details"]["captured"] == 2000


@pytest.mark.rule("CTL-24")
def test_an_answer_can_be_late(sandbox: Sandbox) -> None:
    """A fault with a latency delays the response in real time; the request succeeds."""
    set_fault(sandbox, {"latency": 0.2})
    started = perf_counter()
    assert sandbox.create(card()).status_code == 201
    assert perf_counter() - started >= 0.2


CUT_OFF: tuple[type[Exception], str | None] = (
    (requests.exceptions.ChunkedEncodingError, "IncompleteRead")
    if not version("urllib3").startswith("1.")  # which accepts a body that is shorter than its length
    else (requests.exceptions.JSONDecodeError, None)
)


@pytest.mark.rule("CTL-24")
@pytest.mark.parametrize(
    ("then", "raised", "message", "order_count"),
    [
        ({"reset": True}, requests.ConnectionError, None, 0),
        ({"hang": 0.1}, requests.ConnectionError, None, 0),
        ({"truncate": True}, *CUT_OFF, 1),
    ],
)
def test_a_connection_can_break(
    sandbox: Sandbox, then: dict[str, Any], raised: type[Exception], message: str | None, order_count: int
) -> None:
    """A broken connection ends before the work; half of a response arrives after it."""
    set_fault(sandbox, then, nth=1)
    with pytest.raises(raised, match=message):
        sandbox.create(card())
    assert len(sandbox.agenda()) == order_count
    assert sandbox.create(card()).status_code == 201


@pytest.mark.rule("CTL-24")
def test_requests_can_be_limited(sandbox: Sandbox) -> None:
    """The rate limit counts in sandbox time and ends when the clock has advanced."""
    set_fault(sandbox, {"rate_limit": "2/PT1M"}, method="POST")
    assert [sandbox.create().status_code for _ in range(3)] == [201, 201, 429]
    assert refused(sandbox.create(), 429, "RateLimited")
    assert sandbox.create().headers["Retry-After"] == "60", "the window"
    sandbox.advance("PT1M")
    assert sandbox.create().status_code == 201


@pytest.mark.parametrize(
    "then", [{"truncate": True}, {"reset": True, "phase": "after"}, {"status": 500, "phase": "after"}]
)
def test_a_lost_answer_loses_no_webhook(watched: Sandbox, shop: Shop, then: dict[str, Any]) -> None:
    """The webhook is sent even if the response is lost, and the clock can advance."""
    set_fault(watched, then, nth=1)
    with contextlib.suppress(requests.RequestException):
        watched.create(by("bank-transfer"))
    watched.settle()
    assert len(shop.received) == 1


def set_webhook_rule(sandbox: Sandbox, then: dict[str, Any], **when: Any) -> None:
    """Set a rule for webhooks."""
    answer = sandbox.put("/control/faults/", {"webhooks": [{"when": when, "then": then}]})
    assert answer.status_code == 200, answer.text


def read_rules(sandbox: Sandbox) -> list[dict[str, Any]]:
    """Return the active rules for webhooks."""
    webhook_rules: list[dict[str, Any]] = sandbox.get("/control/faults/").json()["webhooks"]
    return webhook_rules


def test_only_the_webhooks_of_this_order_are_duplicated(watched: Sandbox, shop: Shop) -> None:
    """The rule is deleted once the order is paid and its webhooks are acknowledged; others stay, with their counts."""
    order, other = watched.place(card()), watched.place(card())
    written = [
        {"when": {"status": "expired"}, "then": {"drop": True}},
        {"when": {"order_id": order["id"]}, "then": {"duplicate": 2}},
        {"when": {"status": "error"}, "then": {"delay": "PT1M"}},
    ]
    faults = [{"when": {"path": "/v1/orders/", "nth": 2}, "then": {"status": 503}}]
    watched.put("/control/faults/", {"webhooks": written, "faults": faults})
    assert watched.create(card()).status_code == 201
    watched.pay(other)
    watched.settle()
    assert len(read_rules(watched)) == 3
    watched.pay(order)
    watched.settle()
    assert (shop.orders().count(other["id"]), shop.orders().count(order["id"])) == (2, 4)
    counted = watched.get("/control/faults/").json()
    assert [rule.pop("matches") for rule in (*counted["faults"], *counted["webhooks"])] == [1, 0, 0]
    assert counted == {"webhooks": [written[0], written[2]], "faults": faults}
    assert watched.create(card()).status_code == 503


def test_the_rule_stays_while_money_is_reserved(watched: Sandbox, shop: Shop) -> None:
    """The rule remains for the webhook of an authorization that can still expire."""
    order = watched.place(card(capture_mode="manual"))
    set_webhook_rule(watched, {"drop": True}, order_id=order["id"], status="expired")
    watched.pay(order)
    watched.settle()
    assert (len(shop.received), len(read_rules(watched))) == (2, 1)
    watched.advance("P60D")
    assert watched.read(order)["status"] == "expired"
    assert (len(shop.received), read_rules(watched)) == (2, [])


@pytest.mark.rule("CTL-10")
def test_a_snapshot_has_the_rule_with_its_order(sandbox: Sandbox) -> None:
    """A snapshot restores the rule with its order, whose cancellation ends it even without a webhook."""
    order = sandbox.place(card())
    set_webhook_rule(sandbox, {"duplicate": 2}, order_id=order["id"])
    state = sandbox.get("/control/state/").json()
    sandbox.post("/control/reset/")
    assert read_rules(sandbox) == []
    assert sandbox.put("/control/state/", state).status_code == 200
    assert len(read_rules(sandbox)) == 1
    sandbox.delete(f"/v1/orders/{order['id']}/")
    assert read_rules(sandbox) == []
