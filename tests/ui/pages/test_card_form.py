"""Card data that the customer types is validated and not stored."""

from typing import Any

import pytest

from payment_sandbox.kernel.patterns import is_luhn
from payment_sandbox.orders.cards import CARDS
from payment_sandbox.ui.pages.language import DEFAULT_TAG, Language
from tests.support.driver import Sandbox, card, details
from tests.support.payer import Payer, payment_page, placed

WITH_A_STEP = {"challenge", "challenge-configurable", "insufficient-funds"}
TYPED = {"expiry": "12/31", "cvc": "123", "holder": "J. de Vries"}


@pytest.mark.rule("CARD-06", "CARD-07", "CARD-08")
@pytest.mark.parametrize("is_typed", [True, False])
@pytest.mark.parametrize("name", sorted(CARDS))
def test_each_test_card_plays_its_part(live: Sandbox, payer: Payer, name: str, is_typed: bool) -> None:
    """A card that is typed or chosen has an extra step if it has a challenge, and a declined card fails."""
    test_card = CARDS[name]
    assert is_luhn(test_card.number)
    order = placed(live, "credit-card")
    number = " ".join(test_card.number[i : i + 4] for i in range(0, 16, 4))
    fields = {"number": number, **TYPED} if is_typed else {"card": name}
    page = payer.press(payer.open(payment_page(order)), "pay", **fields)
    if name in WITH_A_STEP:
        assert live.status(order) == ("processing", "processing")
        payer.press(page, "pay")
    expected = "error" if test_card.refusal else "completed"
    assert live.status(order) == (expected, expected)
    assert (
        live.read(order)["transactions"][0]["payment_method_details"]["truncated_pan"]
        == test_card.truncated_pan
    )


@pytest.mark.rule("FLOW-04", "FLOW-07")
@pytest.mark.parametrize("kind", ["one_click_type", "recurring_type"])
def test_a_first_payment_is_authenticated_on_its_page(live: Sandbox, payer: Payer, kind: str) -> None:
    """The token is readable only after the 3-D Secure step."""
    order = live.place(details(**{kind: "first"}))
    step = payer.press(payer.open(payment_page(order)), "pay", card="challenge")
    assert live.status(order) == ("processing", "processing")
    assert "vault_token" not in live.read(order)["transactions"][0]["payment_method_details"]
    payer.press(step, "pay")
    assert live.status(order) == ("completed", "completed")
    assert live.read(order)["transactions"][0]["payment_method_details"]["vault_token"]


@pytest.mark.rule("CARD-08")
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
    """The tester chooses the bank's response with the configurable card (CARD-08)."""
    order = placed(live, "credit-card")
    step = payer.press(payer.open(payment_page(order)), "pay", card="challenge-configurable")
    assert {"pay", "fail", "unavailable", "cancel"} <= step.buttons
    payer.press(step, answer)
    attempt = live.read(order)["transactions"][0]
    assert (attempt["status"], attempt.get("reason")) == (status, reason)


WRONG_CARDS = [
    ({"number": "4111 1111 1111 1112"}, "number", "error_number"),
    ({"number": "4242424242424242"}, "number", "error_real_card"),
    ({"expiry": "13/31"}, "expiry", "error_expiry"),
    ({"expiry": "02/26"}, "expiry", "error_expired"),
    ({"number": "4111111111111111" + "-" * 300 + "1"}, "number", "error_number"),
    ({"cvc": "1234"}, "cvc", "error_cvc"),
    ({"holder": " "}, "holder", "error_holder"),
]


@pytest.mark.parametrize(("typed", "field", "phrase"), WRONG_CARDS)
def test_a_card_form_is_validated(
    live: Sandbox, payer: Payer, typed: dict[str, str], field: str, phrase: str
) -> None:
    """The page shows the error at its field and no card number, and the payment is unchanged."""
    order = placed(live, "credit-card")
    fields = {"number": CARDS["frictionless"].number, **TYPED, **typed}
    page = payer.press(payer.open(payment_page(order)), "pay", **fields)
    assert page.status == 400
    assert page.ids[f"error-{field}"] == Language(DEFAULT_TAG).say(phrase)
    assert set(page.ids) & {f"error-{name}" for name in ("number", "expiry", "cvc", "holder")} == {
        f"error-{field}"
    }
    assert live.status(order) == ("processing", "processing")
    title = page.answer.text.partition("<title>")[2].partition("</title>")[0]
    assert title.startswith(Language(DEFAULT_TAG).say("check_form")), (
        "a screen reader says first what is wrong"
    )
    (focused,) = [tag for tag in page.answer.text.split("<") if "autofocus" in tag]
    assert f'id="{field}"' in focused
    assert fields["number"] not in page.answer.text
    form = page.form_with("pay")
    assert (form.fields["number"], form.fields["cvc"]) == ("", "")
    good_to_the_end_of_its_month = {"number": CARDS["frictionless"].number, **TYPED, "expiry": "3/2026"}
    payer.press(page, "pay", **good_to_the_end_of_its_month)
    assert live.status(order) == ("completed", "completed")


def test_a_typed_card_number_is_not_stored(live: Sandbox, payer: Payer, caplog: Any) -> None:
    """Typed card numbers and CVCs are neither stored nor logged."""
    order = placed(live, "credit-card")
    non_test_number = "4242424242424242"
    payer.press(payer.open(payment_page(order)), "pay", number=non_test_number, **{**TYPED, "cvc": "987"})
    payer.press(
        payer.open(payment_page(order)), "pay", number=CARDS["visa"].number, **{**TYPED, "cvc": "986"}
    )
    stored = live.get("/control/state/").text + live.get("/control/journal/").text + caplog.text
    for secret in (non_test_number, non_test_number[:10], CARDS["visa"].number, '"987"', '"986"'):
        assert secret not in stored


def test_a_half_filled_card_form_does_not_pay(live: Sandbox, payer: Payer) -> None:
    """An incomplete form, an unknown test card and digits of other scripts are refused."""
    order = live.place(card(payment_method_details={"dynamic_descriptor": "SHOP*SOCKS"}))
    page = payer.open(payment_page(order))
    assert "SHOP*SOCKS" in page.ids["descriptor"]
    for fields in (
        {"cvc": "123"},
        {"card": "bogus"},
        {"number": CARDS["visa"].number, **TYPED, "cvc": "١٢٣"},
    ):
        assert payer.press(page, "pay", **fields).status == 400
    form = page.form_with("pay")
    data, headers = {**form.fields, "action": "pay"}, {"Origin": live.url}
    answer = payer.http.post(f"{form.action}?typed=1", data=data, headers=headers)
    assert answer.status_code == 400, "the button for typed cards does not pay with the selected test card"
    assert live.status(order) == ("processing", "processing")


def test_a_number_in_another_field_is_not_shown_again(live: Sandbox, payer: Payer) -> None:
    """A card number that was pasted into the holder's field is not repeated."""
    order = placed(live, "credit-card")
    number = CARDS["visa"].number
    page = payer.press(payer.open(payment_page(order)), "pay", number="1", holder=number)
    assert number not in page.answer.text
    page = payer.press(page, "pay", number="1", holder="J. de Vries")
    assert page.form_with("pay").fields["holder"] == "J. de Vries"
