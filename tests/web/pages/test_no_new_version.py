"""What changes nothing makes no new version."""

from typing import Any

import pytest
import requests

from tests.support.driver import Sandbox, card


def etag(sandbox: Sandbox, order: dict[str, Any]) -> str:
    """The order's ETag."""
    return sandbox.get(f"/v1/orders/{order['id']}/").headers["ETag"]


@pytest.mark.parametrize("hosted", [True, False])
def test_reloading_a_page_keeps_the_etag(sandbox: Sandbox, hosted: bool) -> None:
    """The first visit may change something; the next ones do not, so If-Match still holds."""
    order = sandbox.place() if hosted else sandbox.place(card())
    page = order["order_url"] if hosted else order["transactions"][0]["payment_url"]
    assert requests.get(f"http://{page}", timeout=10).status_code == 200
    before = etag(sandbox, order)
    for _ in range(2):
        assert requests.get(f"http://{page}", timeout=10).status_code == 200
    assert etag(sandbox, order) == before
    answer = sandbox.put(f"/v1/orders/{order['id']}/", {"description": "new"}, headers={"If-Match": before})
    assert answer.status_code == 200
    assert etag(sandbox, order) != before


def test_a_second_visit_by_a_call_changes_nothing(sandbox: Sandbox) -> None:
    """The answer has the ETag of the first."""
    order = sandbox.place(card())
    first = sandbox.act(order, "customer visit").headers["ETag"]
    assert sandbox.act(order, "customer visit").headers["ETag"] == first


def test_an_update_to_what_is_already_so_changes_nothing(sandbox: Sandbox) -> None:
    """The whole order as read, for example."""
    order = sandbox.place(card(), description="socks")
    before = etag(sandbox, order)
    assert sandbox.put(f"/v1/orders/{order['id']}/", order).headers["ETag"] == before
