"""Wrong calls of the control API: nothing is ignored, all violations are reported, and nothing changes."""

from typing import Any

import pytest

from tests.support.described import description
from tests.support.driver import NOBODY, Sandbox, card, refused, violations

WRONG_BODIES: dict[str, list[tuple[Any, set[str]]]] = {
    "POST /control/orders/{order_id}/act/": [
        ({}, {"actor", "action"}),
        ({"actor": "shop", "action": "pay"}, {"actor"}),
        ({"actor": "bank", "action": "pay"}, {"action"}),
        ({"actor": "customer", "action": "pay", "card": "gold", "amount": 0}, {"card", "amount"}),
        ({"actor": "customer", "action": "pay", "colour": "red"}, {"colour"}),
    ],
    "PATCH /control/clock/": [
        ({}, {""}),
        ({"mode": "stopped"}, {"mode"}),
        ({"mode": "running", "rate": 0}, {"rate"}),
        ({"mode": "running", "rate": True}, {"rate"}),
        ({"mode": "running", "rate": 10**7}, {"rate"}),
        ({"mode": "frozen", "rate": 2}, {"rate"}),
        ({"now": "tomorrow"}, {"now"}),
        ({"mod": "frozen"}, {"mod", ""}),
    ],
    "PUT /control/scenario/": [
        ({}, {"name"}),
        ({"name": "Bad Name"}, {"name"}),
        ({"name": None}, {"name"}),
        ({"name": "x", "rules": [{"then": {"custmer": "pays", "card": "frictionless"}}]},
         {"rules[0].then", "rules[0].then.custmer"}),
        ({"name": "x", "rules": [{"then": {"customer": "pays", "after": "soon"}, "times": 0}]},
         {"rules[0].then.after", "rules[0].times"}),
        ({"name": "x", "webhooks": [{"when": {"order_id": NOBODY}, "then": {"drop": True}}]},
         {"webhooks[0].when.order_id"}),  # scenarios are for future orders
        ([], {""}),
    ],
    "PUT /control/faults/": [
        ({"fault": []}, {"fault"}),
        ({"faults": [{"then": {"phase": "after"}}]}, {"faults[0].then"}),
        ({"faults": [{"then": {"status": 500, "reset": True}}]}, {"faults[0].then"}),
        ({"faults": [{"then": {"hang": 61}}]}, {"faults[0].then.hang"}),
        ({"faults": [{"then": {"rate_limit": "10/P1S"}}]}, {"faults[0].then.rate_limit"}),
        ({"faults": [{"when": {"method": "post", "path": "v1", "nth": 0}, "then": {"reset": True}}]},
         {"faults[0].when.method", "faults[0].when.path", "faults[0].when.nth[0]"}),
        ({"faults": [{"then": {"reset": False}}]}, {"faults[0].then.reset"}),
        ({"webhooks": [{"then": {"drop": True}}, {"when": {"order_id": NOBODY}, "then": {"drop": True}}]},
         {"webhooks[1].when.order_id"}),
        ({"faults": [{"then": {"truncate": True, "phase": "after"}}]}, {"faults[0].then.phase"}),
        ({"faults": [{"then": {"rate_limit": "1/PT1S", "phase": "before"}}]}, {"faults[0].then.phase"}),
    ],
}  # fmt: skip
WRONG_QUERIES: dict[str, list[tuple[str, set[str]]]] = {
    "/control/wait/": [
        ("", {""}),
        ("timeout=5", {""}),
        ("order_id=x", {"", "status"}),
        ("status=new", {"", "status"}),
        ("idle=1&timeout=61", {"timeout"}),
        ("idle=yes", {"idle"}),
        ("order_id=x&status=payed", {"status"}),
        ("idl=1", {"idl"}),
    ],
    "/control/journal/": [
        ("status=abc", {"status"}),
        ("status=%C2%B2", {"status"}),
        ("count=2", {"count"}),
    ],
}


@pytest.mark.rule("SCN-01")
@pytest.mark.parametrize("call", WRONG_BODIES)
def test_a_wrong_body_names_what_is_wrong(sandbox: Sandbox, call: str) -> None:
    """Each violation has its path, and the state of the project is unchanged."""
    method, _, path = call.format(order_id=sandbox.place(card())["id"]).partition(" ")
    before = sandbox.get("/control/state/").json()
    for body, paths in WRONG_BODIES[call]:
        assert set(violations(sandbox.call(method, path, body))) == paths, body
    assert sandbox.get("/control/state/").json() == before


@pytest.mark.parametrize("path", WRONG_QUERIES)
def test_a_wrong_query_names_what_is_wrong(sandbox: Sandbox, path: str) -> None:
    """A wrong condition or filter is refused at once, instead of a wait or an empty list."""
    for query, paths in WRONG_QUERIES[path]:
        assert set(violations(sandbox.get(f"{path}?{query}"))) == paths, query


def test_a_wait_for_an_unknown_order_is_refused(sandbox: Sandbox) -> None:
    """Nothing could end the wait."""
    refused(sandbox.get("/control/wait/?order_id=x&status=new"), 404, "NotFound")


CONTROL = [
    (method.upper(), path.replace("{order_id}", "x").replace("{qr_id}", "x").replace("{delivery_id}", "x"))
    for path, operations in description()["paths"].items()
    for method in operations
    if path.startswith("/control/")
]
BODILESS = {
    ("POST", "/control/reset/"),
    ("POST", "/control/webhooks/x/redeliver/"),
    ("DELETE", "/control/project/"),
    ("DELETE", "/control/scenario/"),
    ("DELETE", "/control/faults/"),
}


def test_an_unknown_query_key_is_refused(sandbox: Sandbox) -> None:
    """Every route refuses an unknown key before it does anything, and suggests the nearest known word."""
    before = sandbox.get("/control/state/").json()
    for method, path in CONTROL:
        answer = sandbox.call(method, f"{path}?sttae=pending")
        (violation,) = refused(answer, 400, "ValidationError")["violations"]
        assert violation["path"] == "sttae", path
    assert sandbox.get("/control/state/").json() == before
    (key,) = refused(sandbox.get("/control/webhooks/?sttae=pending"), 400, "ValidationError")["violations"]
    assert (key["nearest"], key["allowed"]) == ("state", ["before", "limit", "order_id", "state", "summary"])
    (value,) = refused(sandbox.get("/control/webhooks/?state=pendign"), 400, "ValidationError")["violations"]
    assert (value["path"], value["nearest"]) == ("state", "pending")


def test_an_unexpected_body_is_refused(sandbox: Sandbox) -> None:
    """A body with keys is refused where none is expected; an empty object is accepted."""
    assert set(CONTROL) > BODILESS
    order = sandbox.place(card())
    for method, path in BODILESS:
        answer = sandbox.call(method, path, {"keep": "orders"})
        (violation,) = refused(answer, 400, "ValidationError")["violations"]
        assert violation["path"] == "keep"
    assert sandbox.read(order)["status"] == "new"
    assert sandbox.post("/control/reset/", {}).status_code == 200
