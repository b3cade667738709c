"""The page of each method shows the customer the next step."""

import re

import pytest
import requests
from PIL import Image, ImageDraw

from payment_sandbox.ui.pages.language import DEFAULT_TAG, Language
from tests.support.codes import read_code
from tests.support.driver import CUSTOMER, LINES, LINES_TOTAL, Sandbox, by
from tests.support.payer import Payer, order_page, payment_page, placed


def test_a_transfer_shows_where_to_pay(live: Sandbox, payer: Payer) -> None:
    """The page shows the order's account and reference; the tester can credit the transfer, in live mode."""
    order = placed(live, "bank-transfer")
    details = order["transactions"][0]["payment_method_details"]
    page = payer.open(payment_page(order))
    assert page.ids["transfer-iban"] == details["creditor_iban"]
    assert page.ids["transfer-reference"] == details["reference"]
    payer.press(page, "credit")
    assert live.status(order) == ("completed", "completed")
    assert payer.arrived is not None
    live.settings(mode="test")
    page = payer.open(payment_page(placed(live, "bank-transfer")))
    assert ("no-credit" in page.ids, "credit" in page.buttons) == (True, False)


def test_an_invoice_says_what_happens_next(live: Sandbox, payer: Payer) -> None:
    """The customer has nothing to do but return to the shop."""
    order = placed(live, "invoice-later-b")
    page = payer.open(payment_page(order))
    assert page.buttons == set()
    payer.open(f"{live.url}{next(link for link in page.links if link.endswith('/back/'))}")
    assert payer.arrived is not None
    assert "order_id=" in payer.arrived
    (returned,) = live.get("/control/journal/").json()["returns"]
    assert returned["order_id"] == order["id"]
    actions = [action["action"] for action in live.get("/control/actions/").json()["items"]]
    assert actions == ["visit", "return"]
    timeline = live.get("/control/timeline/").json()["items"]
    assert timeline[-1]["label"] == "returns to the shop"
    bare = live.place(by("bank-transfer"))
    url = f"{live.url}/pay/{live.project['project_id']}/{bare['id']}/back/"
    assert live.http.get(url, allow_redirects=False).status_code == 404, "it has no return_url"


def read_svg(svg: str) -> str:
    """Return the content of an SVG code, whose modules are horizontal strokes, as segno draws them."""
    (size,) = re.findall(r'viewBox="0 0 (\d+) \d+"', svg)
    (strokes,) = re.findall(r'class="qrline"[^>]*d="([^"]+)"|stroke="#000"[^>]*d="([^"]+)"', svg)
    image = Image.new("L", (int(size), int(size)), 255)
    x = y = 0.0
    for command, numbers in re.findall(r"([Mmh])([-\d. ]+)", "".join(strokes)):
        values = [float(number) for number in re.findall(r"-?[\d.]+", numbers)]
        if command == "h":
            ImageDraw.Draw(image).line((x, y - 0.5, x + values[0] - 1, y - 0.5), fill=0)
            x += values[0]
        else:
            x, y = values if command == "M" else (x + values[0], y + values[1])
    return read_code(image.resize((8 * image.width, 8 * image.height), Image.Resampling.NEAREST))


@pytest.mark.rule("WQR-01", "FLOW-03")
def test_a_wallet_app_scans_the_code_on_the_page(live: Sandbox, payer: Payer) -> None:
    """The code opens the confirmation in the app; the waiting page redirects to the shop, or shows the result."""
    order = placed(live, "wallet-qr")
    page = payer.open(payment_page(order))
    image = payer.http.get(f"{page.url}code.svg")
    phone = Payer(live)
    phone.press(phone.open(read_svg(image.text)), "pay")
    assert live.status(order) == ("completed", "completed")
    payer.open(payment_page(order))
    assert payer.arrived == phone.arrived is not None
    bare = live.place(by("wallet-qr"))
    assert "result-paid" in payer.press(payer.open(f"{payment_page(bare)}scan/"), "pay").ids


@pytest.mark.rule("GPAY-03")
def test_a_device_wallet_passes_3d_secure_with_its_card_number(live: Sandbox, payer: Payer) -> None:
    """PAN_ONLY requires 3-D Secure, and CRYPTOGRAM_3DS does not."""
    order = placed(live, "wallet-google")
    step = payer.press(payer.open(payment_page(order)), "pay", authorization="PAN_ONLY")
    assert live.status(order) == ("processing", "processing")
    payer.press(step, "pay")
    shown = live.read(order)["transactions"][0]["payment_method_details"]
    assert (shown["authorization_method"], shown["three_d_secure"]) == ("PAN_ONLY", True)
    other = placed(live, "wallet-google")
    payer.press(payer.open(payment_page(other)), "pay", authorization="CRYPTOGRAM_3DS")
    shown = live.read(other)["transactions"][0]["payment_method_details"]
    assert (shown["authorization_method"], shown["three_d_secure"]) == ("CRYPTOGRAM_3DS", False)


def test_the_page_shows_a_pending_screening(live: Sandbox, payer: Payer) -> None:
    """The page shows a pending screening; after a refusal another method can be chosen, which may be approved."""
    live.scenario({"then": {"screening": "needs-time", "then": "declined", "after": "P1D"}})
    order = live.place(amount=LINES_TOTAL, order_lines=LINES, customer=CUSTOMER)
    page = payer.press(payer.open(order_page(order)), "pay-later-a")
    assert "check-again" in page.ids
    assert {"approve", "decline", "error", "expire"} == page.buttons
    page = payer.press(page, "decline")
    assert "notice" in page.ids
    assert "wallet-web" in page.buttons
    payer.press(page, "pay-later-a")
    live.acted(order, "screening approve")
    payer.press(payer.open(payment_page(live.read(order))), "pay")
    assert live.status(order) == ("completed", "completed")


@pytest.mark.parametrize(
    ("method", "query"),
    [
        ("wallet-web", "card=challenge"),
        ("bank-redirect-nl", "authorization=PAN_ONLY"),
        ("wallet-google", "card=challenge"),
        ("credit-card", "authorization=PAN_ONLY"),
        ("credit-card", "card=frictionless"),
        ("wallet-apple", "authorization=PAN_ONLY"),
    ],
)
def test_steps_of_other_payments_are_refused(live: Sandbox, payer: Payer, method: str, query: str) -> None:
    """A payment's page neither shows nor accepts steps of other payments."""
    order = placed(live, method)
    page = payer.open(payment_page(order))
    assert "notice" in payer.open(f"{payment_page(order)}secure/?{query}").ids
    form = {"token": page.form_with("pay").fields["token"], "action": "pay", **dict([query.split("=")])}
    requests.post(f"http://{payment_page(order)}secure/", data=form)
    assert live.status(order) == ("processing", "processing")


def test_a_refused_screening_is_no_cancellation(live: Sandbox, payer: Payer) -> None:
    """The page says that the method was refused for this customer."""
    customer = {**CUSTOMER, "email_address": "declined@example.com"}
    order = live.place(amount=LINES_TOTAL, order_lines=LINES, customer=customer)
    page = payer.press(payer.open(order_page(order)), "invoice-later-b")
    assert page.ids["notice"].startswith(Language(DEFAULT_TAG).say("notice_declined"))
    assert "declined this customer" in page.ids["notice-reason"]
