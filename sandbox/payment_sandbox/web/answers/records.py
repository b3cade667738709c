"""What merchants get to see of orders, transactions, refunds and QR requests; ``shapes`` documents it.

Written out rather than dumped through schemas, which takes three times as long; the tests hold every answer
against the documented shapes.
"""

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, Final

from payment_sandbox.kernel.moments import timestamp
from payment_sandbox.orders.amounts import Cents, decimal_text
from payment_sandbox.orders.authorization import Taken
from payment_sandbox.orders.customers import reduced
from payment_sandbox.orders.lines import OrderLine
from payment_sandbox.orders.order import Order
from payment_sandbox.orders.qr import QrRequest
from payment_sandbox.orders.statuses import TransactionStatus
from payment_sandbox.orders.transaction import Transaction
from payment_sandbox.projects.project import Project
from payment_sandbox.web import addresses

DETAILS: Final = "order_line_details"
AMOUNTS: Final = "amount_details"
ORDER_KEYS: Final = frozenset(
    "id merchant_id project_id status currency amount description merchant_order_id return_url webhook_url "
    "expiration_period payment_methods customer order_lines transactions client extra flags reason order_url "
    f"refund_of_order_id created modified completed last_transaction_added {DETAILS} {AMOUNTS}".split()
)
BENEFICIARY: Final = "Sandbox Merchant"
MSC_RATE_PER_MILLE: Final = 18
MSC_FIXED_CENTS: Final = 5


def order_record(project: Project, order: Order) -> dict[str, Any]:
    """An order or refund as answers show it; what is not there is left out."""
    settings = project.settings
    customer = order.customer
    if customer is not None and settings.reduced_customer:
        customer = reduced(customer)
    return _present(
        id=order.id,
        merchant_id=project.merchant_id,
        project_id=project.project_id,
        status=order.status,
        currency=order.currency,
        amount=order.amount_cents,
        description=order.description,
        merchant_order_id=order.merchant_order_id,
        return_url=order.return_url,
        webhook_url=order.webhook_url,
        expiration_period=order.expiration_period,
        payment_methods=list(order.payment_methods) if order.payment_methods is not None else None,
        customer=customer,
        order_lines=[line_record(line) for line in order.order_lines] or None,
        transactions=[transaction_record(project, order, attempt) for attempt in order.transactions],
        client=order.client,
        extra=_extra(order),
        flags=order.flags,
        reason=order.reason,
        order_url=addresses.order_url(project, order) if order.has_page else None,
        refund_of_order_id=order.refund_of_order_id,
        created=timestamp(order.created),
        modified=timestamp(order.modified),
        completed=_optional(order.completed),
        last_transaction_added=_optional(order.last_transaction_added),
    )


def _extra(order: Order) -> dict[str, Any] | None:
    """The merchant's own, and on QR orders the request's id."""
    if order.bankqr_id is None:
        return order.extra
    return {**(order.extra or {}), "bankqr_id": order.bankqr_id}


def line_record(line: OrderLine) -> dict[str, Any]:
    """An order line as it was sent."""
    return _present(
        type=line.type,
        amount=line.amount_cents,
        currency=line.currency,
        merchant_order_line_id=line.merchant_order_line_id,
        name=line.name,
        quantity=line.quantity,
        vat_percentage=line.vat_percentage,
    )


def transaction_record(project: Project, order: Order, attempt: Transaction) -> dict[str, Any]:
    """A transaction as answers show it."""
    return _present(
        id=attempt.id,
        order_id=order.id,
        merchant_id=project.merchant_id,
        project_id=project.project_id,
        status=attempt.status,
        payment_method=attempt.payment_method,
        payment_method_brand=attempt.brand,
        payment_method_details=addresses.resolved(project, order, attempt),
        payment_url=addresses.payment_url(project, order, attempt) if attempt.has_page else None,
        product_type="ecommerce",
        channel="ecom",
        amount=attempt.amount_cents,
        currency=order.currency,
        description=order.description,
        balance="test" if order.is_test else "internal",
        credit_debit=attempt.credit_debit,
        capture_mode=attempt.capture_mode,
        expiration_period=attempt.expiration_period,
        is_capturable=attempt.is_capturable,
        is_fully_captured=attempt.is_fully_captured,
        reason=attempt.reason,
        customer_message=attempt.customer_message,
        events=[
            {
                "id": event.id,
                "event": event.event,
                "occurred": timestamp(event.at),
                "noticed": timestamp(event.at),
                "source": "set_status",
            }
            for event in attempt.events
        ],
        created=timestamp(attempt.created),
        modified=timestamp(attempt.modified),
        completed=_optional(attempt.completed),
        **_service_charge(order, attempt),
    )


