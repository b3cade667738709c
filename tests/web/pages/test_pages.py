"""The pages where customers pay, as a browser without scripts sees them."""

from collections.abc import Callable
from typing import Any

import pytest
import requests

from payment_sandbox.methods import ALL, BY_NAME
from payment_sandbox.orders.cards import CARDS
from payment_sandbox.orders.customers import LOCALES
from payment_sandbox.serving.server import Server
from payment_sandbox.web.docs.library import written
from payment_sandbox.web.pages.cardform import is_luhn
from payment_sandbox.web.pages.language import DEFAULT, Language, phrases
from tests.support.driver import CUSTOMER, LINES, LINES_TOTAL, Sandbox, by, card
from tests.support.payer import Page, Payer, order_page, payment_page

RETURN = "http://shop.example:8443/thanks?basket=7&x=%20y#top"
WITH_PAGE = [
    method.name for method in ALL if method.capabilities.page in ("card", "login", "sheet", "scan", "terms")
]
NOBODY = "00000000-0000-4000-8000-000000000000"


def placed(sandbox: Sandbox, method: str, **more: Any) -> dict[str, Any]:
    """An order with lines and customer, so that every method can pay it."""
    fields = {"amount": LINES_TOTAL, "order_lines": LINES, "customer": CUSTOMER, "return_url": RETURN}
    return sandbox.place(by(method), **{**fields, **more})


def entered(payer: Payer, order: dict[str, Any]) -> Page:
    """The page where this order is confirmed: for a scanned code, what the app shows."""
    page = payer.open(payment_page(order))
    return payer.open(f"{payment_page(order)}scan/") if "code" in page.ids else page


@pytest.fixture
def payer(live: Sandbox) -> Payer:
    """A customer of a project in mode live, where every method plays out."""
    return Payer(live)


# Endings and the way back


@pytest.mark.rule("GEN-06", "ORD-09", "FLOW-14", "SET-36")
@pytest.mark.parametrize("method", WITH_PAGE)
def test_a_customer_pays_and_goes_back(live: Sandbox, payer: Payer, method: str) -> None:
    """To return_url with both ids appended, its own query, fragment and port kept."""
    order = placed(live, method)
    page = entered(payer, order)
    assert live.status(order) == ("processing", "processing")
    payer.press(page, "pay")
    assert payer.arrived == (
        "http://shop.example:8443/thanks?basket=7&x=%20y"
        f"&order_id={order['id']}&project_id={order['project_id']}#top"
    )
    assert live.status(order) == ("completed", "completed")


@pytest.mark.rule("FLOW-15")
@pytest.mark.parametrize("ending", ["fail", "cancel"])
@pytest.mark.parametrize("method", WITH_PAGE)
def test_a_customer_goes_back_without_paying(live: Sandbox, payer: Payer, method: str, ending: str) -> None:
    """With the same ids; the tester's corner lets it fail."""
    order = placed(live, method)
    page = payer.open(payment_page(order))
    payer.press(page, ending)
    assert payer.arrived is not None
    assert f"order_id={order['id']}" in payer.arrived
    expected = "error" if ending == "fail" else "cancelled"
    assert live.status(order) == (expected, expected)


@pytest.mark.rule("FLOW-16")
@pytest.mark.parametrize(
    ("ending", "result"), [("pay", "result-paid"), ("fail", "result-failed"), ("cancel", "result-cancelled")]
)
def test_without_a_return_url_a_page_of_ours_says_how_it_ended(
    live: Sandbox, payer: Payer, ending: str, result: str
) -> None:
    """And coming back to the payment later shows it again."""
    order = live.place(by("wallet-web"))
    page = payer.press(payer.open(payment_page(order)), ending)
    assert result in page.ids
    assert result in payer.open(payment_page(order)).ids
    assert payer.arrived is None


def test_an_expired_payment_leads_back_too(live: Sandbox, payer: Payer) -> None:
    """Whatever the ending."""
    order = placed(live, "wallet-web")
    live.advance("PT30M")
    payer.open(payment_page(order))
    assert payer.arrived is not None
    assert live.status(order) == ("expired", "expired")


