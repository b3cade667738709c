"""The ways to pay that the page of an order offers."""

from typing import NamedTuple

from flask import request

from payment_sandbox.methods import BY_NAME
from payment_sandbox.methods.banking import ISSUERS, Issuer
from payment_sandbox.operations.attempts import offered
from payment_sandbox.web.pages.visit import Visit


class Choice(NamedTuple):
    """A way to pay: the name that the merchant knows it by, its label, and the banks to choose from."""

    name: str
    label: str
    issuers: tuple[Issuer, ...]


def choices(visit: Visit) -> list[Choice]:
    """The methods that are enabled, listed, usable for this order and testable here (GEN-03, GEN-04)."""
    settings = visit.project.settings
    found = []
    for name in offered(settings, visit.order):
        able = BY_NAME[settings.method(name) or ""].capabilities
        label = able.labels[visit.language.tag]
        found.append(Choice(name, label, ISSUERS if able.has_issuers else ()))
    return found


def is_repeated(visit: Visit, chosen: str) -> bool:
    """Whether a form was sent before: it knows fewer attempts than there are, and the newest is its own."""
    newest = visit.order.last_transaction
    known = request.form.get("attempts", "")
    is_older = known.isdecimal() and int(known) < len(visit.order.transactions)
    return newest is not None and is_older and newest.payment_method == chosen
