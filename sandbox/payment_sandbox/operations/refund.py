"""Refunds, which are stored as separate orders."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from payment_sandbox.forms.order_fields import SENT_FIELDS
from payment_sandbox.kernel.times import Period
from payment_sandbox.methods import METHODS_BY_NAME, REFUND
from payment_sandbox.operations.attempts import decide_outcome
from payment_sandbox.orders.lines import LineQuantity
from payment_sandbox.orders.order import Order, RefundEntry
from payment_sandbox.orders.refunds import (
    PlannedRefund,
    RefundRequest,
    plan_refund,
    refundable_by_amount_cents,
    refundable_cents,
)
from payment_sandbox.orders.refusals import Invalid, NothingToRefund, Violation
from payment_sandbox.orders.statuses import TransactionStatus
from payment_sandbox.orders.transaction import Transaction
from payment_sandbox.projects.edit import Edit
from payment_sandbox.projects.epoch import IfMatch
from payment_sandbox.projects.project import Project
from payment_sandbox.projects.settings import LINES_DECIDE


class RefundResult(NamedTuple):
    """A refund's record, with a ``warning`` if the requested amount and lines did not match."""

    record: Order
    warning: str | None


def refund(
    project: Project, order_id: str, data: Mapping[str, Any], if_match: IfMatch | None
) -> RefundResult:
    """Refund an amount, lines or the remainder (SET-48, SET-49).

    Raises:
        Invalid: a line is unknown, or the method needs lines and the request has none.
        NothingToRefund, RefundExceedsCaptured: the amount exceeds the refundable remainder.
    """
    quantities = [LineQuantity(**line) for line in data["order_lines"]] if "order_lines" in data else None
    with project.edit() as edit:
        order = edit.order_if_match(order_id, if_match)
        if order.is_refund:
            raise NothingToRefund(f"order {order_id} is itself a refund: nothing to refund")
        if order.paying_transaction is None:
            raise NothingToRefund(f"order {order_id} is {order.status}: nothing was captured")
        request = RefundRequest(
            data.get("amount"),
            quantities,
            refunds_by_lines(order),
            edit.settings.refund_mismatch == LINES_DECIDE,
        )
        if request.needs_lines and quantities is None and not refundable_by_amount_cents(order):
            problem = f"is required to refund {order.paying_transaction.payment_method}"
            raise Invalid([Violation("order_lines", problem, rule="END-09")])
        planned_refund = plan_refund(order, request)
        source, warning = _find_source(order, request, planned_refund)
        record = edit.add(_build_refund(edit, order, source, planned_refund, data.get("description")))
        entry = RefundEntry(record.id, planned_refund.amount_cents, planned_refund.quantities)
        order.refunds = (*order.refunds, entry)
        names = [source.method, source.payment_method]
        decide_outcome(edit, record, record.transactions[0], REFUND, names)
        restore_refundable(edit, record)
    return RefundResult(record, planned_refund.warning or warning)


def refunds_by_lines(order: Order) -> bool:
    """Whether the paying method refunds its money by lines (END-09)."""
    paid = order.paying_transaction
    return paid is not None and METHODS_BY_NAME[paid.method].capabilities.refunds_by_lines


def _find_source(
    order: Order, request: RefundRequest, planned_refund: PlannedRefund
) -> tuple[Transaction, str | None]:
    """Return the attempt whose money goes back, and a warning if the refund spans two methods (A45).

    What arrived beside the paying attempt goes back first, unless the refund names lines.
    """
    paid = order.paying_transaction
    assert paid is not None, "refused before"
    others = [attempt for attempt in order.transactions if attempt.received_cents and attempt is not paid]
    surplus_cents = refundable_cents(order) - order.amount_cents
    if request.needs_lines or not paid.captured_cents:
        surplus_cents = refundable_by_amount_cents(order)
    if not others or surplus_cents <= 0 or request.lines is not None:
        return paid, None
    if planned_refund.amount_cents <= surplus_cents or others[-1].method == paid.method:
        return others[-1], None
    warning = (
        f"{planned_refund.amount_cents} cents span two methods: {surplus_cents} cents came by "
        f"{others[-1].payment_method}, the rest by {paid.payment_method}"
    )
    return paid, warning


def restore_refundable(edit: Edit, record: Order) -> None:
    """Add the amount of a failed refund back to the refundable remainder."""
    if record.transactions[0].status != TransactionStatus.ERROR:
        return
    assert record.refund_of_order_id is not None, "it is a refund"
    order = edit.order(record.refund_of_order_id)
    order.refunds = tuple(
        entry._replace(failed=True) if entry.refund_id == record.id else entry for entry in order.refunds
    )


def _build_refund(
    edit: Edit, order: Order, paid: Transaction, planned_refund: PlannedRefund, description: str | None
) -> Order:
    period = REFUND.capabilities.default_expiration
    transaction = Transaction(
        id=edit.ids.uuid("transaction"),
        method=paid.method,
        payment_method=paid.payment_method,
        amount_cents=planned_refund.amount_cents,
        created=edit.now,
        modified=edit.now,
        expiration_period=period,
        expires_at=Period.parse(period).after(edit.now),
        brand=paid.brand,
        credit_debit="debit",
    )
    copied = [field.name for field in SENT_FIELDS if field.is_refunded]
    sent = {name: order.sent[name] for name in copied if name in order.sent}
    return Order(
        id=edit.ids.uuid("order"),
        amount_cents=planned_refund.amount_cents,
        currency=order.currency,
        created=edit.now,
        modified=edit.now,
        client=order.client,
        is_test=order.is_test,
        last_transaction_added=edit.now,
        sent={**sent, **({"description": description} if description is not None else {})},
        order_lines=tuple(
            order.order_lines[index]._replace(quantity=quantity)
            for index, quantity in planned_refund.quantities
        ),
        transactions=(transaction,),
        refund_of_order_id=order.id,
    )
