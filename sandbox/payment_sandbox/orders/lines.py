"""Order lines, and quantities of lines in requests."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Any, Final, NamedTuple

from payment_sandbox.orders.amounts import Cents
from payment_sandbox.orders.refusals import (
    ALLOWED_MAX,
    QUOTED_WORD_LENGTH_MAX,
    VIOLATIONS_MAX,
    Invalid,
    Violation,
)

LINE_TYPES: Final = (
    "physical",
    "discount",
    "shipping_fee",
    "sales_tax",
    "digital",
    "gift_card",
    "store_credit",
    "surcharge",
)
LINES_MAX: Final = 1000  # in an order, a capture, a void or a refund (A49)
NEGATIVE_LINE_TYPES: Final = frozenset({"discount", "gift_card", "physical", "store_credit"})

Quantities = tuple[tuple[int, int], ...]
"""Pairs of a line index and a quantity."""


class OrderLine(NamedTuple):
    """One line of an order; ``amount_cents`` is per item, VAT included (A16)."""

    amount_cents: Cents
    quantity: int
    currency: str
    type: str
    name: str | None = None
    merchant_order_line_id: str | None = None
    vat_percentage: int | None = None
    additional: Mapping[str, Any] = {}  # keys without a meaning in the sandbox, as in the request


ADDITIONAL_KEYS: Final = ("url", "image_url", "ean", "discount_rate", "id")


class LineQuantity(NamedTuple):
    """A quantity of a line, as in a request."""

    merchant_order_line_id: str
    quantity: int


class LinesByStatus(NamedTuple):
    """The quantities of an order's lines in each status, by line index; see ``order_line_details``."""

    remaining: dict[int, int]  # authorized, or expired
    captured: dict[int, int]
    voided: dict[int, int]


def total_cents(lines: Iterable[OrderLine]) -> Cents:
    """Return the sum of the lines."""
    return sum(line.amount_cents * line.quantity for line in lines)


def quantities_total_cents(lines: Sequence[OrderLine], quantities: Quantities) -> Cents:
    """Return the sum of these quantities of the lines."""
    return sum(lines[index].amount_cents * quantity for index, quantity in quantities)


def add_quantities(parts: Iterable[Quantities]) -> dict[int, int]:
    """Add up quantities per line index."""
    sums: dict[int, int] = {}
    for part in parts:
        for index, quantity in part:
            sums[index] = sums.get(index, 0) + quantity
    return sums


def refuse_unknown_lines(lines: Sequence[OrderLine], requested: Sequence[LineQuantity]) -> None:
    """Refuse unknown line ids.

    Raises:
        Invalid: lists the path of every unknown id, and the known ids.
    """
    known = {line.merchant_order_line_id for line in lines if line.merchant_order_line_id is not None}
    unknown = (
        (position, item.merchant_order_line_id)
        for position, item in enumerate(requested)
        if item.merchant_order_line_id not in known
    )
    shown = sorted(known)[:ALLOWED_MAX]
    violations = [
        Violation(
            f"order_lines[{position}].merchant_order_line_id",
            f"no line of this order has the id {line_id[:QUOTED_WORD_LENGTH_MAX]!r}",
            shown,
        )
        for position, line_id in islice(unknown, VIOLATIONS_MAX)
    ]
    if violations:
        raise Invalid(violations)


def allocate(
    lines: Sequence[OrderLine], remaining: dict[int, int], requested: Sequence[LineQuantity]
) -> tuple[Quantities, list[str]]:
    """Allocate the requested quantities to the remainder of each line.

    Returns:
        The quantities by line index, and a message for each line with an insufficient remainder.
    """
    indexes = {line.merchant_order_line_id: index for index, line in enumerate(lines)}
    taken: dict[int, int] = {}
    shortages: list[str] = []
    for item in requested:
        index = indexes[item.merchant_order_line_id]
        left = remaining.get(index, 0) - taken.get(index, 0)
        taken[index] = taken.get(index, 0) + min(item.quantity, left)
        if item.quantity > left and len(shortages) < VIOLATIONS_MAX:
            shortages.append(f"line {item.merchant_order_line_id!r}: {item.quantity} requested, {left} left")
    return tuple((index, quantity) for index, quantity in taken.items() if quantity), shortages
