"""The page of an order offers what can pay it, and says how it ended."""

from collections.abc import Callable
from typing import Any

import pytest

from payment_sandbox.methods import ALL_METHODS, METHODS_BY_NAME
from tests.support.driver import CUSTOMER, LINES, LINES_TOTAL, Sandbox
from tests.support.payer import RETURN, Payer, order_page, placed

PANEL = {"expire", "cancel"}
"""The ends that a tester can choose before a method is chosen."""


@pytest.mark.rule("GEN-03", "GEN-04", "FLOW-02", "SET-61")
def test_the_order_page_offers_what_can_pay_it(sandbox: Sandbox) -> None:
    """Enabled, on the allow list, usable for this order, testable in this mode."""
    payer = Payer(sandbox)
    all_of_them = payer.open(order_page(sandbox.place(order_lines=LINES, customer=CUSTOMER)))
    offered = set(METHODS_BY_NAME) - {"bank-redirect-be", "wallet-apple"} | PANEL
    assert all_of_them.buttons == offered
    bare = payer.open(order_page(sandbox.place()))
    assert bare.buttons == offered - {"pay-later-a", "invoice-later-b"}
    listed = payer.open(order_page(sandbox.place(payment_methods=["wallet-web", "pay-later-a"])))
    assert listed.buttons == {"wallet-web"} | PANEL
    sandbox.settings(payment_methods=["credit-card"])
    assert payer.open(order_page(sandbox.place())).buttons == {"credit-card"} | PANEL


@pytest.mark.rule("FLOW-02", "SET-18")
@pytest.mark.parametrize("method", [method.name for method in ALL_METHODS])
def test_every_method_can_be_chosen_and_paid(live: Sandbox, payer: Payer, method: str) -> None:
    """From the order's page to the shop (SET-18)."""
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
    """As the merchant listed it."""
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
    """On the order's page, which says what happened."""
    order = live.place(return_url=RETURN)
    page = payer.press(payer.open(order_page(order)), "wallet-web")
    page = payer.press(page, ending)
    assert notice in page.ids["notice"].lower() or notice in page.text.lower()
    assert live.read(order)["status"] == "processing"
    payer.press(payer.press(page, "credit-card"), "pay")
    assert payer.arrived is not None
    found = live.read(order)
    assert (found["status"], len(found["transactions"])) == ("completed", 2)


ENDED: list[tuple[str, Callable[[Sandbox, dict[str, Any]], Any]]] = [
    ("result-expired", lambda live, order: live.advance("P1D")),
    ("result-cancelled", lambda live, order: live.delete(f"/v1/orders/{order['id']}/")),
    ("result-paid", lambda live, order: live.acted(order, "customer choose", payment_method="wallet-web")),
]


@pytest.mark.parametrize(("result", "end"), ENDED)
def test_an_order_that_has_ended_has_a_page_that_says_so(
    live: Sandbox, payer: Payer, result: str, end: Callable[[Sandbox, dict[str, Any]], Any]
) -> None:
    """Expired, cancelled or paid; nothing can be chosen there."""
    order = live.place()
    stale = payer.open(order_page(order))
    end(live, order)
    if result == "result-paid":
        live.acted(order, "customer pay")
    page = payer.open(order_page(order))
    assert result in page.ids
    assert page.buttons == set()
    before = live.read(order)
    assert result in payer.press(stale, "credit-card").ids
    assert live.read(order) == before


def test_an_order_with_an_attempt_leads_on_to_it(live: Sandbox, payer: Payer) -> None:
    """From its own address, too."""
    order = placed(live, "wallet-web")
    assert "pay" in payer.open(order_page(order)).buttons


def test_an_order_page_can_be_left(live: Sandbox, payer: Payer) -> None:
    """It says until when the order stays open."""
    order = live.place()
    page = payer.open(order_page(order))
    assert "sandbox-leave" in page.ids
    assert "result-open" in payer.open(f"{live.url}{next(x for x in page.links if 'result' in x)}").ids


@pytest.mark.rule("GEN-06")
@pytest.mark.parametrize(("result", "end"), ENDED)
def test_the_page_of_an_order_that_has_ended_leads_to_the_shop(
    live: Sandbox, payer: Payer, result: str, end: Callable[[Sandbox, dict[str, Any]], Any]
) -> None:
    """If there is a return_url; the return is recorded."""
    order = live.place(return_url=RETURN)
    end(live, order)
    if result == "result-paid":
        live.acted(order, "customer pay")
    payer.open(order_page(order))
    assert payer.arrived is not None
    assert payer.arrived.startswith(RETURN.partition("?")[0])
    (returned,) = live.get("/control/journal/").json()["returns"]
    assert returned["order_id"] == order["id"]


def test_a_tester_ends_an_order_before_a_method_is_chosen(sandbox: Sandbox, payer: Payer) -> None:
    """Cancelled by the shop, or expired, which moves the clock."""
    cancelled, expired = sandbox.place(), sandbox.place()
    assert "result-cancelled" in payer.press(payer.open(order_page(cancelled)), "cancel").ids
    assert sandbox.read(cancelled)["status"] == "cancelled"
    assert "result-expired" in payer.press(payer.open(order_page(expired)), "expire").ids
    assert sandbox.read(expired)["status"] == "expired"
    assert sandbox.now() == "2026-03-02T12:00:00.000000+00:00"