def test_who_walks_away_changes_nothing(live: Sandbox, payer: Payer) -> None:
    """The page says until when the payment stays open, and leads back."""
    order = placed(live, "wallet-web")
    page = payer.open(payment_page(order))
    left = payer.open(f"{live.url}{next(link for link in page.links if link.endswith('/left/'))}")
    assert "left" in left.ids
    assert live.status(order) == ("processing", "processing")
    assert "pay" in payer.open(payment_page(order)).buttons


# Methods


def test_a_transfer_shows_where_to_pay(live: Sandbox, payer: Payer) -> None:
    """Account and reference as the order says; the tester lets the bank credit it."""
    order = placed(live, "bank-transfer")
    details = order["transactions"][0]["payment_method_details"]
    page = payer.open(payment_page(order))
    assert page.ids["transfer-iban"] == details["creditor_iban"]
    assert page.ids["transfer-reference"] == details["reference"]
    payer.press(page, "credit")
    assert live.status(order) == ("completed", "completed")
    assert payer.arrived is not None


def test_a_transfer_in_test_mode_says_that_nothing_arrives(sandbox: Sandbox) -> None:
    """And offers no credit."""
    page = Payer(sandbox).open(payment_page(sandbox.place(by("bank-transfer"))))
    assert "no-credit" in page.ids
    assert "credit" not in page.buttons


def test_an_invoice_says_what_happens_next(live: Sandbox, payer: Payer) -> None:
    """Nobody has anything to do."""
    order = placed(live, "invoice-later-b")
    page = payer.open(payment_page(order))
    assert page.buttons == set()
    assert any("order_id=" in link for link in page.links)


def test_a_screening_that_takes_its_time_has_a_page(live: Sandbox, payer: Payer) -> None:
    """Once it has answered, the customer confirms there."""
    live.scenario({"then": {"screening": "needs-time", "after": "P1D"}})
    hosted = live.place(amount=LINES_TOTAL, order_lines=LINES, customer=CUSTOMER)
    page = payer.press(payer.open(order_page(hosted)), "pay-later-a")
    found = live.read(hosted)["transactions"][-1]
    assert found["status"] == "pending"
    live.acted(hosted, "screening approve")
    page = payer.open(payment_page(live.read(hosted)))
    payer.press(page, "pay")
    assert live.status(hosted) == ("completed", "completed")


@pytest.mark.rule("WQR-01", "FLOW-03")
def test_a_wallet_app_scans_the_code_on_the_page(live: Sandbox, payer: Payer) -> None:
    """The address in the code opens the confirmation; after it the waiting page leads to the shop."""
    from io import BytesIO

    import zxingcpp
    from PIL import Image

    order = placed(live, "wallet-qr")
    page = payer.open(payment_page(order))
    image = payer.http.get(f"{page.url}code.png", timeout=10)
    (code,) = zxingcpp.read_barcodes(Image.open(BytesIO(image.content)))
    phone = Payer(live)
    phone.press(phone.open(code.text), "pay")
    assert live.status(order) == ("completed", "completed")
    payer.open(payment_page(order))
    assert payer.arrived == phone.arrived is not None


def test_a_scanned_payment_without_return_url_ends_on_our_page(live: Sandbox, payer: Payer) -> None:
    """A result page (FLOW-03)."""
    order = live.place(by("wallet-qr"))
    page = payer.press(payer.open(f"{payment_page(order)}scan/"), "pay")
    assert "result-paid" in page.ids


@pytest.mark.rule("GPAY-03")
def test_a_device_wallet_passes_3d_secure_with_its_card_number(live: Sandbox, payer: Payer) -> None:
    """PAN_ONLY goes through the step, CRYPTOGRAM_3DS does not."""
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


def test_the_bank_of_a_redirect_is_named(live: Sandbox, payer: Payer) -> None:
    """The chosen issuer, or the country's."""
    order = live.place(
        {"payment_method": "bank-redirect-nl", "payment_method_details": {"issuer_id": "DUINNL2U"}}
    )
    assert "Duinbank" in payer.open(payment_page(order)).text
    assert "Belgian" in payer.open(payment_page(live.place(by("bank-redirect-be")))).text


# Cards

TYPED = {"expiry": "12/31", "cvc": "123", "holder": "J. de Vries"}


