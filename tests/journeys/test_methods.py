"""Each of the eleven methods, from creation to its ends, in both modes."""

import re
from typing import Any

import pytest

from payment_sandbox.methods import ALL
from payment_sandbox.orders.cards import (
    AUTHORIZATION_METHODS,
    CARDS,
    COMBINED_FAMILIES,
    CREDIT_FAMILIES,
    DEBIT_FAMILIES,
    NETWORKS,
)
from tests.support.driver import LINES_TOTAL, Sandbox, by, card, refused, violations

PAGES = [
    "credit-card", "bank-redirect-nl", "bank-redirect-be", "bank-redirect-de",
    "wallet-qr", "wallet-web", "wallet-apple", "wallet-google", "pay-later-a",
]  # fmt: skip
TESTABLE_PAGES = [name for name in PAGES if name not in ("bank-redirect-be", "wallet-apple")]
ERROR_MESSAGE = "The payment failed. Please try again or choose another payment method."


def paid_details(sandbox: Sandbox, method: str, **more: Any) -> dict[str, Any]:
    """The details of a paid order."""
    found: dict[str, Any] = sandbox.pay(sandbox.place(by(method)), **more)["transactions"][0][
        "payment_method_details"
    ]
    return found


@pytest.mark.rule("CARD-01", "WAPP-02")
def test_there_are_eleven_methods() -> None:
    """Every identifier of the service, and no other."""
    assert sorted(method.name for method in ALL) == sorted([*PAGES, "bank-transfer", "invoice-later-b"])


@pytest.mark.rule("SET-63", "CARD-01", "WAPP-02", "STA-01", "STA-18", "ORD-23", "TX-15")
@pytest.mark.parametrize("method", PAGES)
def test_in_live_mode_every_method_with_a_page_is_paid(live: Sandbox, method: str) -> None:
    """New, processing on the visit, completed on the payment."""
    order = live.place_with_lines(method)
    assert live.status(order) == ("new", "new")
    live.acted(order, "customer visit")
    assert live.status(order) == ("processing", "processing")
    live.pay(order)
    assert live.status(order) == ("completed", "completed")


@pytest.mark.rule("GEN-05", "IDR-02", "BRD-01", "WQR-02", "WWEB-01", "GPAY-05", "PLA-05", "CARD-06")
@pytest.mark.parametrize("method", TESTABLE_PAGES)
def test_in_test_mode_testable_methods_are_paid(sandbox: Sandbox, method: str) -> None:
    """A test payment goes to its end."""
    assert sandbox.pay(sandbox.place_with_lines(method))["status"] == "completed"


@pytest.mark.rule("BRB-01", "WAPP-01", "SET-61")
@pytest.mark.parametrize("method", ["bank-redirect-be", "wallet-apple"])
def test_in_test_mode_untestable_methods_are_refused(sandbox: Sandbox, method: str) -> None:
    """By the method's path, with the methods that work instead; and the page does not offer them."""
    answer = sandbox.create(by(method))
    assert "test mode" in violations(answer)["transactions[0].payment_method"]
    assert method not in answer.json()["error"]["violations"][0]["allowed"]
    assert sandbox.act(sandbox.place(), "customer choose", payment_method=method).status_code == 400


@pytest.mark.rule("STA-04", "STA-05", "STA-06", "STA-07", "SET-36")
@pytest.mark.parametrize("method", TESTABLE_PAGES)
def test_the_first_visit_makes_it_processing(sandbox: Sandbox, method: str) -> None:
    """Only the first visit changes anything."""
    order = sandbox.place_with_lines(method)
    visited = sandbox.acted(order, "customer visit")
    assert (visited["status"], visited["transactions"][0]["status"]) == ("processing", "processing")
    again = sandbox.acted(order, "customer visit")
    assert again["transactions"][0]["events"] == visited["transactions"][0]["events"]


@pytest.mark.rule("SET-28", "ORD-25", "CARD-08")
@pytest.mark.parametrize("method", TESTABLE_PAGES)
def test_a_failed_payment_is_an_error_with_its_reason(sandbox: Sandbox, method: str) -> None:
    """Order and transaction are in error; the merchant gets a reason, the customer a message."""
    order = sandbox.acted(sandbox.place_with_lines(method), "customer fail", reason="Limit reached")
    (transaction,) = order["transactions"]
    assert (order["status"], transaction["status"]) == ("error", "error")
    assert (transaction["reason"], transaction["customer_message"]) == ("Limit reached", ERROR_MESSAGE)
    assert order["reason"] == ERROR_MESSAGE


