"""Search the orders of a project."""

from collections.abc import Iterator
from typing import Any, Final, NamedTuple
from unicodedata import combining, normalize

from payment_sandbox.orders.amounts import euros
from payment_sandbox.orders.order import Order
from payment_sandbox.orders.refusals import Invalid, Violation
from payment_sandbox.projects.epoch import Epoch
from payment_sandbox.projects.order_logs import OrderLog, log_of

GROUPED_CENTS_MIN: Final = 100_000  # from which amounts have a separator of thousands
SEARCHED_CUSTOMER_FIELDS: Final = ("email_address", "first_name", "last_name")


class OrderFilter(NamedTuple):
    """Search conditions, which must all hold; None means any. ``before`` is the previous page's last id."""

    status: str | None = None
    method: str | None = None
    text: str | None = None
    before: str | None = None

    def matches(self, order: Order) -> bool:
        """Whether an order meets all conditions except ``before`` and ``text``."""
        return self.status in (None, order.status) and (
            self.method is None or self.method in methods_of(order)
        )


def find_orders(epoch: Epoch, order_filter: OrderFilter) -> Iterator[Order]:
    """Yield the matching orders, newest first; the id of a refund matches its order.

    Raises:
        Invalid: ``before`` is not the id of an order.
    """
    if order_filter.before is not None and epoch.store.order(order_filter.before) is None:
        raise Invalid([Violation("before", "is not the id of an order")])
    return _matching_orders(epoch, order_filter)


def _matching_orders(epoch: Epoch, order_filter: OrderFilter) -> Iterator[Order]:
    is_begun, text = order_filter.before is None, _fold(order_filter.text or "")
    for order in epoch.store.orders_newest_first():
        is_match = is_begun and not order.is_refund and order_filter.matches(order)
        if is_match and (not text or text in log_of(epoch, order).derive(_searchable_text)):
            yield order
        is_begun = is_begun or order.id == order_filter.before


def methods_of(order: Order) -> list[str]:
    """List the methods of an order's attempts, with their aliases."""
    return [name for attempt in order.transactions for name in (attempt.method, attempt.payment_method)]


def _searchable_text(log: OrderLog) -> str:
    """Join the searchable fields of an order, one per line."""
    order = next(iter(log.orders.values()))
    customer: dict[str, Any] = order.customer or {}
    texts = [order.id, order.merchant_order_id or "", order.description or "", order.status]
    texts += _format_amounts(order)
    texts += methods_of(order)
    texts += [str(customer[name]) for name in SEARCHED_CUSTOMER_FIELDS if customer.get(name)]
    texts += [refund.refund_id for refund in order.refunds]
    return _fold("\n".join(texts))


def _format_amounts(order: Order) -> list[str]:
    """Format an order's amount in the usual notations: €1.05, 1,05, €1,234.50 and 1234.50."""
    plain = f"€{order.amount_cents // 100}.{order.amount_cents % 100:02}"
    grouped = [euros(order.amount_cents)] if order.amount_cents >= GROUPED_CENTS_MIN else []
    return [plain, plain.replace(".", ","), *grouped]


LETTER_REPLACEMENTS: Final = str.maketrans(
    {
        "ł": "l",
        "ø": "o",
        "đ": "d",
        "ħ": "h",
        "ŧ": "t",
        "\N{LATIN SMALL LETTER DOTLESS I}": "i",
        "æ": "ae",
        "œ": "oe",
    }
)
"""Replacements for letters that Unicode does not decompose: strokes and ligatures."""


def _fold(text: str) -> str:
    """Fold the case and the accents of a text."""
    folded = text.casefold()
    if folded.replace("€", "").isascii():  # the usual case, which is much faster
        return folded
    unaccented = "".join(letter for letter in normalize("NFKD", folded) if not combining(letter))
    return unaccented.translate(LETTER_REPLACEMENTS)