@pytest.mark.parametrize("name", sorted(CARDS))
def test_each_test_card_plays_its_part_when_typed(live: Sandbox, payer: Payer, name: str) -> None:
    """One that asks has its step; one that is declined fails there."""
    test_card = CARDS[name]
    assert is_luhn(test_card.number)
    order = placed(live, "credit-card")
    number = " ".join(test_card.number[i : i + 4] for i in range(0, 16, 4))
    page = payer.press(payer.open(payment_page(order)), "pay", number=number, **TYPED)
    if test_card.asks:
        assert live.status(order) == ("processing", "processing")
        payer.press(page, "pay")
    expected = "error" if test_card.refusal else "completed"
    assert live.status(order) == (expected, expected)
    assert (
        live.read(order)["transactions"][0]["payment_method_details"]["truncated_pan"]
        == test_card.truncated_pan
    )


@pytest.mark.parametrize(
    ("answer", "status", "reason"),
    [
        ("pay", "completed", None),
        ("fail", "error", "3-D Secure: not authenticated"),
        ("unavailable", "error", "3-D Secure: unavailable"),
        ("cancel", "cancelled", "Cancelled by the customer"),
    ],
)
def test_the_tester_chooses_what_the_bank_answers(
    live: Sandbox, payer: Payer, answer: str, status: str, reason: str | None
) -> None:
    """With the card whose response can be configured (CARD-08)."""
    order = placed(live, "credit-card")
    step = payer.press(payer.open(payment_page(order)), "pay", card="challenge-configurable")
    assert {"pay", "fail", "unavailable", "cancel"} <= step.buttons
    payer.press(step, answer)
    found = live.read(order)["transactions"][0]
    assert (found["status"], found.get("reason")) == (status, reason)


WRONG_CARDS = [
    ({"number": "4111 1111 1111 1112"}, "number", "error_number"),
    ({"number": "hello"}, "number", "error_number"),
    ({"number": "4242424242424242"}, "number", "error_real_card"),
    ({"expiry": "13/31"}, "expiry", "error_expiry"),
    ({"expiry": ""}, "expiry", "error_expiry"),
    ({"expiry": "02/26"}, "expiry", "error_expired"),
    ({"cvc": "12"}, "cvc", "error_cvc"),
    ({"cvc": "1234"}, "cvc", "error_cvc"),
    ({"holder": " "}, "holder", "error_holder"),
]


@pytest.mark.parametrize(("typed", "field", "phrase"), WRONG_CARDS)
def test_a_card_form_is_validated(
    live: Sandbox, payer: Payer, typed: dict[str, str], field: str, phrase: str
) -> None:
    """The page says what is wrong at its field, echoes no number, and nothing has happened."""
    order = placed(live, "credit-card")
    fields = {"number": CARDS["frictionless"].number, **TYPED, **typed}
    page = payer.press(payer.open(payment_page(order)), "pay", **fields)
    assert page.status == 400
    assert page.ids[f"error-{field}"] == Language(DEFAULT).say(phrase)
    assert set(page.ids) & {f"error-{name}" for name in ("number", "expiry", "cvc", "holder")} == {
        f"error-{field}"
    }
    assert live.status(order) == ("processing", "processing")
    assert fields["number"] not in page.answer.text
    form = page.form_with("pay")
    assert (form.fields["number"], form.fields["cvc"]) == ("", "")
    payer.press(page, "pay", **{**fields, "number": CARDS["frictionless"].number, **TYPED})
    assert live.status(order) == ("completed", "completed")


def test_a_card_is_good_to_the_end_of_its_month(live: Sandbox, payer: Payer) -> None:
    """It is March 2026."""
    order = placed(live, "credit-card")
    fields = {**TYPED, "number": CARDS["frictionless"].number, "expiry": "3/2026"}
    payer.press(payer.open(payment_page(order)), "pay", **fields)
    assert live.status(order) == ("completed", "completed")


def test_a_number_that_was_typed_is_kept_nowhere(live: Sandbox, payer: Payer, caplog: Any) -> None:
    """Neither of a test card nor of another, nor the code."""
    order = placed(live, "credit-card")
    real = "4242424242424242"
    payer.press(payer.open(payment_page(order)), "pay", number=real, **{**TYPED, "cvc": "987"})
    payer.press(
        payer.open(payment_page(order)), "pay", number=CARDS["visa"].number, **{**TYPED, "cvc": "986"}
    )
    kept = live.get("/control/state/").text + live.get("/control/journal/").text + caplog.text
    for secret in (real, real[:10], CARDS["visa"].number, '"987"', '"986"'):
        assert secret not in kept