@pytest.mark.parametrize("method", TESTABLE_PAGES)
def test_a_customer_can_cancel(sandbox: Sandbox, method: str) -> None:
    """Order and transaction are cancelled, and nothing more can happen."""
    order = sandbox.acted(sandbox.place_with_lines(method), "customer cancel")
    assert (order["status"], order["transactions"][0]["status"]) == ("cancelled", "cancelled")
    assert refused(sandbox.act(order, "customer pay"), 409, "ActionNotPossible")["allowed"] == []


@pytest.mark.parametrize("ending", ["fail", "cancel"])
@pytest.mark.parametrize("method", TESTABLE_PAGES[:-1])
def test_on_the_hosted_page_a_customer_can_try_again(sandbox: Sandbox, method: str, ending: str) -> None:
    """The attempt ends, the order waits for another one."""
    order = sandbox.place()
    sandbox.acted(order, "customer choose", payment_method=method)
    ended = sandbox.acted(order, f"customer {ending}")
    assert ended["status"] == "processing"
    assert ended["transactions"][0]["status"] == {"fail": "error", "cancel": "cancelled"}[ending]
    sandbox.acted(order, "customer choose", payment_method=method)
    assert sandbox.pay(order)["status"] == "completed"


def test_a_hosted_order_that_is_never_paid_expires_with_its_page(sandbox: Sandbox) -> None:
    """Its attempt expires sooner, the order when the page closes."""
    order = sandbox.place()
    sandbox.acted(order, "customer choose", payment_method="credit-card")
    sandbox.advance("PT30M")
    assert sandbox.status(order) == ("processing", "expired")
    sandbox.advance("P1D")
    assert sandbox.status(order) == ("expired", "expired")


def test_choosing_another_method_gives_the_open_attempt_up(sandbox: Sandbox) -> None:
    """Only one attempt is under way at a time."""
    order = sandbox.place()
    sandbox.acted(order, "customer choose", payment_method="bank-transfer")
    chosen = sandbox.acted(order, "customer choose", payment_method="wallet-qr")
    assert [t["status"] for t in chosen["transactions"]] == ["cancelled", "processing"]


def test_a_pending_transfer_outlives_the_hosted_page(live: Sandbox) -> None:
    """Money may be on its way, so the order ends with the transfer and not with the page."""
    order = live.place(expiration_period="PT1H")
    live.acted(order, "customer choose", payment_method="bank-transfer")
    live.advance("P2D")
    assert live.status(order) == ("processing", "pending")
    live.advance("P30D")
    assert live.status(order) == ("expired", "expired")


@pytest.mark.rule("CARD-02")
def test_five_card_families_have_test_cards(live: Sandbox) -> None:
    """Two credit, two debit, one combined; each family has a card that pays."""
    assert [len(CREDIT_FAMILIES), len(DEBIT_FAMILIES), len(COMBINED_FAMILIES)] == [2, 2, 1]
    for family in (*CREDIT_FAMILIES, *DEBIT_FAMILIES, *COMBINED_FAMILIES):
        assert any(known.family == family and not known.refusal for known in CARDS.values())
        paid = live.pay(live.place(card()), card=family)
        assert paid["transactions"][0]["payment_method_brand"] == family


@pytest.mark.rule("CARD-06", "CARD-07", "CARD-15", "CARD-16", "CARD-17", "CARD-18")
@pytest.mark.parametrize("name", ["frictionless", "challenge", "challenge-configurable"])
def test_test_cards_pay_and_are_shown_masked(sandbox: Sandbox, name: str) -> None:
    """Expiry as month and four-digit year, a holder, liability and a masked number."""
    shown = paid_details(sandbox, "credit-card", card=name)
    assert re.fullmatch(r"(0[1-9]|1[0-2])20\d\d", shown["card_expiry"])
    assert shown["cardholder_name"]
    assert shown["liability_shift"] is True
    assert re.fullmatch(r"\d{6}\*{6}\d{4}", shown["truncated_pan"])


@pytest.mark.rule("CARD-08")
def test_a_configurable_challenge_can_be_refused(sandbox: Sandbox) -> None:
    """The reason says that the customer did not authenticate."""
    order = sandbox.acted(sandbox.place(card()), "customer fail", card="challenge-configurable")
    assert order["transactions"][0]["reason"] == "3-D Secure: not authenticated"


