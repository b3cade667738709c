"""The page of an order offers methods that can pay it, and shows the result."""

from collections.abc import Callable
from typing import Any

import pytest

from payment_sandbox.methods import ALL_METHODS, METHODS_BY_NAME
from tests.support.driver import CUSTOMER, LINES, LINES_TOTAL, Sandbox
from tests.support.payer import RETURN, Payer, order_page

PANEL = {"expire", "cancel"}
"""The outcomes that a tester can choose before a method is chosen."""


@pytest.mark.rule("GEN-03", "GEN-04", "FLOW-02", "SET-61")
def test_the_order_page_offers_what_can_pay_it(sandbox: Sandbox) -> None:
    """The page offers methods that are enabled, allowed, usable for the order and testable."""
    payer = Payer(sandbox)
    full_page = payer.open(order_page(sandbox.place(order_lines=LINES, customer=CUSTOMER)))
    offered = set(METHODS_BY_NAME) - {"bank-redirect-be", "wallet-apple"} | PANEL
    assert full_page.buttons == offered
    bare = payer.open(order_page(sandbox.place()))
    assert bare.buttons == offered - {"pay-later-a", "invoice-later-b"}
    listed = payer.open(order_page(sandbox.place(payment_methods=["wallet-web", "pay-later-a"])))
    assert listed.buttons == {"wallet-web"} | PANEL
    sandbox.settings(payment_methods=["credit-card"])
    assert payer.open(order_page(sandbox.place())).buttons == {"credit-card"} | PANEL


@pytest.mark.rule("FLOW-02", "SET-18")
@pytest.mark.parametrize("method", [method.name for method in ALL_METHODS])
def test_every_method_can_be_chosen_and_paid(live: Sandbox, payer: Payer, method: str) -> None:
    """The customer can choose each method, pay and return to the shop (SET-18)."""
    order = live.place(amount=LINES_TOTAL, order_lines=LINES, customer=CUSTOMER, return_url=RETURN)
    page = payer.press(payer.open(order_page(order)), method)
    if "issuer-SBXANL2A" in page.ids:
        assert live.read(order)["transactions"] == [], "the bank is chosen first"
        page = payer.press(page, "SBXANL2A")
    attempt = live.read(order)["transactions"][-1]
    assert attempt["payment_method"] == method
    if "code" in page.ids:
        page = payer.open(f"{attempt['payment_url']}scan/")
    for button in ("pay", "credit"):
        if button in page.buttons:
            payer.press(page, button)
            break
    if method != "invoice-later-b":
        assert payer.arrived is not None
    assert live.read(order)["status"] in ("completed", "accepted")


def test_an_alias_is_offered_under_its_name(sandbox: Sandbox) -> None:
    """The page offers an alias by the name that the merchant listed."""
    sandbox.settings(aliases={"my-bank-button": "bank-redirect-nl"})
    order = sandbox.place(payment_methods=["my-bank-button"])
    payer = Payer(sandbox)
    page = payer.press(payer.open(order_page(order)), "my-bank-button", issuer_id="POLDNL2R")
    assert "Polderbank" in page.text
    assert sandbox.read(order)["transactions"][0]["payment_method"] == "my-bank-button"


@pytest.mark.parametrize(("ending", "notice"), [("fail", "failed"), ("cancel", "cancelled")])
def test_after_a_failed_attempt_another_can_be_chosen(
    live: Sandbox, payer: Payer, ending: str, notice: str
) -> None:
    """The order's page shows the failure with its reason, and the customer can pay with another method."""
    order = live.place(return_url=RETURN)
    page = payer.press(payer.open(order_page(order)), "wallet-web")
    page = payer.press(page, ending, reason="Suspected fraud")
    assert ("Suspected fraud" in page.ids.get("notice-reason", "")) == (ending == "fail")
    assert notice in page.ids["notice"].lower() or notice in page.text.lower()
    assert live.read(order)["status"] == "processing"
    payer.press(payer.press(page, "credit-card"), "pay")
    assert payer.arrived is not None
    final = live.read(order)
    assert (final["status"], len(final["transactions"])) == ("completed", 2)


def choose_wallet(live: Sandbox, order: dict[str, Any]) -> dict[str, Any]:
    """Choose a method on the page of an order."""
    return live.acted(order, "customer choose", payment_method="wallet-web")


ENDED: list[tuple[str, Callable[[Sandbox, dict[str, Any]], Any]]] = [
    ("result-expired", lambda live, order: live.advance("P1D")),
    ("result-cancelled", lambda live, order: live.delete(f"/v1/orders/{order['id']}/")),
    ("result-paid", lambda live, order: live.pay(choose_wallet(live, order))),
]


@pytest.mark.rule("GEN-06")
@pytest.mark.parametrize(("result", "end"), ENDED)
def test_the_page_of_an_ended_order_shows_its_result(
    live: Sandbox, payer: Payer, result: str, end: Callable[[Sandbox, dict[str, Any]], Any]
) -> None:
    """An ended order shows its result and offers no method; with a return_url, its page redirects to the shop."""
    order, returning = live.place(), live.place(return_url=RETURN)
    stale = payer.open(order_page(order))
    assert "result-open" in payer.open(f"{live.url}{next(x for x in stale.links if 'result' in x)}").ids
    for each in (order, returning):
        end(live, each)
    page = payer.open(order_page(order))
    assert result in page.ids
    assert page.buttons == set()
    before = live.read(order)
    assert result in payer.press(stale, "credit-card").ids
    assert live.read(order) == before
    payer.open(order_page(returning))
    assert payer.arrived is not None
    assert payer.arrived.startswith(RETURN.partition("?")[0])
    (returned,) = live.get("/control/journal/").json()["returns"]
    assert returned["order_id"] == returning["id"]


def test_a_tester_ends_an_order_before_a_method_is_chosen(sandbox: Sandbox, payer: Payer) -> None:
    """A tester can cancel an order or let it expire, which advances the clock."""
    cancelled, expired = sandbox.place(), sandbox.place()
    assert "result-cancelled" in payer.press(payer.open(order_page(cancelled)), "cancel").ids
    assert sandbox.read(cancelled)["status"] == "cancelled"
    assert "result-expired" in payer.press(payer.open(order_page(expired)), "expire").ids
    assert sandbox.read(expired)["status"] == "expired"
    assert sandbox.now() == "2026-03-02T12:00:00.000000+00:00"
