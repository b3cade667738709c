"""The orders of a project, newest first, for people and programs that look for one."""

from collections.abc import Iterator
from typing import Any, Final, NamedTuple
from unicodedata import combining, normalize

from payment_sandbox.orders.order import Order
from payment_sandbox.orders.refusals import Invalid, Violation
from payment_sandbox.projects.epoch import Epoch

CUSTOMER_TEXTS: Final = ("email_address", "first_name", "last_name")


class Wanted(NamedTuple):
    """Which orders: all conditions hold; None means any. ``before`` is the id of an order."""

    status: str | None = None
    method: str | None = None
    text: str | None = None
    before: str | None = None

    def matches(self, order: Order) -> bool:
        """Whether an order meets the conditions; ``before`` is not one, and ``text`` is plain already."""
        return (
            self.status in (None, order.status)
            and (self.method is None or self.method in methods_of(order))
            and (self.text is None or self.text in _texts(order))
        )


def find_orders(epoch: Epoch, wanted: Wanted) -> Iterator[Order]:
    """The orders that meet the conditions, newest first; refunds are found by their order.

    Raises:
        Invalid: there is no order with the id ``before``.
    """
    if wanted.before is not None and epoch.store.order(wanted.before) is None:
        raise Invalid([Violation("before", "is not the id of an order")])
    return _found(epoch, wanted._replace(text=wanted.text and _plain(wanted.text)))


def _found(epoch: Epoch, wanted: Wanted) -> Iterator[Order]:
    is_begun = wanted.before is None
    for order in epoch.store.orders_newest_first():
        if is_begun and not order.is_refund and wanted.matches(order):
            yield order
        is_begun = is_begun or order.id == wanted.before


def methods_of(order: Order) -> list[str]:
    """The methods of an order's attempts, with the merchant's own names for them."""
    return [name for attempt in order.transactions for name in (attempt.method, attempt.payment_method)]


def _texts(order: Order) -> str:
    """All that a search looks at, one per line."""
    customer: dict[str, Any] = order.customer or {}
    texts = [
        order.id,
        order.merchant_order_id,
        order.description,
        order.status,
        f"{order.amount_cents // 100}.{order.amount_cents % 100:02}",
        *methods_of(order),
        *(str(customer.get(name) or "") for name in CUSTOMER_TEXTS),
        *(refund.refund_id for refund in order.refunds),
    ]
    return _plain("\n".join(filter(None, texts)))


def _plain(text: str) -> str:
    """A text without the difference of cases and accents."""
    folded = text.casefold()
    if folded.isascii():
        return folded
    return "".join(letter for letter in normalize("NFKD", folded) if not combining(letter))