@pytest.mark.parametrize(
    ("name", "reason"), [("declined", "Do not honour"), ("insufficient-funds", "Insufficient funds")]
)
def test_some_test_cards_are_declined_by_their_bank(sandbox: Sandbox, name: str, reason: str) -> None:
    """The customer pays with such a card and the attempt fails."""
    order = sandbox.pay(sandbox.place(card()), card=name)
    assert (order["status"], order["transactions"][0]["reason"]) == ("error", reason)


@pytest.mark.rule("TX-17")
def test_a_completed_card_payment_shows_its_charge(sandbox: Sandbox) -> None:
    """Whole cents, blended, in euros; and not before completion."""
    order = sandbox.place(card(), amount=10_000)
    assert "msc_amount" not in order["transactions"][0]
    (transaction,) = sandbox.pay(order)["transactions"]
    assert isinstance(transaction["msc_amount"], int)
    assert (transaction["msc_calculation_type"], transaction["msc_currency"]) == ("blended", "EUR")


@pytest.mark.rule("IDR-01", "IDR-06")
def test_a_bank_redirect_needs_an_issuer_of_the_list(sandbox: Sandbox) -> None:
    """Missing and unknown are told apart; the list is given."""
    path = "transactions[0].payment_method_details.issuer_id"
    without = sandbox.create({"payment_method": "bank-redirect-nl"})
    assert "required" in violations(without)[path]
    unknown = sandbox.create(by("bank-redirect-nl", payment_method_details={"issuer_id": "NOSUCHBANK"}))
    assert "issuers list" in violations(unknown)[path]
    issuers = [issuer["id"] for issuer in sandbox.get("/v1/bank-redirect-nl/issuers/").json()]
    assert unknown.json()["error"]["violations"][0]["allowed"] == issuers


@pytest.mark.rule("END-17", "ISS-01", "ISS-02")
def test_issuers_are_a_bare_array(sandbox: Sandbox) -> None:
    """Each has a BIC, a name and the list it stands in."""
    issuers = sandbox.get("/v1/bank-redirect-nl/issuers/").json()
    assert isinstance(issuers, list)
    for issuer in issuers:
        assert re.fullmatch(r"[A-Z]{6}[A-Z0-9]{2}([A-Z0-9]{3})?", issuer["id"])
        assert issuer["name"]
        assert issuer["list_type"]


@pytest.mark.rule("IDR-03", "IDR-04", "IDR-05")
def test_a_bank_redirect_shows_bank_and_payer(sandbox: Sandbox) -> None:
    """Before payment the bank's side, after it the payer's."""
    order = sandbox.place(by("bank-redirect-nl"))
    before = order["transactions"][0]["payment_method_details"]
    assert before["issuer_id"] == "SBXANL2A"
    assert before["issuer_authentication_url"].startswith("http://")
    assert before["status"] == "Open"
    assert re.fullmatch(r"\d{16}", before["transaction_id"])
    after = sandbox.pay(order)["transactions"][0]["payment_method_details"]
    assert after["status"] == "Success"
    assert (after["consumer_bic"], after["consumer_city"]) == ("SBXANL2A", "Utrecht")
    assert after["consumer_name"] is None or isinstance(after["consumer_name"], str)
    assert iban_remainder(after["consumer_iban"]) == 1


def iban_remainder(iban: str) -> int:
    """What ISO 13616 asks to be 1."""
    return int("".join(str(int(character, 36)) for character in iban[4:] + iban[:4])) % 97


@pytest.mark.rule("SEPA-01", "SEPA-03", "SEPA-05", "SEPA-06", "SEPA-08", "STA-10")
def test_a_transfer_is_created_pending_with_where_to_pay_to(sandbox: Sandbox) -> None:
    """No details are asked for; reference and creditor are given."""
    order = sandbox.place(by("bank-transfer"))
    (transaction,) = order["transactions"]
    assert (order["status"], transaction["status"]) == ("processing", "pending")
    shown = transaction["payment_method_details"]
    assert isinstance(shown["reference"], str)
    assert shown["reference"]
    for key in ("bic", "account_holder_name", "account_holder_city", "account_holder_country"):
        assert shown[f"creditor_{key}"]
    assert iban_remainder(shown["creditor_iban"]) == 1


@pytest.mark.rule("SEPA-04", "SET-62")
def test_test_mode_never_completes_a_transfer(sandbox: Sandbox) -> None:
    """A credit is refused, and the order stays pending until it expires."""
    order = sandbox.place(by("bank-transfer"))
    refused(sandbox.act(order, "bank credit"), 409, "NotCompletableInTestMode")
    sandbox.advance("P29D")
    assert sandbox.status(order) == ("processing", "pending")
    sandbox.advance("P1D")
    assert sandbox.status(order) == ("expired", "expired")
    refused(sandbox.act(order, "bank credit"), 409, "NotCompletableInTestMode")


