"""Stored cards and QR codes are created on their page, and a command charges a card."""

import pytest

from tests.support.dashboard import Dashboard, run_in_shell
from tests.support.driver import Sandbox


@pytest.mark.parametrize("use", ["one-click", "recurring"])
def test_a_test_card_is_stored_by_one_click(sandbox: Sandbox, use: str) -> None:
    """The stored card is listed with its details, and a command charges it."""
    browser = Dashboard(sandbox)
    page = browser.open("simulate/")
    form = page.form_to("simulate/cards/")
    page = browser.send(form, {"card": "mastercard", "use": use, "amount": "5,50"}, page)
    assert page.ids["notice"].startswith("Stored 510510******5100")
    for words in ("Mastercard", "5100", "12/2031", "J. de Vries", "€5.50"):
        assert words in page.ids["cards"], words
    run_in_shell(f"{page.ids['charge-1']} -sS --fail", sandbox.key)
    charged = sandbox.get("/control/orders/").json()["items"][0]
    assert charged["amount"] == 550
    assert "Choose one of: " in browser.send(form, {"card": "declined"}, page).ids["notice"]


def test_a_qr_code_is_made_by_one_click(sandbox: Sandbox) -> None:
    """A QR code can be created and scanned; an invalid one is refused and the form keeps its values."""
    browser = Dashboard(sandbox)
    page = browser.open("simulate/")
    form = page.form_to("simulate/codes/")
    refused = browser.send(form, {"amount": "", "description": "Table 4"}, page)
    assert refused.ids["notice"] == "Enter an amount, or let the payer change it"
    assert refused.form_to("simulate/codes/").fields["description"] == "Table 4"
    page = browser.send(form, {"amount": "", "changeable": "1", "reusable": "1"}, page)
    assert "Any amount" in page.ids["codes"]
    page = browser.send(form, {"amount": "7.25", "description": "Table 4"}, page)
    code = next(link for link in page.links if "/qr/" in link)
    assert browser.http.get(f"{sandbox.url}{code.rstrip('/')}.png").content.startswith(b"\x89PNG")
    sandbox.post(f"/control/bankqr/{code.split('/')[-2]}/scan/")
    assert "used" in browser.open("simulate/").ids["codes"]