def test_the_descriptor_is_shown(live: Sandbox, payer: Payer) -> None:
    """As it will stand on the statement."""
    order = live.place(card(payment_method_details={"dynamic_descriptor": "SHOP*SOCKS"}))
    assert "SHOP*SOCKS" in payer.open(payment_page(order)).ids["descriptor"]


# The order's page


@pytest.mark.rule("GEN-03", "GEN-04", "FLOW-02", "SET-61")
def test_the_order_page_offers_what_can_pay_it(sandbox: Sandbox) -> None:
    """Enabled, on the allow list, usable for this order, testable in this mode."""
    payer = Payer(sandbox)
    all_of_them = payer.open(order_page(sandbox.place(order_lines=LINES, customer=CUSTOMER)))
    offered = set(BY_NAME) - {"bank-redirect-be", "wallet-apple"}
    assert all_of_them.buttons == offered
    bare = payer.open(order_page(sandbox.place()))
    assert bare.buttons == offered - {"pay-later-a", "invoice-later-b"}
    listed = payer.open(order_page(sandbox.place(payment_methods=["wallet-web", "pay-later-a"])))
    assert listed.buttons == {"wallet-web"}
    sandbox.settings(payment_methods=["credit-card"])
    assert payer.open(order_page(sandbox.place())).buttons == {"credit-card"}


@pytest.mark.parametrize("method", [method.name for method in ALL])
def test_every_method_can_be_chosen_and_paid(live: Sandbox, payer: Payer, method: str) -> None:
    """From the order's page to the shop (SET-18)."""
    order = live.place(amount=LINES_TOTAL, order_lines=LINES, customer=CUSTOMER, return_url=RETURN)
    page = payer.press(payer.open(order_page(order)), method)
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
    """Expired, cancelled or paid; nothing can be chosen there, and the way back is a link."""
    order = live.place(return_url=RETURN)
    stale = payer.open(order_page(order))
    end(live, order)
    if result == "result-paid":
        live.acted(order, "customer pay")
    page = payer.open(order_page(order))
    assert result in page.ids
    assert page.buttons == set()
    assert any("order_id=" in link for link in page.links)
    before = live.read(order)
    assert result in payer.press(stale, "credit-card").ids
    assert live.read(order) == before


# Twice, stale, forged


def test_a_double_click_pays_once(live: Sandbox, payer: Payer) -> None:
    """The second leads where the first did."""
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
    """Two posts of one form make one attempt; the back button and another choice make the second."""
    order = live.place()
    page = payer.open(order_page(order))
    for _ in range(2):
        assert "pay" in payer.press(page, "wallet-web").buttons
        assert len(live.read(order)["transactions"]) == 1
    payer.press(page, "credit-card")
    assert [attempt["status"] for attempt in live.read(order)["transactions"]] == ["cancelled", "processing"]


@pytest.mark.parametrize("late", ["pay", "cancel", "fail"])
def test_a_second_tab_sees_how_it_stands(live: Sandbox, payer: Payer, late: str) -> None:
    """What one has ended the other cannot end otherwise."""
    order = placed(live, "wallet-web")
    first, second = payer.open(payment_page(order)), payer.open(payment_page(order))
    payer.press(first, "pay")
    before = live.read(order)
    payer.press(second, late)
    assert live.read(order) == before


def test_a_post_after_expiry_changes_nothing(live: Sandbox, payer: Payer) -> None:
    """The page leads on, as it does to who looks."""
    order = placed(live, "wallet-web", return_url=...)
    page = payer.open(payment_page(order))
    live.advance("PT30M")
    assert "result-expired" in payer.press(page, "pay").ids
    assert live.status(order) == ("expired", "expired")


@pytest.mark.parametrize("token", ["", "0" * 64, "é"])
def test_a_post_without_the_page_s_token_does_nothing(live: Sandbox, payer: Payer, token: str) -> None:
    """Neither on a payment nor on an order; the page says that it was out of date."""
    order = placed(live, "wallet-web")
    page = payer.press(payer.open(payment_page(order)), "pay", token=token)
    assert "notice" in page.ids
    assert live.status(order) == ("processing", "processing")
    hosted = live.place()
    page = payer.press(payer.open(order_page(hosted)), "wallet-web", token=token)
    assert "notice" in page.ids
    assert live.read(hosted)["transactions"] == []


