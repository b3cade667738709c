"""Customers pay, fail or leave, and return to the shop."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.support.driver import CUSTOMER, LINES, LINES_TOTAL, Sandbox, by
from tests.support.payer import RETURN, WITH_PAGE, Payer, entered, order_page, payment_page, placed

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


OUTCOMES = [
    ("pay", "pays", "pays@example.com"),
    ("fail", "fails", "fails@example.com"),
    ("cancel", "cancels", "cancels@example.com"),
]


@pytest.mark.parametrize(("button", "word", "trigger"), OUTCOMES)
@pytest.mark.parametrize("method", WITH_PAGE)
def test_four_routes_lead_to_one_event_log(
    project: Callable[..., Sandbox], method: str, button: str, word: str, trigger: str
) -> None:
    """A click, a control call, a scenario rule and a trigger value cause the same events."""

    def log(route: str) -> Any:
        sandbox = project(mode="live", seed=9, webhook_url="http://127.0.0.1:9/")
        address = trigger if route == "trigger" else "jan@example.com"
        reason = "Do not honour" if button == "fail" else None
        if route == "rule":
            sandbox.scenario(
                {"then": {"customer": word, "after": "PT10S", **({"reason": reason} if reason else {})}}
            )
        order = placed(sandbox, method, customer={**CUSTOMER, "email_address": address})
        sandbox.advance("PT10S")
        if route == "call":
            sandbox.acted(order, f"customer {button}", **({"reason": reason} if reason else {}))
        if route == "click":
            payer = Payer(sandbox)
            page = payer.open(payment_page(order))
            if "code" in page.ids and button == "pay":
                page = payer.open(f"{payment_page(order)}scan/")
            payer.press(page, button)
        final = sandbox.read(order)
        attempts = json.dumps([{**attempt, "reason": None} for attempt in final["transactions"]])
        for own_id in (final["project_id"], final["merchant_id"]):
            attempts = attempts.replace(own_id, "")
        return final["status"], attempts, sorted(webhook["order_id"] for webhook in sandbox.webhooks())

    expected = log("click")
    for route in ("call", "rule", "trigger"):
        assert log(route) == expected, route


@pytest.mark.parametrize("method", ["credit-card", "pay-later-a"])
def test_an_authorization_that_shows_as_accepted_leads_back(
    project: Callable[..., Sandbox], method: str
) -> None:
    """An accepted order redirects to the shop, as the customer has nothing more to do."""
    sandbox = project(authorized_status="accepted")
    transaction = by(method, capture_mode="manual")
    order = sandbox.place(
        transaction, amount=LINES_TOTAL, order_lines=LINES, customer=CUSTOMER, return_url=RETURN
    )
    payer = Payer(sandbox)
    payer.press(payer.open(payment_page(order)), "pay")
    assert payer.arrived is not None
    assert sandbox.status(order) == ("accepted", "accepted")