@pytest.mark.rule("SET-63", "SEPA-07")
def test_a_credit_completes_a_live_transfer(live: Sandbox) -> None:
    """The payer becomes known with the money."""
    order = live.place(by("bank-transfer"))
    paid = live.acted(order, "bank credit")
    shown = paid["transactions"][0]["payment_method_details"]
    assert paid["status"] == "completed"
    assert shown["consumer_name"]
    assert shown["consumer_bic"]
    assert iban_remainder(shown["consumer_iban"]) == 1


def test_too_small_a_credit_leaves_a_transfer_pending(live: Sandbox) -> None:
    """The rest can follow."""
    order = live.place(by("bank-transfer"), amount=1000)
    assert live.acted(order, "bank credit", amount=999)["status"] == "processing"
    assert live.acted(order, "bank credit", amount=1)["status"] == "completed"


def test_too_large_a_credit_completes_a_transfer(live: Sandbox) -> None:
    """Nobody sends money back by himself."""
    order = live.place(by("bank-transfer"), amount=1000)
    assert live.acted(order, "bank credit", amount=5000)["status"] == "completed"


def test_a_late_credit_completes_an_expired_transfer(live: Sandbox) -> None:
    """Money that comes after expiry is there all the same."""
    order = live.place(by("bank-transfer"))
    live.advance("P31D")
    assert live.status(order) == ("expired", "expired")
    live.acted(order, "bank credit")
    assert live.status(order) == ("completed", "completed")


@pytest.mark.rule("GPAY-01")
def test_a_wallet_is_there_when_enabled_and_not_otherwise(sandbox: Sandbox) -> None:
    """The merchant's list decides."""
    assert sandbox.create(by("wallet-google")).status_code == 201
    sandbox.settings(payment_methods=["credit-card"])
    assert "not enabled" in violations(sandbox.create(by("wallet-google")))["transactions[0].payment_method"]


@pytest.mark.rule("GPAY-02", "GPAY-04", "GPAY-05")
@pytest.mark.parametrize("authorization", AUTHORIZATION_METHODS)
def test_both_ways_to_authorize_a_wallet_are_always_on(sandbox: Sandbox, authorization: str) -> None:
    """The card is shown, masked, with a network of the list; no setting switches a way off."""
    shown = paid_details(sandbox, "wallet-google", authorization=authorization)
    assert shown["authorization_method"] == authorization
    assert shown["allowed_authorization_methods"] == ["PAN_ONLY", "CRYPTOGRAM_3DS"]
    assert shown["three_d_secure"] == (authorization == "PAN_ONLY")
    assert shown["card_network"] in NETWORKS == ("mastercard", "visa", "amex", "discover", "unionpay")
    assert "*" in shown["truncated_pan"]
    assert "authorization" not in " ".join(sandbox.project["settings"]).replace("authorized_status", "")


@pytest.mark.rule("SET-37", "PLA-02")
def test_a_passed_screening_leads_to_the_page(sandbox: Sandbox) -> None:
    """New with a payment_url; the customer authorizes there, by default for capture by hand."""
    order = sandbox.place_with_lines("pay-later-a")
    assert order["status"] == "new"
    assert order["transactions"][0]["payment_url"]
    (transaction,) = sandbox.pay(order)["transactions"]
    assert (transaction["capture_mode"], transaction["is_capturable"]) == ("manual", True)


@pytest.mark.rule("STA-13", "STA-16", "ERR-02")
@pytest.mark.parametrize("method", ["pay-later-a", "invoice-later-b"])
def test_a_declined_screening_cancels_at_creation(sandbox: Sandbox, method: str) -> None:
    """Both screened methods answer cancelled."""
    sandbox.scenario({"then": {"screening": "declined", "reason": "Too young"}})
    order = sandbox.place_with_lines(method)
    (transaction,) = order["transactions"]
    assert (order["status"], transaction["status"]) == ("cancelled", "cancelled")
    assert transaction["reason"] == "Too young"
    assert "payment_url" not in transaction


@pytest.mark.rule("STA-15", "ERR-01", "ORD-25")
def test_a_screening_error_says_why_to_the_customer(sandbox: Sandbox) -> None:
    """Status error, and a reason that can be shown, in the creation's answer."""
    sandbox.scenario({"then": {"screening": "error", "reason": "Please check your postal code."}})
    order = sandbox.place_with_lines("pay-later-a")
    assert (order["status"], order["reason"]) == ("error", "Please check your postal code.")