def test_a_token_is_good_for_its_own_page(live: Sandbox, payer: Payer) -> None:
    """Not for another order's."""
    mine, other = placed(live, "wallet-web"), placed(live, "wallet-web")
    token = payer.open(payment_page(mine)).form_with("pay").fields["token"]
    payer.press(payer.open(payment_page(other)), "pay", token=token)
    assert live.status(other) == ("processing", "processing")


def test_a_page_of_another_site_cannot_post(live: Sandbox, payer: Payer) -> None:
    """A foreign Origin or Host is refused, though the token is right."""
    order = placed(live, "wallet-web")
    form = payer.open(payment_page(order)).form_with("pay")
    for headers in ({"Origin": "https://evil.example"}, {"Host": "evil.example"}, {"Origin": "null"}):
        answer = requests.post(
            form.action,
            data={**form.fields, "action": "pay"},
            headers=headers,
            allow_redirects=False,
            timeout=5,
        )
        assert answer.status_code == 403
    assert live.status(order) == ("processing", "processing")


@pytest.mark.parametrize("action", ["credit", "approve", "visit", "settle", "", "nonsense"])
def test_a_button_that_is_not_there_does_nothing(live: Sandbox, payer: Payer, action: str) -> None:
    """However it is posted."""
    order = placed(live, "wallet-web")
    form = payer.open(payment_page(order)).form_with("pay")
    requests.post(form.action, data={**form.fields, "action": action}, timeout=5)
    assert live.status(order) == ("processing", "processing")


def test_looking_is_no_visit(live: Sandbox) -> None:
    """A HEAD, as link previews send it, moves nothing."""
    order = placed(live, "wallet-web")
    assert requests.head(f"http://{payment_page(order)}", timeout=5).status_code == 200
    assert live.status(order) == ("new", "new")


# What was written by others


HOSTILE = "<script>alert(1)</script>\"'><img src=x onerror=alert(2)>{{ 7*7 }}{0.__class__}"


def test_everything_from_outside_is_escaped(live: Sandbox) -> None:
    """Descriptions, names, lines, addresses, and what a payer typed."""
    live.settings(name=HOSTILE)
    line = {**LINES[0], "name": HOSTILE, "amount": 1000, "quantity": 1}
    order = live.place(
        description=HOSTILE,
        merchant_order_id=HOSTILE,
        order_lines=[line],
        return_url="http://shop.example/?q='><script>alert(3)</script>".replace("'>", "%27%3E"),
    )
    payer = Payer(live)
    pages = [payer.open(order_page(order)), payer.press(payer.open(order_page(order)), "credit-card")]
    pages.append(payer.press(pages[-1], "pay", number="1", holder=HOSTILE))
    pages.append(payer.open(f"{order_page(order)}?notice={HOSTILE}&language={HOSTILE}"))
    for page in pages:
        assert "<script>alert" not in page.answer.text
        assert "<img src=x" not in page.answer.text
        assert "49}" not in page.text


def test_pages_carry_the_headers_that_protect_them(live: Sandbox, payer: Payer) -> None:
    """No inline script, no frame, no sniffing, nothing kept."""
    order = placed(live, "credit-card")
    for address in (
        payment_page(order),
        f"{payment_page(order)}left/",
        payment_page(order).replace(order["id"], NOBODY),
    ):
        headers = payer.open(address).answer.headers
        policy = headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["X-Frame-Options"] == "DENY"
        assert headers["Referrer-Policy"] == "same-origin"
        assert headers["Cache-Control"] == "no-store"


@pytest.mark.parametrize("which", ["project", "order", "transaction"])
def test_an_address_shows_its_own_order_only(live: Sandbox, payer: Payer, which: str) -> None:
    """A browser gets a page that says so, a program the one shape of errors."""
    order, other = placed(live, "wallet-web"), placed(live, "wallet-web")
    address = {
        "project": payment_page(order).replace(order["project_id"], NOBODY),
        "order": payment_page(order).replace(order["id"], NOBODY),
        "transaction": payment_page(order).replace(
            order["transactions"][0]["id"], other["transactions"][0]["id"]
        ),
    }[which]
    page = payer.open(address)
    assert (page.status, "nothing" in page.ids) == (404, True)
    assert requests.get(f"http://{address}", timeout=5).json()["error"]["type"] == "NotFound"


