"""The page of a bank QR code, for scanners other than banking apps."""

from typing import Any

import pytest

from tests.support.codes import read_code
from tests.support.driver import Sandbox
from tests.support.payer import Page, Payer

RETURN = "http://shop.example/thanks"


def open_new_code(sandbox: Sandbox, payer: Payer, **request: Any) -> Page:
    """Open the page of a new QR request by its code."""
    created = sandbox.post("/v1/bankqr/", {"amount": 1295, "return_url": RETURN, **request})
    assert created.status_code == 201, created.text
    image = payer.http.get(created.json()["qr_url"])
    return payer.open(read_code(image.content))


@pytest.fixture
def payer(sandbox: Sandbox) -> Payer:
    """A customer with a camera."""
    return Payer(sandbox)


def go_to_bank(payer: Payer, page: Page, **fields: str) -> Page:
    """Continue to the bank."""
    return payer.press(page, "", **fields)


@pytest.mark.rule("QR-27")
def test_a_payer_chooses_a_bank_and_pays(sandbox: Sandbox, payer: Payer) -> None:
    """Choosing a bank creates an order with the fixed amount, and the bank's page opens."""
    page = open_new_code(sandbox, payer, description="Coffee", merchant_order_id="table-4")
    assert (page.ids["amount"], page.ids["description"]) == ("€12.95", "Coffee")
    assert all(
        bank in page.text for bank in ("Sandbank", "Duinbank", "Polderbank", "Terp & Zoon", "Waddenbank")
    )
    bank = go_to_bank(payer, page, issuer_id="WADDNL2L")
    assert "Waddenbank" in bank.text
    payer.press(bank, "pay")
    assert payer.arrived is not None
    order = sandbox.read(payer.arrived.partition("order_id=")[2].partition("&")[0])
    assert (order["status"], order["amount"], order["flags"]) == (
        "completed",
        1295,
        ["is-test", "from-bankqr"],
    )


BOUNDED = {"amount": 1000, "amount_changeable": True, "amount_min": 500, "amount_max": 2000}


@pytest.mark.parametrize(("typed", "cents"), [("5", 500), ("20.00", 2000), ("7,25", 725), (" 10 ", 1000)])
def test_a_payer_may_change_the_amount_within_its_bounds(
    sandbox: Sandbox, payer: Payer, typed: str, cents: int
) -> None:
    """The amount may have a decimal point or comma."""
    bank = go_to_bank(payer, open_new_code(sandbox, payer, **BOUNDED), amount=typed)
    assert "pay" in bank.buttons
    assert sandbox.read(bank.url.split("/")[5])["amount"] == cents


WRONG_AMOUNTS = ["", f"20{' ' * 60}x", "4.99", "20.01", "-5", "ten", "5.001", "1,000", "1.000"]
WRONG_AMOUNTS += ["NaN", "9" * 30, "<b>", "1e999999", "1_0", "١٢"]


def test_another_amount_or_bank_is_refused_at_its_field(sandbox: Sandbox, payer: Payer) -> None:
    """The error names the bounds, and no order is created, as by a post with a wrong token."""
    page = open_new_code(sandbox, payer, **BOUNDED)
    for typed in WRONG_AMOUNTS:
        refused = go_to_bank(payer, page, amount=typed)
        assert (refused.status, "€5.00" in refused.ids["error-amount"]) == (400, True), typed
    refused = go_to_bank(payer, page, issuer_id="NOBANK")
    assert (refused.status, "error-bank" in refused.ids) == (400, True)
    assert "continue" in go_to_bank(payer, page, token="x.y").ids
    assert sandbox.get("/control/agenda/").json()["items"] == []


def test_a_code_that_is_used_or_expired_says_so(sandbox: Sandbox, payer: Payer) -> None:
    """Reloads and posts of an outdated page show the code's state, and lead to a payment that is under way."""
    page = open_new_code(sandbox, payer)
    stale = payer.open(page.url)
    bank = go_to_bank(payer, page)
    used = payer.open(page.url)
    (payment_path,) = {link for link in used.links if link.startswith("/pay/")}
    assert ("qr-used" in used.ids, payment_path in bank.url) == (True, True)
    assert "qr-used" in go_to_bank(payer, stale).ids
    payer.press(bank, "pay")
    assert "go-there" not in payer.open(page.url).ids
    late = open_new_code(sandbox, payer)
    sandbox.advance("P1Y")
    assert "qr-expired" in go_to_bank(payer, late).ids
