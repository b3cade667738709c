"""Calls and visits without effect do not change an order's ETag."""

from typing import Any

import pytest
import requests

from tests.support.driver import Sandbox, card


def read_etag(sandbox: Sandbox, order: dict[str, Any]) -> str:
    """Read the order's ETag."""
    return sandbox.get(f"/v1/orders/{order['id']}/").headers["ETag"]


@pytest.mark.parametrize("hosted", [True, False])
def test_reloading_a_page_keeps_the_etag(sandbox: Sandbox, hosted: bool) -> None:
    """Only the first visit may change the order, so ``If-Match`` succeeds after later visits."""
    order = sandbox.place() if hosted else sandbox.place(card())
    page = order["order_url"] if hosted else order["transactions"][0]["payment_url"]
    assert requests.get(f"http://{page}").status_code == 200
    before = read_etag(sandbox, order)
    for _ in range(2):
        assert requests.get(f"http://{page}").status_code == 200
    assert read_etag(sandbox, order) == before
    answer = sandbox.put(f"/v1/orders/{order['id']}/", {"description": "new"}, headers={"If-Match": before})
    assert answer.status_code == 200
    assert read_etag(sandbox, order) != before


def test_a_second_visit_by_a_call_changes_nothing(sandbox: Sandbox) -> None:
    """A second visit returns the ETag of the first."""
    order = sandbox.place(card())
    first = sandbox.act(order, "customer visit").headers["ETag"]
    assert sandbox.act(order, "customer visit").headers["ETag"] == first


def test_an_update_without_changes_keeps_the_etag(sandbox: Sandbox) -> None:
    """An update with the order's current values keeps the ETag."""
    order = sandbox.place(card(), description="socks")
    before = read_etag(sandbox, order)
    assert sandbox.put(f"/v1/orders/{order['id']}/", order).headers["ETag"] == before
