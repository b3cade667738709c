"""No control call ignores any part of its request."""

from tests.support.described import description
from tests.support.driver import Sandbox, card, refused

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
