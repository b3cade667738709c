"""The refundable remainder of an order, by amount and by line."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from payment_sandbox.orders.amounts import Cents
from payment_sandbox.orders.lines import (
    LineQuantity,
    LinesByStatus,
    Quantities,
    add_quantities,
    allocate,
    quantities_total_cents,
    refuse_unknown_lines,
)
from payment_sandbox.orders.order import Order
from payment_sandbox.orders.refusals import Invalid, NothingToRefund, RefundExceedsCaptured, Violation

REFUND_WITHOUT_AMOUNT: Final = (
    "a refund without amount: the real service did not understand refunds with lines only, and since 2022 "
    "public plugins send amount, description and lines"
)
"""The warning about a refund that the specification allows."""


def refundable_cents(order: Order) -> Cents:
    """Return the captured or completed amount, minus all refunds except failed ones."""
    return order.received_cents - sum(refund.amount_cents for refund in order.refunds if not refund.failed)


def refunded_quantities(order: Order) -> dict[int, int]:
    """Return the refunded quantities by line index, without failed refunds."""
    return add_quantities(refund.quantities for refund in order.refunds if not refund.failed)


def lines_by_status(order: Order) -> LinesByStatus:
    """Return which lines are captured and voided; refunds and ``order_line_details`` read it."""
    paid = order.paying_transaction
    if paid is not None and paid.authorization is not None:
        return paid.authorization.lines_by_status(refunded_quantities(order))
    quantities = {index: line.quantity for index, line in enumerate(order.order_lines)}
    return LinesByStatus({}, quantities if paid is not None and paid.captured_cents else {}, {})


def refundable_quantities(order: Order) -> dict[int, int]:
    """Return the quantities that can still be refunded, by line index.

    After a capture by amount, only the amount limits the items that are not captured or voided yet.
    """
    paid = order.paying_transaction
    authorization = paid.authorization if paid is not None else None
    lines, refundable = lines_by_status(order), {}
    undecided = authorization is not None and authorization.captured_beyond_lines_cents
    refunded = refunded_quantities(order)
    for index in range(len(order.order_lines)):
        captured = lines.captured.get(index, 0) + (lines.remaining.get(index, 0) if undecided else 0)
        refundable[index] = captured - refunded.get(index, 0)
    return refundable


def refundable_by_amount_cents(order: Order) -> Cents:
    """Return what can be refunded without lines, beside the money of a method that needs them."""
    paid = order.paying_transaction
    refunded = tuple(refunded_quantities(order).items())
    captured_cents = paid.captured_cents if paid is not None else 0
    by_lines_cents = captured_cents - quantities_total_cents(order.order_lines, refunded)
    return max(0, refundable_cents(order) - max(0, by_lines_cents))


class RefundRequest(NamedTuple):
    """A requested refund, and the rules of the method that it refunds."""

    amount_cents: Cents | None
    lines: Sequence[LineQuantity] | None
    needs_lines: bool  # the method refunds by lines
    follows_lines: bool  # lines decide although they contradict the amount


class PlannedRefund(NamedTuple):
    """The amount and quantities of a refund, with a ``warning`` if the requested amount and lines differ."""

    amount_cents: Cents
    quantities: Quantities
    warning: str | None = None


def plan_refund(order: Order, request: RefundRequest) -> PlannedRefund:
    """Plan a refund of an amount, of lines, or of the remainder (SET-49).

    If the request has both, the amount takes precedence, unless the method refunds by lines (A46).

    Raises:
        Invalid: a line is unknown, lines are missing, contradict the amount or add up to less than 1 cent.
        NothingToRefund: nothing was captured, or everything is already refunded.
        RefundExceedsCaptured: the refund exceeds the refundable remainder.
    """
    if request.lines is not None:
        refuse_unknown_lines(order.order_lines, request.lines)
    remaining_cents = refundable_cents(order)
    if remaining_cents <= 0:
        part_cents = sum(attempt.credited_cents for attempt in order.transactions if order.is_open)
        remedy = f"; cancel the order to refund the {part_cents} cents of its transfer" if part_cents else ""
        raise NothingToRefund(
            f"order {order.id} is {order.status} with {order.received_cents} cents captured "
            f"and {order.received_cents - remaining_cents} refunded: nothing is left to refund{remedy}"
        )
    if request.lines is None:
        return _plan_amount(order, request, remaining_cents)
    lines_cents = _total_cents(order, request.lines)
    amount_cents = request.amount_cents
    if amount_cents is not None and amount_cents != lines_cents and not request.needs_lines:
        differs = f"order_lines add up to {lines_cents} cents; amount takes precedence: {amount_cents} cents"
        return PlannedRefund(_refuse_excess(amount_cents, remaining_cents), (), differs)
    quantities, total_cents = _refund_lines(order, request.lines)
    if request.needs_lines:
        remaining_cents -= refundable_by_amount_cents(order)
    warning = _mismatch_warning(request, total_cents)
    return PlannedRefund(_refuse_excess(total_cents, remaining_cents), quantities, warning)


def _plan_amount(order: Order, request: RefundRequest, remaining_cents: Cents) -> PlannedRefund:
    """Plan a refund without lines; without an amount, it includes what only lines refund otherwise."""
    if not request.needs_lines:
        return PlannedRefund(_refuse_excess(request.amount_cents or remaining_cents, remaining_cents), ())
    if request.amount_cents is not None:
        return PlannedRefund(_refuse_excess(request.amount_cents, refundable_by_amount_cents(order)), ())
    quantities = ((index, quantity) for index, quantity in refundable_quantities(order).items() if quantity)
    return PlannedRefund(remaining_cents, tuple(quantities))


def _mismatch_warning(request: RefundRequest, total_cents: Cents) -> str | None:
    """Compare the amount with the lines of a method that refunds by lines.

    Raises:
        Invalid: they differ by more than one cent an item, and the lines do not decide all the same.
    """
    amount_cents, items = request.amount_cents, sum(line.quantity for line in request.lines or ())
    if amount_cents in (None, total_cents):
        return None
    assert amount_cents is not None, "it differs"
    if not request.follows_lines and abs(amount_cents - total_cents) > items:
        problem = f"is {amount_cents} cents, but order_lines add up to {total_cents} cents, which decide"
        raise Invalid([Violation("amount", problem)])
    return f"amount is {amount_cents} cents; order_lines take precedence: {total_cents} cents"


def _total_cents(order: Order, requested: Sequence[LineQuantity]) -> Cents:
    """Add up the requested lines, regardless of the remainders."""
    total_quantity = sum(item.quantity for item in requested)
    everything = dict.fromkeys(range(len(order.order_lines)), total_quantity)
    quantities, _ = allocate(order.order_lines, everything, requested)
    return quantities_total_cents(order.order_lines, quantities)


def _refund_lines(order: Order, requested: Sequence[LineQuantity]) -> tuple[Quantities, Cents]:
    quantities, shortages = allocate(order.order_lines, refundable_quantities(order), requested)
    if shortages:
        raise RefundExceedsCaptured("; ".join(shortages))
    total_cents = quantities_total_cents(order.order_lines, quantities)
    if total_cents < 1:
        raise Invalid(
            [Violation("order_lines", f"these lines add up to {total_cents} cents, expected at least 1")]
        )
    return quantities, total_cents


def _refuse_excess(amount_cents: Cents, remaining_cents: Cents) -> Cents:
    if amount_cents > remaining_cents > 0:
        problem = f"{amount_cents} cents is too much: {remaining_cents} cents are left to refund"
        raise RefundExceedsCaptured(problem)
    if amount_cents > remaining_cents:
        raise RefundExceedsCaptured("nothing is left to refund")
    return amount_cents