def test_refunds_and_stored_cards_have_no_page(live: Sandbox, payer: Payer) -> None:
    """Nobody pays there."""
    order = placed(live, "wallet-web")
    live.pay(order)
    refund = live.post(f"/v1/orders/{order['id']}/refunds/", {}).json()
    transaction = refund["transactions"][0]["id"]
    for address in (f"{refund['id']}/", f"{refund['id']}/{transaction}/"):
        assert payer.open(f"{live.url}/pay/{order['project_id']}/{address}").status == 404


# Languages


@pytest.mark.rule("CUS-12")
@pytest.mark.parametrize("locale", LOCALES)
def test_the_customer_s_locale_chooses_the_language(live: Sandbox, locale: str) -> None:
    """Before the browser's; the page can be switched, and stays so."""
    payer = Payer(live, language="de-DE,de;q=0.9")
    order = live.place(by("wallet-web"), customer={"locale": locale}, amount=123456)
    page = payer.open(payment_page(order))
    assert page.language == locale
    assert Language(locale).say("wallet_title") in page.text
    assert page.ids["amount"] == Language(locale).amount(123456)
    switched = payer.open(f"{payment_page(order)}?language=fr-BE")
    assert switched.language == "fr-BE"
    assert payer.open(payment_page(order)).language == "fr-BE"


@pytest.mark.parametrize(
    ("accepts", "language"),
    [
        ("nl-NL,nl;q=0.9", "nl"),
        ("nl-BE,nl;q=0.9", "nl-BE"),
        ("fr-FR,fr;q=0.9", "fr-BE"),
        ("fr-CA", "fr-BE"),
        ("en-US,en;q=0.9,nl;q=0.8", "en-GB"),
        ("fr-FR,fr;q=0.9,nl;q=0.8", "fr-BE"),
        ("ja,de;q=0.5,nl;q=0.7", "nl"),
        ("de", "de"),
        ("ja", "en-GB"),
        ("", "en-GB"),
        ("*;q=0.1, ;;x", "en-GB"),
    ],
)
def test_else_the_browser_chooses(live: Sandbox, accepts: str, language: str) -> None:
    """And English where it asks for none of the five."""
    order = live.place(by("wallet-web"))
    assert Payer(live, language=accepts).open(payment_page(order)).language == language


def test_amounts_and_times_are_written_as_the_language_does() -> None:
    """With its signs, and in UTC."""
    from datetime import UTC, datetime

    noon = datetime(2026, 3, 1, 12, tzinfo=UTC)
    written = {
        tag: Language(tag).amount(123456).replace("\xa0", " ").replace("\u202f", " ") for tag in LOCALES
    }
    assert written == {
        "nl": "€ 1.234,56",
        "de": "1.234,56 €",
        "nl-BE": "€ 1.234,56",
        "fr-BE": "1 234,56 €",
        "en-GB": "€1,234.56",
    }
    assert "mars" in Language("fr-BE").moment(noon)
    assert "12:00:00 UTC" in Language("en-GB").moment(noon)


def test_no_phrase_is_missing() -> None:
    """Each is there in every language, with the same gaps."""
    import re

    english = phrases(DEFAULT)
    gaps = {key: sorted(re.findall(r"\{[a-z]*\}", text)) for key, text in english.items()}
    for tag in ("nl", "de", "fr-BE"):
        found = phrases(tag)
        assert found.keys() == english.keys()
        for key, text in found.items():
            assert text.strip(), (tag, key)
            assert sorted(re.findall(r"\{[a-z]*\}", text)) == gaps[key], (tag, key)


