"""The payment methods that an order's page offers."""

from typing import NamedTuple

from flask import request

from payment_sandbox.methods import BY_NAME
from payment_sandbox.methods.common.banking import ISSUERS, Issuer
from payment_sandbox.operations.attempts import offered
from payment_sandbox.web.pages.payer_page import PayerPage


class Choice(NamedTuple):
    """A payment method: the merchant's name for it, its label, and its banks, if any."""

    name: str
    label: str
    hint: str
    icon: str
    issuers: tuple[Issuer, ...]


def choices(page: PayerPage) -> list[Choice]:
    """The methods that are enabled, listed, usable for this order and testable (GEN-03, GEN-04)."""
    settings = page.project.settings
    found = []
    for name in offered(settings, page.order):
        able = BY_NAME[settings.method(name) or ""].capabilities
        speaks = page.language
        hint = speaks.of(able.hint) if able.hint is not None else ""
        issuers = ISSUERS if able.has_issuers else ()
        found.append(Choice(name, speaks.of(able.labels), hint, able.icon, issuers))
    return found


def bank_choice(page: PayerPage, name: str) -> Choice | None:
    """The method whose bank has to be chosen next; None if it has no banks, or is not offered."""
    return next((choice for choice in choices(page) if choice.name == name and choice.issuers), None)


def is_repeated(page: PayerPage, chosen: str) -> bool:
    """Whether a form was sent twice: it is older than the newest attempt, which chose the same method."""
    newest = page.order.last_transaction
    known = request.form.get("attempts", "")
    is_older = known.isdecimal() and int(known) < len(page.order.transactions)
    return newest is not None and is_older and newest.payment_method == chosen
