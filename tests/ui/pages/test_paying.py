"""Customers pay, fail or leave, and return to the shop."""

import pytest

from tests.support.driver import Sandbox, by
from tests.support.payer import WITH_PAGE, Payer, entered, order_page, payment_page, placed

ENDS = {"pay": "completed", "fail": "error", "cancel": "cancelled", "expire": "expired"}


@pytest.mark.rule("GEN-06", "ORD-09", "FLOW-14", "FLOW-15", "SET-36")
@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("method", WITH_PAGE)
def test_a_customer_goes_back_however_the_payment_ends(
    live: Sandbox, payer: Payer, method: str, end: str
) -> None:
    """The tester's button names the status; the return URL keeps query, fragment and port, and gets both IDs."""
    order = placed(live, method)
    page = payer.open(payment_page(order))
    assert live.status(order) == ("processing", "processing")
    assert f"order: {ENDS[end]}" in page.ids[f"sandbox-{end}"]
    payer.press(entered(payer, order) if end == "pay" else page, end)
    assert payer.arrived == (
        "http://shop.example:8443/thanks?basket=7&x=%20y"
        f"&order_id={order['id']}&project_id={order['project_id']}#top"
    )
    assert live.status(order) == (ENDS[end], ENDS[end])
    payer.arrived = None
    payer.open(payment_page(order))
    assert payer.arrived is not None, "the page of an ended payment redirects, too"


@pytest.mark.rule("FLOW-16")
@pytest.mark.parametrize(
    ("ending", "result"), [("pay", "result-paid"), ("fail", "result-failed"), ("cancel", "result-cancelled")]
)
def test_without_a_return_url_a_page_of_ours_says_how_it_ended(
    live: Sandbox, payer: Payer, ending: str, result: str
) -> None:
    """The payment's URL shows the result page again later."""
    order = live.place(by("wallet-web"))
    assert ending in payer.open(order_page(order)).buttons, "the page of the order continues to its attempt"
    page = payer.press(payer.open(payment_page(order)), ending)
    assert result in page.ids
    assert result in payer.open(payment_page(order)).ids
    assert payer.arrived is None


@pytest.mark.parametrize("method", [*WITH_PAGE, "bank-transfer"])
def test_leaving_the_page_changes_nothing(live: Sandbox, payer: Payer, method: str) -> None:
    """The page that a leaving customer sees says how long the payment stays open and links back."""
    order = placed(live, method)
    page = payer.open(payment_page(order))
    before = live.status(order)
    left_page = payer.open(f"{live.url}{next(link for link in page.links if link.endswith('/left/'))}")
    assert {"left", "back-to-payment"} <= left_page.ids.keys()
    assert live.status(order) == before
    assert payer.open(payment_page(order)).buttons == page.buttons
