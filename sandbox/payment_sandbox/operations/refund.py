"""Sending money back: a refund is an order-like record of its own."""

from collections.abc import Mapping
from typing import Any

from payment_sandbox.kernel.periods import Period
from payment_sandbox.methods import BY_NAME, REFUND
from payment_sandbox.operations.attempts import play_out
from payment_sandbox.orders.amounts import Cents
from payment_sandbox.orders.lines import LineQuantity, Quantities
from payment_sandbox.orders.order import Order, RefundEntry
from payment_sandbox.orders.refunds import plan_refund
from payment_sandbox.orders.refusals import Invalid, NothingToRefund, Violation
from payment_sandbox.orders.transaction import Transaction
from payment_sandbox.projects.edit import Edit, IfMatch
from payment_sandbox.projects.project import Project


def refund(project: Project, order_id: str, data: Mapping[str, Any], if_match: IfMatch | None) -> Order:
    """Refund an amount, lines, or all that is left; returns the refund's record (SET-48, SET-49).

    Raises:
        Invalid: lines missing where the method needs them, unknown, or at odds with the amount.
        NothingToRefund, RefundExceedsCaptured: the order has not so much to give back.
    """
    asked = [LineQuantity(**line) for line in data["order_lines"]] if "order_lines" in data else None
    with project.edit() as edit:
        order = edit.matched_order(order_id, if_match)
        paid = order.last_transaction
        if paid is None or order.is_refund:
            raise NothingToRefund(f"order {order_id} is {order.status}: nothing was captured")
        if asked is None and BY_NAME[paid.method].capabilities.refunds_by_lines:
            problem = f"is required to refund {paid.payment_method}"
            raise Invalid([Violation("order_lines", problem, rule="END-09")])
        amount_cents, quantities = plan_refund(order, data.get("amount"), asked)
        if data.get("amount", amount_cents) != amount_cents:
            raise Invalid([Violation("amount", f"is not what the lines add up to, {amount_cents} cents")])
        record = edit.add(_record(edit, order, amount_cents, quantities, data.get("description")))
        entry = RefundEntry(record.id, amount_cents, quantities)
        order.refunds = (*order.refunds, entry)
        play_out(edit, record, record.transactions[0], [paid.method, paid.payment_method])
    return record


def _record(
    edit: Edit, order: Order, amount_cents: Cents, quantities: Quantities, description: str | None
) -> Order:
    paid = order.last_transaction
    assert paid is not None, "refused before"
    period = REFUND.capabilities.default_expiration
    transaction = Transaction(
        id=edit.ids.uuid("transaction"),
        method=paid.method,
        payment_method=paid.payment_method,
        amount_cents=amount_cents,
        created=edit.now,
        modified=edit.now,
        expiration_period=period,
        expires_at=Period.parse(period).after(edit.now),
        brand=paid.brand,
        credit_debit="debit",
    )
    return Order(
        id=edit.ids.uuid("order"),
        amount_cents=amount_cents,
        currency=order.currency,
        created=edit.now,
        modified=edit.now,
        client=order.client,
        is_test=order.is_test,
        last_transaction_added=edit.now,
        description=description,
        merchant_order_id=order.merchant_order_id,
        webhook_url=order.webhook_url,
        customer=order.customer,
        order_lines=tuple(
            order.order_lines[index]._replace(quantity=quantity) for index, quantity in quantities
        ),
        transactions=(transaction,),
        refund_of_order_id=order.id,
    )
