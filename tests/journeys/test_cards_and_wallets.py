"""Test cards have predefined outcomes, and wallets contain cards."""

import re
from typing import Any

import pytest

from payment_sandbox.orders.cards import (
    AUTHORIZATION_METHODS,
    CARDS,
    COMBINED_FAMILIES,
    CREDIT_FAMILIES,
    DEBIT_FAMILIES,
    NETWORKS,
)
from tests.support.driver import Sandbox, by, card, violations


def paid_details(sandbox: Sandbox, method: str, **more: Any) -> dict[str, Any]:
    """Return the payment method details of a paid order."""
    details: dict[str, Any] = sandbox.pay(sandbox.place(by(method)), **more)["transactions"][0][
        "payment_method_details"
    ]
    return details


@pytest.mark.rule("CARD-02")
def test_five_card_families_have_test_cards(live: Sandbox) -> None:
    """There are two credit, two debit and one combined family, and each has a card that pays."""
    assert [len(CREDIT_FAMILIES), len(DEBIT_FAMILIES), len(COMBINED_FAMILIES)] == [2, 2, 1]
    for family in (*CREDIT_FAMILIES, *DEBIT_FAMILIES, *COMBINED_FAMILIES):
        assert any(known.family == family and not known.refusal for known in CARDS.values())
        paid = live.pay(live.place(card()), card=family)
        assert paid["transactions"][0]["payment_method_brand"] == family


@pytest.mark.rule("CARD-06", "CARD-07", "CARD-15", "CARD-16", "CARD-17", "CARD-18")
@pytest.mark.parametrize("name", ["frictionless", "challenge", "challenge-configurable"])
def test_test_cards_pay_and_are_shown_masked(sandbox: Sandbox, name: str) -> None:
    """The details have an expiry as month and four-digit year, a holder, liability and a masked number."""
    shown = paid_details(sandbox, "credit-card", card=name)
    assert re.fullmatch(r"(0[1-9]|1[0-2])20\d\d", shown["card_expiry"])
    assert isinstance(shown["cardholder_name"], str)
    assert shown["liability_shift"] is True
    assert re.fullmatch(r"\d{6}\*{6}\d{4}", shown["truncated_pan"])


@pytest.mark.parametrize(
    ("name", "reason"), [("declined", "Do not honour"), ("insufficient-funds", "Insufficient funds")]
)
def test_some_test_cards_are_declined_by_their_bank(sandbox: Sandbox, name: str, reason: str) -> None:
    """A payment with a declining card fails with the bank's reason."""
    order = sandbox.pay(sandbox.place(card()), card=name)
    assert (order["status"], order["transactions"][0]["reason"]) == ("error", reason)


@pytest.mark.rule("TX-17", "A26")
def test_a_completed_card_payment_shows_its_charge(sandbox: Sandbox) -> None:
    """The charge is in whole cents, blended and in euros, and appears only after completion."""
    order = sandbox.place(card(), amount=10_000)
    assert "msc_amount" not in order["transactions"][0]
    (transaction,) = sandbox.pay(order)["transactions"]
    assert isinstance(transaction["msc_amount"], int)
    assert (transaction["msc_calculation_type"], transaction["msc_currency"]) == ("blended", "EUR")


@pytest.mark.rule("GPAY-01")
def test_a_wallet_is_there_when_enabled_and_not_otherwise(sandbox: Sandbox) -> None:
    """The merchant's list of methods determines whether a wallet is available."""
    assert sandbox.create(by("wallet-google")).status_code == 201
    sandbox.settings(payment_methods=["credit-card"])
    assert "not enabled" in violations(sandbox.create(by("wallet-google")))["transactions[0].payment_method"]


@pytest.mark.rule("GPAY-02", "GPAY-04", "GPAY-05")
@pytest.mark.parametrize("authorization", AUTHORIZATION_METHODS)
def test_both_ways_to_authorize_a_wallet_are_always_on(sandbox: Sandbox, authorization: str) -> None:
    """The card is masked and has a known network; no setting disables an authorization method."""
    shown = paid_details(sandbox, "wallet-google", authorization=authorization)
    assert shown["authorization_method"] == authorization
    assert shown["allowed_authorization_methods"] == ["PAN_ONLY", "CRYPTOGRAM_3DS"]
    assert shown["three_d_secure"] == (authorization == "PAN_ONLY")
    assert shown["card_network"] in NETWORKS == ("mastercard", "visa", "amex", "discover", "unionpay")
    assert "*" in shown["truncated_pan"]
    assert "authorization" not in " ".join(sandbox.project["settings"]).replace("authorized_status", "")