def _service_charge(order: Order, attempt: Transaction) -> Mapping[str, Any]:
    """What the service charges for a completed card payment (TX-17); the rate is invented (A26)."""
    if "card_expiry" not in attempt.details or attempt.status != TransactionStatus.COMPLETED:
        return {}
    charge_cents = MSC_FIXED_CENTS + attempt.amount_cents * MSC_RATE_PER_MILLE // 1000
    return {
        "msc_amount": charge_cents,
        "msc_calculation_type": "blended",
        "msc_currency": order.currency,
    }


def amount_details(order: Order) -> dict[str, Cents]:
    """What became of the amount; a sale counts as captured once it is paid (ADET-01)."""
    return {
        "original": order.amount_cents,
        "captured": order.captured_cents,
        "voided": order.voided_cents,
        "remaining": order.remaining_cents,
    }


def order_line_details(order: Order) -> list[dict[str, Any]]:
    """One entry per line and status, quantities of 0 left out, numbers as strings (LDET-01 to LDET-04)."""
    return [
        _present(
            amount=str(line.amount_cents),
            currency=line.currency,
            merchant_order_line_id=line.merchant_order_line_id,
            name=line.name,
            quantity=str(quantity),
            type=line.type,
            vat_percentage=str(line.vat_percentage) if line.vat_percentage is not None else None,
            status=status,
        )
        for status, quantities in _quantities_by_status(order)
        for line, quantity in ((order.order_lines[index], left) for index, left in quantities.items())
        if quantity
    ]


def _quantities_by_status(order: Order) -> Iterator[tuple[str, dict[int, int]]]:
    attempt = order.paying_transaction
    if attempt is None:
        return
    authorization = attempt.authorization
    if authorization is None:
        if attempt.captured_cents:
            yield "captured", {index: line.quantity for index, line in enumerate(order.order_lines)}
        return
    captured, voided = authorization.quantities(Taken.CAPTURED), authorization.quantities(Taken.VOIDED)
    if not authorization.remaining_cents:
        captured, voided = authorization.settled_quantities()
    elif not authorization.is_over:
        yield "authorized", authorization.remaining_quantities()
    yield "captured", captured
    yield "voided", voided


def qr_record(project: Project, request: QrRequest) -> dict[str, Any]:
    """A QR request as answers show it: its amount in decimals, its expiration to the minute, in UTC."""
    return _present(
        id=request.id,
        merchant_id=project.merchant_id,
        project_id=project.project_id,
        merchant_sub_id=1,
        beneficiary=project.settings.name or BENEFICIARY,
        amount=decimal_text(request.amount_cents) if request.amount_cents is not None else None,
        amount_changeable=request.amount_changeable,
        amount_min=decimal_text(request.amount_min_cents) if request.amount_min_cents else None,
        amount_max=decimal_text(request.amount_max_cents) if request.amount_max_cents else None,
        currency=request.currency,
        description=request.description,
        one_off=request.one_off,
        expiration=f"{request.expires_at:%Y-%m-%d %H:%M}",
        merchant_order_id=request.merchant_order_id,
        size=request.size_pixels,
        return_url=request.return_url,
        webhook_url=request.webhook_url,
        qr_url=addresses.qr_image_url(project, request),
    )


def _optional(moment: datetime | None) -> str | None:
    return timestamp(moment) if moment is not None else None


def _present(**values: Any) -> dict[str, Any]:
    return {key: value for key, value in values.items() if value is not None}