@pytest.mark.rule("STA-14")
@pytest.mark.parametrize(
    ("then", "status"), [("passed", "new"), ("declined", "cancelled"), ("error", "error")]
)
def test_a_screening_that_needs_time_is_read_later(sandbox: Sandbox, then: str, status: str) -> None:
    """Processing without a payment_url; the answer comes on the agenda."""
    sandbox.scenario({"then": {"screening": "needs-time", "then": then, "after": "P2D"}})
    order = sandbox.place_with_lines("pay-later-a", expiration_period="P7D")
    assert order["status"] == "processing"
    assert "payment_url" not in order["transactions"][0]
    sandbox.advance("P2D")
    found = sandbox.read(order)
    assert found["status"] == status
    assert ("payment_url" in found["transactions"][0]) == (then == "passed")


@pytest.mark.parametrize(
    ("action", "status"), [("approve", "new"), ("decline", "cancelled"), ("error", "error")]
)
def test_a_screening_can_be_answered_by_hand(sandbox: Sandbox, action: str, status: str) -> None:
    """What the test says comes first; the planned answer then finds nothing to do."""
    sandbox.scenario({"then": {"screening": "needs-time"}})
    order = sandbox.place_with_lines("pay-later-a")
    refused(sandbox.act(order, "customer pay"), 409, "ActionNotPossible")
    sandbox.acted(order, f"screening {action}")
    assert sandbox.status(order)[0] == status
    assert [event["kind"] for event in sandbox.advance("PT1H")] == []


@pytest.mark.rule("INV-06", "STA-17", "PLA-05")
def test_a_passed_screening_accepts_an_invoice(sandbox: Sandbox) -> None:
    """Accepted at creation, ready to be captured."""
    order = sandbox.place_with_lines("invoice-later-b")
    (transaction,) = order["transactions"]
    assert (order["status"], transaction["status"]) == ("accepted", "accepted")
    assert transaction["is_capturable"] is True


@pytest.mark.rule("INV-03", "SET-40")
def test_an_invoice_is_accepted_until_nothing_is_left(sandbox: Sandbox) -> None:
    """Captured in parts it stays accepted, and completes with the last part."""
    order = sandbox.place_with_lines("invoice-later-b")
    sandbox.take(order, "captures/amount", {"amount": LINES_TOTAL - 1})
    assert sandbox.status(order) == ("accepted", "accepted")
    sandbox.take(order, "captures/amount", {"amount": 1})
    assert sandbox.status(order) == ("completed", "completed")


@pytest.mark.rule("INV-05", "REF-02")
def test_an_invoice_is_cancelled_before_capture(sandbox: Sandbox) -> None:
    """A refund is refused then, the cancellation works."""
    order = sandbox.place_with_lines("invoice-later-b")
    lines = [{"merchant_order_line_id": "socks", "quantity": 1}]
    answer = sandbox.post(f"/v1/orders/{order['id']}/refunds/", {"order_lines": lines})
    refused(answer, 409, "NothingToRefund")
    assert sandbox.delete(f"/v1/orders/{order['id']}/").json()["status"] == "cancelled"


TRIGGERS = [
    ({"email_address": "declined@example.com"}, LINES_TOTAL, "cancelled"),
    ({"email_address": "needs-time@example.com"}, LINES_TOTAL, "processing"),
    ({"email_address": "error@example.com"}, LINES_TOTAL, "error"),
    ({}, 66601, "cancelled"),
    ({}, 66602, "processing"),
    ({}, 66603, "error"),
    ({}, LINES_TOTAL, "new"),
]


@pytest.mark.parametrize(("customer", "amount", "status"), TRIGGERS)
def test_trigger_values_need_no_scenario(
    sandbox: Sandbox, customer: dict[str, str], amount: int, status: str
) -> None:
    """Customers and amounts of the default scenario decide a screening."""
    assert sandbox.place_with_lines("pay-later-a", customer=customer, amount=amount)["status"] == status


@pytest.mark.parametrize(
    ("local", "status"), [("pays", "completed"), ("fails", "error"), ("cancels", "cancelled")]
)
def test_trigger_customers_act_by_themselves(sandbox: Sandbox, local: str, status: str) -> None:
    """Ten seconds after creation, without a browser."""
    order = sandbox.place(card(), customer={"email_address": f"{local}@example.com"})
    assert order["status"] == "new"
    assert [event["label"] for event in sandbox.advance("PT10S")] == [
        f"customer {local.removesuffix('s')} for {order['id']}"
    ]
    assert sandbox.read(order)["status"] == status
