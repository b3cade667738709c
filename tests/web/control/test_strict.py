"""No control call ignores any part of its request."""

import pytest

from tests.support.described import description
from tests.support.driver import Sandbox, card, refused

CONTROL = [
    (method, path)
    for path, operations in description()["paths"].items()
    for method in operations
    if path.startswith("/control/")
]

BODILESS = [
    (method.upper(), path)
    for path, operations in description()["paths"].items()
    for method, operation in operations.items()
    if path.startswith("/control/") and method != "get" and "requestBody" not in operation
]


def test_some_calls_take_no_body() -> None:
    """The tests of bodiless calls have calls to test."""
    assert ("POST", "/control/reset/") in BODILESS
    assert len(BODILESS) == 4


@pytest.mark.parametrize(("method", "path"), CONTROL)
def test_an_unknown_query_key_is_refused(sandbox: Sandbox, method: str, path: str) -> None:
    """Every route refuses an unknown key before it does anything."""
    address = path.replace("{order_id}", "x").replace("{qr_id}", "x").replace("{delivery_id}", "x")
    before = sandbox.get("/control/state/").json()
    answer = sandbox.call(method.upper(), f"{address}?sttae=pending")
    (violation,) = refused(answer, 400, "ValidationError")["violations"]
    assert violation["path"] == "sttae"
    assert sandbox.get("/control/state/").json() == before


def test_the_nearest_known_word_is_suggested(sandbox: Sandbox) -> None:
    """Misspelled keys and values get the most similar known word."""
    (key,) = refused(sandbox.get("/control/webhooks/?sttae=pending"), 400, "ValidationError")["violations"]
    assert (key["nearest"], key["allowed"]) == ("state", ["before", "limit", "order_id", "state", "summary"])
    (value,) = refused(sandbox.get("/control/webhooks/?state=pendign"), 400, "ValidationError")["violations"]
    assert (value["path"], value["nearest"]) == ("state", "pending")


@pytest.mark.parametrize(("method", "path"), BODILESS)
def test_an_unexpected_body_is_refused(sandbox: Sandbox, method: str, path: str) -> None:
    """A body with keys is refused; an empty object is accepted."""
    path = path.replace("{delivery_id}", "x")
    order = sandbox.place(card())
    answer = sandbox.call(method, path, {"keep": "orders"})
    assert [violation["path"] for violation in refused(answer, 400, "ValidationError")["violations"]] == [
        "keep"
    ]
    assert sandbox.read(order)["status"] == "new"
    assert sandbox.call(method, path, {}).status_code in (200, 404)