def test_every_phrase_is_said_somewhere() -> None:
    """A phrase that no page says is dead weight, and one that none has is a crash."""
    import re
    from pathlib import Path

    import payment_sandbox.web.pages

    folder = Path(payment_sandbox.web.pages.__file__).parent
    text = "".join(path.read_text() for path in [*folder.glob("*.py"), *folder.glob("templates/*.html")])
    prefixes = ("card_", "sheet_", "sandbox_", "bank_of_", "notice_", "error_", "transfer_", "qr_")
    endings = ("_title", "_text")
    said = set(re.findall(r'say\("([^"]+)"', text)) | set(re.findall(r'"([a-z_]+)"', text))
    for key in phrases(DEFAULT):
        assert key in said or key in BY_NAME or key.startswith(prefixes) or key.endswith(endings), key
    for key in re.findall(r'say\("([a-zA-Z_-]+)"[,)]', text):
        assert key in phrases(DEFAULT), key


# One engine


ROUTES = ["click", "call", "rule", "trigger"]
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
    """A click, a control call, a scenario rule and a trigger value: the same events at the same times."""

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
        found = sandbox.read(order)
        return (
            found["status"],
            [{**attempt, "reason": None} for attempt in found["transactions"]],
            sorted(webhook["order_id"] for webhook in sandbox.webhooks()),
        )

    logs = {route: log(route) for route in ROUTES}
    for route in ROUTES[1:]:
        assert _without_addresses(logs[route]) == _without_addresses(logs["click"]), route


def _without_addresses(logged: Any) -> Any:
    """Each project has its own identifiers in addresses; all else is the same."""
    status, attempts, webhooks = logged
    shown = []
    for attempt in attempts:
        details = dict(attempt["payment_method_details"])
        details.pop("issuer_authentication_url", None)
        hidden = ("payment_url", "payment_method_details", "project_id", "merchant_id")
        kept = {key: value for key, value in attempt.items() if key not in hidden}
        shown.append({**kept, "payment_method_details": details})
    return status, shown, webhooks


def test_every_test_id_is_documented() -> None:
    """Merchants' browser tests rely on them."""
    import re
    from pathlib import Path

    import payment_sandbox.web.pages

    folder = Path(payment_sandbox.web.pages.__file__).parent / "templates"
    documented = written("hosted-page")
    found = {
        test_id
        for path in folder.glob("*.html")
        for test_id in re.findall(r'data-testid="([^"]*)"', path.read_text())
    }
    assert len(found) > 40
    for test_id in found:
        fixed = test_id.partition("{{")[0].strip()
        assert not fixed or f"`{fixed}" in documented, test_id


def test_a_screening_of_a_hosted_order_shows_that_it_goes_on(live: Sandbox, payer: Payer) -> None:
    """The page waits; after a refusal the customer can choose again."""
    live.scenario({"times": 1, "then": {"screening": "needs-time", "then": "declined", "after": "P1D"}})
    order = live.place(amount=LINES_TOTAL, order_lines=LINES, customer=CUSTOMER)
    page = payer.press(payer.open(order_page(order)), "pay-later-a")
    assert "check-again" in page.ids
    assert {"approve", "decline", "error"} == page.buttons
    page = payer.press(page, "decline")
    assert "notice" in page.ids
    assert "wallet-web" in page.buttons


# What a review found


@pytest.mark.parametrize("method", ["credit-card", "pay-later-a"])
def test_an_authorization_that_shows_as_accepted_leads_back(
    project: Callable[..., Sandbox], method: str
) -> None:
    """The customer has done his part."""
    sandbox = project(authorized_status="accepted")
    transaction = by(method, capture_mode="manual")
    order = sandbox.place(
        transaction, amount=LINES_TOTAL, order_lines=LINES, customer=CUSTOMER, return_url=RETURN
    )
    payer = Payer(sandbox)
    payer.press(payer.open(payment_page(order)), "pay")
    assert payer.arrived is not None
    assert sandbox.status(order) == ("accepted", "accepted")


@pytest.mark.parametrize("url", ["https://a..b/", "https://" + "ü" * 80 + ".example/"])
def test_a_return_url_that_no_browser_could_follow_is_refused(live: Sandbox, url: str) -> None:
    """At creation, not at the payer."""
    assert live.create(return_url=url).status_code == 400
    assert live.post("/v1/bankqr/", {"amount": 5, "return_url": url}).status_code == 400
    assert live.create(return_url="https://bücher.example/ok").status_code == 201


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
def test_a_step_that_a_payment_does_not_have_is_not_there(
    live: Sandbox, payer: Payer, method: str, query: str
) -> None:
    """Neither to see nor to post."""
    order = placed(live, method)
    page = payer.open(payment_page(order))
    assert "notice" in payer.open(f"{payment_page(order)}secure/?{query}").ids
    form = {"token": page.form_with("pay").fields["token"], "action": "pay", **dict([query.split("=")])}
    requests.post(f"http://{payment_page(order)}secure/", data=form, timeout=5)
    assert live.status(order) == ("processing", "processing")


