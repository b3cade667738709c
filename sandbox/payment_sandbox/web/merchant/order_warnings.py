"""Warnings about values of an order that are accepted, but look like mistakes."""

from collections.abc import Container, Iterator
from typing import Final

from payment_sandbox.orders.lines import total_cents
from payment_sandbox.orders.order import Order, locale_of

PERCENT: Final = 100  # in units of vat_percentage


def warnings_about(order: Order, changed: Container[str] | None = None) -> Iterator[str]:
    """Yield the warnings about a new order, or about the ``changed`` fields of an update."""
    if changed is None or "locale" in changed:
        yield from _about_locale(order)
    if changed is None or "order_lines" in changed:
        yield from _about_vat(order)
    if changed is None:
        yield from _about_total(order)


def _about_locale(order: Order) -> Iterator[str]:
    """Warn about a locale whose language has no pages (A68)."""
    tag = order.sent.get("locale")
    if tag is not None and locale_of(tag) is None:
        yield f"locale {tag[:40]!a} is in none of the languages of the pages: the customer sees English"


def _about_vat(order: Order) -> Iterator[str]:
    """Warn about VAT that looks like percent instead of hundredths of a percent (A61)."""
    for index, line in enumerate(order.order_lines):
        sent = line.vat_percentage or 0
        if 0 < sent < PERCENT:
            meaning = f"{sent} means {sent / PERCENT:.2f}%: for {sent}% send {sent * PERCENT}"
            yield f"order_lines[{index}].vat_percentage {meaning}"


def _about_total(order: Order) -> Iterator[str]:
    lines_cents = total_cents(order.order_lines)
    if order.order_lines and lines_cents != order.amount_cents:
        yield f"order_lines add up to {lines_cents} cents and amount is {order.amount_cents}"
