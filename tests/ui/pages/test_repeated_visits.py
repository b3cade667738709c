"""Double clicks, second tabs, late posts and HEAD requests have no further effect, also on the ETag."""

import re
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import requests

from payment_sandbox.operations.act import act_on_attempt
from payment_sandbox.orders.actions import Action
from payment_sandbox.orders.refusals import ActionNotPossible
from tests.support.driver import Sandbox, card
from tests.support.payer import Payer, order_page, payment_page, placed


def test_a_double_click_pays_once(live: Sandbox, payer: Payer) -> None:
    """The second click leads to the same page as the first."""
    order = placed(live, "wallet-web")
    page = payer.open(payment_page(order))
    for _ in range(2):
        payer.arrived = None
        payer.press(page, "pay")
        assert payer.arrived is not None
    assert [event["event"] for event in live.read(order)["transactions"][0]["events"]] == [
        "new",
        "processing",
        "completed",
    ]


def test_a_double_click_chooses_once(live: Sandbox, payer: Payer) -> None:
    """Two posts of one form create one attempt; going back and choosing another method creates a second."""
    order = live.place()
    page = payer.open(order_page(order))
    for _ in range(2):
        assert "pay" in payer.press(page, "wallet-web").buttons
        assert len(live.read(order)["transactions"]) == 1
    payer.press(page, "credit-card")
    assert [attempt["status"] for attempt in live.read(order)["transactions"]] == ["cancelled", "processing"]


@pytest.mark.parametrize("late", ["pay", "cancel", "fail"])
def test_a_second_tab_cannot_change_a_completed_payment(live: Sandbox, payer: Payer, late: str) -> None:
    """A second tab cannot change a completed payment."""
    order = placed(live, "wallet-web")
    first, second = payer.open(payment_page(order)), payer.open(payment_page(order))
    payer.press(first, "pay")
    before = live.read(order)
    payer.press(second, late)
    assert live.read(order) == before


def test_an_attempt_that_was_given_up_cannot_be_paid(live: Sandbox) -> None:
    """A payment is refused even if its attempt ends after its page was checked."""
    order = live.place()
    for method in ("wallet-web", "credit-card"):
        live.acted(order, "customer choose", payment_method=method)
    given_up = live.read(order)["transactions"][0]["id"]
    with pytest.raises(ActionNotPossible):
        act_on_attempt(live.project_in_process, order["id"], given_up, Action("customer", "pay"))


def test_a_post_after_expiry_changes_nothing(live: Sandbox, payer: Payer) -> None:
    """A late post shows the result page, as a reload does."""
    order = placed(live, "wallet-web", return_url=...)
    page = payer.open(payment_page(order))
    live.advance("PT30M")
    assert "result-expired" in payer.press(page, "pay").ids
    assert live.status(order) == ("expired", "expired")


@pytest.mark.parametrize("path", ["", "scan/"])
def test_a_head_request_is_no_visit(live: Sandbox, path: str) -> None:
    """A HEAD request, as sent for link previews, changes no status, also at the address of a code."""
    order = placed(live, "wallet-qr")
    assert requests.head(f"http://{payment_page(order)}{path}").status_code == 200
    assert live.status(order) == ("new", "new")


def test_a_qr_form_sent_twice_at_once_makes_one_order(sandbox: Sandbox) -> None:
    """Two concurrent posts of one form lead to the same page; a reloaded form creates a new order."""
    request = sandbox.post("/v1/bankqr/", {"amount": 5, "one_off": False}).json()
    address = request["qr_url"].removesuffix(".png") + "/"
    addresses = set()
    for _ in range(10):
        page = requests.get(address).text
        (token,) = re.findall(r'name="token" value="([^"]+)"', page)
        form = {"token": token, "issuer_id": "SBXANL2A"}

        def send(_: int, form: dict[str, str] = form) -> str:
            return requests.post(address, data=form, allow_redirects=False).headers["Location"]

        with ThreadPoolExecutor(2) as threads:
            first, second = threads.map(send, range(2))
        assert first == second
        addresses.add(first)
    assert len(addresses) == 10


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