def test_a_refused_screening_is_no_cancellation(live: Sandbox, payer: Payer) -> None:
    """The page says that the way to pay was refused."""
    customer = {**CUSTOMER, "email_address": "declined@example.com"}
    order = live.place(amount=LINES_TOTAL, order_lines=LINES, customer=customer)
    page = payer.press(payer.open(order_page(order)), "invoice-later-b")
    assert page.ids["notice"] == Language(DEFAULT).say("notice_declined")


def test_a_half_filled_card_form_does_not_pay(live: Sandbox, payer: Payer) -> None:
    """Nor an unknown test card, nor digits of other scripts."""
    order = placed(live, "credit-card")
    page = payer.open(payment_page(order))
    for fields in (
        {"cvc": "123"},
        {"card": "bogus"},
        {"number": CARDS["visa"].number, **TYPED, "cvc": "١٢٣"},
    ):
        assert payer.press(page, "pay", **fields).status == 400
    assert live.status(order) == ("processing", "processing")


def test_a_number_in_another_field_is_not_shown_again(live: Sandbox, payer: Payer) -> None:
    """Somebody may paste it there."""
    order = placed(live, "credit-card")
    number = CARDS["visa"].number
    page = payer.press(payer.open(payment_page(order)), "pay", number="1", holder=number)
    assert number not in page.answer.text
    page = payer.press(page, "pay", number="1", holder="J. de Vries")
    assert page.form_with("pay").fields["holder"] == "J. de Vries"


def test_an_order_with_an_attempt_leads_on_to_it(live: Sandbox, payer: Payer) -> None:
    """From its own address, too."""
    order = placed(live, "wallet-web")
    assert "pay" in payer.open(order_page(order)).buttons


def test_looking_at_a_code_s_address_is_no_visit_either(live: Sandbox) -> None:
    """A HEAD moves nothing."""
    order = placed(live, "wallet-qr")
    requests.head(f"http://{payment_page(order)}scan/", timeout=5)
    assert live.status(order) == ("new", "new")


def test_a_form_is_bounded(live: Sandbox, payer: Payer) -> None:
    """Over a mebibyte it is not read."""
    order = placed(live, "wallet-web")
    form = payer.open(payment_page(order)).form_with("pay")
    answer = requests.post(form.action, data={**form.fields, "x": "x" * (1 << 20)}, timeout=5)
    assert (answer.status_code, answer.json()["error"]["status"]) == (413, 413)


def test_an_order_page_can_be_left(live: Sandbox, payer: Payer) -> None:
    """It says until when the order stays open."""
    order = live.place()
    page = payer.open(order_page(order))
    assert "sandbox-leave" in page.ids
    assert "result-open" in payer.open(f"{live.url}{next(x for x in page.links if 'result' in x)}").ids


def test_pages_behind_a_proxy_keep_its_path_and_origin() -> None:
    """As --public-url says."""
    with Server(public_url="https://pay.example/sandbox/") as server:
        url = f"http://127.0.0.1:{server.port}"
        body = {"currency": "EUR", "amount": 5, "return_url": RETURN, "transactions": [by("wallet-web")]}
        order = requests.post(f"{url}/v1/orders/", json=body, auth=("sandbox-key", ""), timeout=5).json()
        path = payment_page(order).removeprefix("pay.example/sandbox")
        answer = requests.get(f"{url}{path}", headers={"Accept": "text/html"}, timeout=5)
        page = Page(answer)
        form = page.form_with("pay")
        assert "/sandbox/pay/" in form.action
        assert "/sandbox/assets/pay.css" in answer.text
        posted = requests.post(
            form.action.replace("/sandbox/pay/", "/pay/"),
            data={**form.fields, "action": "pay"},
            headers={"Origin": "https://pay.example"},
            allow_redirects=False,
            timeout=5,
        )
        assert posted.headers["Location"].startswith("http://shop.example:8443/thanks")
