"""Order lines, and quantities of lines in requests."""

from collections import deque
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Final, NamedTuple

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


class LineQuantity(NamedTuple):
    """A quantity of a line, as in a request."""

    merchant_order_line_id: str
    quantity: int


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

    Lines with the same id, in orders from older versions, are used in their order.

    Returns:
        The quantities by line index, and a message for each line with an insufficient remainder.
    """
    indexes = _remaining_by_id(lines, remaining)
    available = dict(remaining)
    taken: dict[int, int] = {}
    shortages: list[str] = []
    for item in requested:
        missing = _take(item.quantity, indexes.get(item.merchant_order_line_id, deque()), available, taken)
        if missing and len(shortages) < VIOLATIONS_MAX:
            shortages.append(
                f"line {item.merchant_order_line_id!r}: {item.quantity} requested, "
                f"{item.quantity - missing} left"
            )
    return tuple((index, quantity) for index, quantity in taken.items() if quantity), shortages


def _remaining_by_id(lines: Sequence[OrderLine], remaining: dict[int, int]) -> dict[str | None, deque[int]]:
    """Return the indexes of the lines with a remaining quantity, in order, by line id."""
    indexes: dict[str | None, deque[int]] = {}
    for index, line in enumerate(lines):
        if remaining.get(index, 0) > 0:
            indexes.setdefault(line.merchant_order_line_id, deque()).append(index)
    return indexes


def _take(wanted: int, indexes: deque[int], available: dict[int, int], taken: dict[int, int]) -> int:
    """Take a quantity from these lines, in order; return the shortfall."""
    while wanted and indexes:
        index = indexes[0]
        part = min(wanted, available[index])
        available[index] -= part
        taken[index] = taken.get(index, 0) + part
        wanted -= part
        if not available[index]:
            indexes.popleft()
    return wanted
