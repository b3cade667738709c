"""The journal of calls can be filtered, counted and paged."""

from typing import Any

import pytest

from tests.support.driver import NOBODY, START, Sandbox, card, refused


@pytest.mark.rule("CTL-25")
def test_the_journal_can_be_filtered_and_counted(sandbox: Sandbox) -> None:
    """Filters are method, path, status and order; a trailing slash makes no difference."""
    order = sandbox.place(card())
    sandbox.read(order)
    sandbox.create(amount=0)
    sandbox.get(f"/v1/orders/{NOBODY}/")
    items = sandbox.get("/control/journal/").json()["items"]
    assert [(item["method"], item["path"], item["status"]) for item in items] == [
        ("POST", "/v1/orders/", 201),
        ("GET", f"/v1/orders/{order['id']}/", 200),
        ("POST", "/v1/orders/", 400),
        ("GET", f"/v1/orders/{NOBODY}/", 404),
    ]
    assert items[0]["at"] == START
    assert items[0]["order_id"] == order["id"]
    assert items[0]["request"]["transactions"] == [{"payment_method": "credit-card"}]
    assert items[0]["response"] == order
    assert items[1]["request"] is None

    def count(query: str) -> int:
        number: int = sandbox.get(f"/control/journal/?count=1&{query}").json()["count"]
        return number

    assert [count("method=GET"), count("path=/v1/orders"), count("status=400")] == [2, 2, 1]
    assert count(f"order_id={order['id']}") == 2
    assert count(f"order_id={order['id']}&method=GET&path=/v1/orders/{order['id']}") == 1


@pytest.mark.parametrize("name", ["journal", "webhooks", "actions", "orders"])
def test_pages_of_a_list_follow_each_other(watched: Sandbox, name: str) -> None:
    """The pages together equal the whole list, even if orders are created between them."""
    for _ in range(4):
        watched.pay(watched.place(card()))
    watched.settle()
    path, is_newest_first = f"/control/{name}/", name == "orders"
    whole = watched.get(path).json()["items"]
    seen: list[dict[str, Any]] = []
    while page := watched.get(
        path, params={"limit": 3, **({"before": seen[-1 if is_newest_first else 0]["id"]} if seen else {})}
    ).json()["items"]:
        seen = [*seen, *page] if is_newest_first else [*page, *seen]
        watched.place(card())
    assert [each["id"] for each in seen] == [each["id"] for each in whole]
    error = refused(watched.get(path, params={"before": "request-99"}), 400, "ValidationError")
    assert error["violations"][0]["path"] == "before"


def test_a_summary_has_no_bodies(watched: Sandbox) -> None:
    """Summaries of requests and webhooks omit bodies; a single entry has them."""
    watched.pay(watched.place(card()))
    watched.settle()
    whole = watched.get("/control/journal/").json()["items"][0]
    summary = watched.get("/control/journal/?summary=1").json()["items"][0]
    assert whole.keys() - summary.keys() == {"request", "response", "headers", "decision"}
    assert watched.get(f"/control/journal/{whole['id']}/").json() == whole
    assert whole["headers"]["request"]["Content-Type"] == "application/json"
    assert whole["headers"]["response"]["ETag"]
    webhook = watched.webhooks()[0]
    (short,) = watched.get("/control/webhooks/?summary=1&limit=1&state=delivered").json()["items"]
    assert "request" not in short["attempts"][0]
    assert watched.get(f"/control/webhooks/{webhook['id']}/").json() == webhook
    for path in ("/control/journal/request-99/", "/control/webhooks/nothing/"):
        refused(watched.get(path), 404, "NotFound")
