"""The page that a bank QR code leads to, for scanners that are no banking app."""

from typing import Any

import pytest

from tests.support.codes import read_code
from tests.support.driver import Sandbox
from tests.support.payer import Page, Payer

RETURN = "http://shop.example/thanks"


def scanned(sandbox: Sandbox, payer: Payer, **request: Any) -> Page:
    """The page behind the code of a new QR request."""
    made = sandbox.post("/v1/bankqr/", {"amount": 1295, "return_url": RETURN, **request})
    assert made.status_code == 201, made.text
    image = payer.http.get(made.json()["qr_url"], timeout=10)
    return payer.open(read_code(image.content))


@pytest.fixture
def payer(sandbox: Sandbox) -> Payer:
    """A customer with a camera."""
    return Payer(sandbox)


def on(payer: Payer, page: Page, **fields: str) -> Page:
    """Go on to the bank."""
    return payer.press(page, "", **fields)


@pytest.mark.rule("QR-27")
def test_a_payer_chooses_a_bank_and_pays(sandbox: Sandbox, payer: Payer) -> None:
    """The order is made by the scan, for the fixed amount, and its page is the bank's."""
    page = scanned(sandbox, payer, description="Coffee", merchant_order_id="table-4")
    assert (page.ids["amount"], page.ids["description"]) == ("€12.95", "Coffee")
    assert all(
        bank in page.text for bank in ("Sandbank", "Duinbank", "Polderbank", "Terp & Zoon", "Waddenbank")
    )
    bank = on(payer, page, issuer_id="WADDNL2L")
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
    """With a point or a comma."""
    bank = on(payer, scanned(sandbox, payer, **BOUNDED), amount=typed)
    assert "pay" in bank.buttons
    assert sandbox.read(bank.url.split("/")[5])["amount"] == cents


@pytest.mark.parametrize(
    "typed",
    [
        "",
        " ",
        "20" + " " * 60 + "x",
        "4.99",
        "20.01",
        "0",
        "-5",
        "1e1",
        "NaN",
        "ten",
        "5.001",
        "9" * 30,
        "<b>",
        "1,000",
        "1.000",
        "1e999999",
        "1_0",
        "+5",
        "١٢",
    ],
)
def test_another_amount_is_refused_at_its_field(sandbox: Sandbox, payer: Payer, typed: str) -> None:
    """No order is made, and the bounds are told."""
    page = on(payer, scanned(sandbox, payer, **BOUNDED), amount=typed)
    assert page.status == 400
    assert "€5.00" in page.ids["error-amount"]
    assert sandbox.get("/control/agenda/").json()["items"] == []


def test_a_bank_that_is_not_listed_is_refused(sandbox: Sandbox, payer: Payer) -> None:
    """At its field."""
    page = on(payer, scanned(sandbox, payer), issuer_id="NOBANK")
    assert (page.status, "error-bank" in page.ids) == (400, True)


def test_a_form_that_is_sent_twice_makes_one_order(sandbox: Sandbox, payer: Payer) -> None:
    """The second post leads to the order of the first; a new page makes a new one."""
    page = scanned(sandbox, payer, one_off=False)
    first, second = on(payer, page), on(payer, page)
    assert first.url == second.url
    assert on(payer, payer.open(page.url)).url != first.url


def test_a_code_that_is_used_or_expired_says_so(sandbox: Sandbox, payer: Payer) -> None:
    """To who looks, and to who posts a page of before."""
    page = scanned(sandbox, payer)
    stale = payer.open(page.url)
    on(payer, page)
    assert "qr-used" in payer.open(page.url).ids
    assert "qr-used" in on(payer, stale).ids
    late = scanned(sandbox, payer)
    sandbox.advance("P1Y")
    assert "qr-expired" in on(payer, late).ids


def test_a_post_without_the_form_s_token_makes_nothing(sandbox: Sandbox, payer: Payer) -> None:
    """It leads back to the page."""
    page = on(payer, scanned(sandbox, payer), token="x.y")
    assert "continue" in page.ids
    assert sandbox.get("/control/agenda/").json()["items"] == []
