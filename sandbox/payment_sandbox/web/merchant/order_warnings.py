"""Warnings about values of an order that are accepted, but look like mistakes."""

import re
from collections.abc import Container, Iterator, Mapping
from contextlib import suppress
from functools import cache
from typing import Any, Final

from payment_sandbox.extensions import core
from payment_sandbox.forms.merchant_urls import url_problem
from payment_sandbox.kernel.patterns import Pattern
from payment_sandbox.methods import METHODS_BY_NAME
from payment_sandbox.orders.lines import total_cents
from payment_sandbox.orders.order import Order, locale_of, missing_personal_data

NOT_IN_ISO_3166: Final = frozenset("AC CP CQ DG EA EU EZ IC QO TA UN XA XB XK ZZ".split())  # noqa: SIM905
"""The regions of the library that ISO 3166-1 does not list as countries."""
EUROPEAN_CODES: Final = {"EL": "GR"}  # the European Union's own code, beside the library's aliases
_PHONE: Final = Pattern(r"[+(]?[0-9][0-9 ().\-/]*(?:(?:x|ext\.?) ?[0-9]+)?", re.IGNORECASE)
_LOCAL_PART: Final = Pattern(r"[^\s@]{1,64}")
_DOMAIN: Final = Pattern(r"[^\s@/?#:\[\]]{1,255}")
PHONE_DIGITS: Final = range(4, 16)
PERCENT: Final = 100  # in units of vat_percentage


def warnings_about(order: Order, changed: Container[str] | None = None) -> Iterator[str]:
    """Yield the warnings about a new order, or about the ``changed`` fields of an update."""
    if changed is None or "locale" in changed:
        yield from _about_locale(order)
    if changed is None or "customer" in changed:
        if customer := order.sent.get("customer"):
            yield from _about_customer(customer)
        yield from _about_personal_data(order)
    if changed is None or "order_lines" in changed:
        yield from _about_vat(order)
    if changed is None or "order_lines" in changed or "amount" in changed:
        yield from _about_total(order)


def _about_locale(order: Order) -> Iterator[str]:
    """Warn about a locale whose language has no pages (A68)."""
    tag = order.sent.get("locale")
    if tag is not None and locale_of(tag) is None:
        yield f"locale {tag[:40]!a} is in none of the languages of the pages: the customer sees English"


def _about_customer(customer: Mapping[str, Any]) -> Iterator[str]:
    """Warn about countries, phone numbers and email addresses that cannot be (A51)."""
    addresses = [("customer", customer)]
    others = enumerate(customer.get("additional_addresses", ()))
    for path, address in (*addresses, *((f"customer.additional_addresses[{i}]", each) for i, each in others)):
        code = address.get("country")
        meant = _country_meant(code.upper()) if code is not None else code
        if meant is not None:
            advice = f": send {meant}" if meant else ""
            yield f"{path}.country {code!a} is not a country code of ISO 3166{advice}"
    for index, number in enumerate(customer.get("phone_numbers", ())):
        if not _PHONE.fullmatch(number) or sum(map(str.isdigit, number)) not in PHONE_DIGITS:
            path = f"customer.phone_numbers[{index}]"
            yield f"{path} {number[:40]!a} cannot be a phone number: send it as +31201234567"
    email = customer.get("email_address")
    if email is not None and not _is_email(email):
        yield f"customer.email_address {email[:40]!a} cannot be an email address: send it as jan@example.com"


def _country_meant(code: str) -> str | None:
    """Return the country code that a wrong one means, or an empty text; None for a right code."""
    known, aliases = _countries()
    if not known or code in known:
        return None
    return EUROPEAN_CODES.get(code) or aliases.get(code, "")


@cache
def _countries() -> tuple[frozenset[str], Mapping[str, str]]:
    """Return the country codes, and those that replace former ones; without the library, no codes."""
    with suppress(ModuleNotFoundError):
        known = frozenset(core.Locale("en").territories) - NOT_IN_ISO_3166
        aliases = core.get_global("territory_aliases").items()
        return known, {code: names[0] for code, names in aliases if len(names) == 1 and names[0] in known}
    return frozenset(), {}


def _is_email(text: str) -> bool:
    local, _, domain = text.rpartition("@")
    if not _LOCAL_PART.fullmatch(local) or not _DOMAIN.fullmatch(domain):
        return False
    return all(local.split(".")) and url_problem(f"https://{domain}") is None


def _about_personal_data(order: Order) -> Iterator[str]:
    """Warn about missing personal data, which the service needs for its screening (A75)."""
    attempt = order.transactions[-1] if order.transactions else None
    if attempt is None or not METHODS_BY_NAME[attempt.method].capabilities.screens:
        return
    if missing := missing_personal_data(order.customer):
        yield (
            f"{attempt.payment_method} without {' and '.join(missing)}: the real service refused such orders "
            "(MissingInformationToCreateTransaction), and so does the setting personal_data: required"
        )


def _about_vat(order: Order) -> Iterator[str]:
    """Warn about VAT that looks like percent instead of hundredths of a percent (A61)."""
    for index, line in enumerate(order.order_lines):
        sent = line.vat_percentage or 0
        if 0 < sent < PERCENT:
            meaning = f"{sent} means {sent / PERCENT:.2f}%: for {sent}% send {sent * PERCENT}"
            yield f"order_lines[{index}].vat_percentage {meaning}"


def _about_total(order: Order) -> Iterator[str]:
    lines_cents = total_cents(order.order_lines) if order.order_lines else order.amount_cents
    if order.order_lines and lines_cents != order.amount_cents:
        yield f"order_lines add up to {lines_cents} cents and amount is {order.amount_cents}"
