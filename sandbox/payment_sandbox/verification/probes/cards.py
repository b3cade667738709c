"""Stored cards: one-click payments and recurring series."""

from typing import Any, Final

from payment_sandbox.verification.answer import MISSING, Answer
from payment_sandbox.verification.checks import (
    BOOLEAN,
    TEXT,
    CannotTell,
    Checks,
    absent,
    holds,
    kind,
    refused,
    same,
)
from payment_sandbox.verification.probing import probe
from payment_sandbox.verification.samples import card
from payment_sandbox.verification.service import Service

DETAILS: Final = "transactions[0].payment_method_details."
PAGE: Final = "transactions[0].payment_url"


def _stored(service: Service, **details: Any) -> tuple[Answer, str]:
    """A first payment, and its token."""
    order, _ = service.paid(card(**details))
    token = order.at(f"{DETAILS}vault_token")
    if not isinstance(token, str):
        raise CannotTell(f"after a first payment the order is {order.at('status')}, without vault_token")
    return order, token


@probe("STA-08", "FLOW-04", "CARD-15", "CARD-16", "CARD-17", "CARD-18", "CARD-19", "CARD-20", spends=True)
def a_first_payment(service: Service) -> Checks:
    """It completes, and shows its card and the token."""
    order, _ = service.paid(card(one_click_type="first"))
    for rule in ("STA-08", "FLOW-04"):
        yield same(rule, order, "status", "completed")
        yield kind(rule, order, f"{DETAILS}vault_token", TEXT)
    yield kind("CARD-20", order, f"{DETAILS}vault_token", TEXT)
    expiry = str(order.at(f"{DETAILS}card_expiry"))
    yield holds("CARD-15", len(expiry) in (6, 7) and expiry[-4:].isdigit(), f"card_expiry is {expiry}")
    yield kind("CARD-16", order, f"{DETAILS}cardholder_name", TEXT)
    yield kind("CARD-17", order, f"{DETAILS}liability_shift", BOOLEAN)
    pan = str(order.at(f"{DETAILS}truncated_pan"))
    masked = order.at(f"{DETAILS}truncated_pan") is not MISSING and not pan.isdigit()
    yield holds("CARD-18", masked, f"truncated_pan is {pan}")
    yield same("CARD-19", order, f"{DETAILS}one_click_type", "first")


@probe("STA-11", "FLOW-05", "FLOW-06", "LIM-10", "TX-13", "CARD-21", spends=True)
def one_click(service: Service) -> Checks:
    """A stored card pays at once, any amount, with its CVC."""
    first, token = _stored(service, one_click_type="first")
    actual = {"one_click_type": "one-click", "vault_token": token}
    without = service.create(card(**actual))
    yield from refused("LIM-11", without, 400, "ValidationError")
    order = service.create(card(**actual, cvc="123"), amount=1750)
    for rule in ("FLOW-05", "LIM-10"):
        yield holds(rule, order.is_success, f"another amount is {order.told}: {order.at('error.value')}")
    if not order.is_success:
        raise CannotTell(f"a one-click payment is {order.told}")
    yield same("STA-11", order, "status", "completed")
    for rule in ("FLOW-06", "TX-13"):
        yield absent(rule, order, PAGE)
    place = f"{DETAILS}first_authorised_transaction_id"
    yield same("CARD-21", order, place, first.at("transactions[0].id"))


@probe("STA-09", "FLOW-07", "STA-12", "FLOW-08", "FLOW-09", "LIM-07", "SET-64", spends=True)
def recurring(service: Service) -> Checks:
    """A series charges the amount of its first payment, without anybody."""
    first, token = _stored(service, recurring_type="first")
    for rule in ("STA-09", "FLOW-07"):
        yield same(rule, first, "status", "completed")
    actual = card(recurring_type="recurring", vault_token=token)
    other = service.create(actual, amount=1750)
    for rule in ("LIM-07", "SET-64"):
        yield from refused(rule, other, 400, "ValidationError", "amount")
    order = service.create(actual)
    yield holds("FLOW-08", order.is_success, f"a recurring payment is {order.told}")
    if not order.is_success:
        raise CannotTell(f"a recurring payment is {order.told}")
    yield same("STA-12", order, "status", "processing")
    yield absent("FLOW-09", order, PAGE)
