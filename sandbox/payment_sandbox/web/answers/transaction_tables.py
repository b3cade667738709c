"""Transactions in requests and responses."""

from collections.abc import Mapping
from typing import Any, Final

from marshmallow import fields

from payment_sandbox.forms import Choice, Form, FormPart, PeriodText, Text
from payment_sandbox.methods import METHODS_BY_NAME, details_fields
from payment_sandbox.methods.messages import customer_message_of, reason_of
from payment_sandbox.orders.order import Order
from payment_sandbox.orders.statuses import TransactionStatus
from payment_sandbox.orders.transaction import Transaction
from payment_sandbox.projects.project import Project
from payment_sandbox.web.answers import page_urls
from payment_sandbox.web.answers.tables import COMPUTED, CREATE, RecordField, Table, moment, number, text

STATUSES: Final = [status.value for status in TransactionStatus]
MSC_RATE_PER_MILLE: Final = 18
MSC_FIXED_CENTS: Final = 5

DetailsForm: Final = type(
    "DetailsForm",
    (Form,),
    {
        "__doc__": "Details that some payment methods require or accept.",
        "__module__": __name__,
        **{
            name: Choice(field.choices, about=field.about)
            if field.choices
            else Text(pattern=field.pattern, expected=field.expected, about=field.about)
            for name, field in details_fields().items()
        },
    },
)


EVENT: Final = Table(
    "Event",
    "A status reached by a transaction.",
    (
        RecordField("id", always=True),
        RecordField("event", text(enum=STATUSES), always=True),
        RecordField("occurred", moment(), source="at", always=True),
        RecordField("noticed", moment(), source="at", always=True),
        RecordField("source", source=COMPUTED, always=True),
    ),
)

TRANSACTION: Final = Table(
    "Transaction",
    "A transaction: one attempt to pay.",
    (
        RecordField("id", always=True),
        RecordField("order_id", source=COMPUTED, always=True),
        RecordField("merchant_id", source=COMPUTED, always=True),
        RecordField("project_id", source=COMPUTED, always=True),
        RecordField("status", text(enum=STATUSES), always=True),
        RecordField(
            "payment_method",
            reads=Text(required=True, about="The payment method's name, or the merchant's alias for it."),
            always=True,
            rule="TRQ-02",
        ),
        RecordField("payment_method_brand", source="brand", always=True),
        RecordField(
            "payment_method_details",
            fields.Dict(metadata={"description": "Details from the payment method."}),
            FormPart(DetailsForm, about="Details that the payment method requires or accepts."),
            source=COMPUTED,
            always=True,
            rule="TRQ-07",
        ),
        RecordField(
            "payment_url",
            text("The page where the customer pays, without a scheme unless absolute_urls is set."),
            source=COMPUTED,
        ),
        RecordField("product_type", source=COMPUTED, always=True),
        RecordField("channel", source=COMPUTED, always=True),
        RecordField("amount", number("Cents."), source="amount_cents", always=True),
        RecordField("currency", source=COMPUTED, always=True),
        RecordField("description", source=COMPUTED),
        RecordField(
            "balance",
            text(enum=["test", "internal"]),
            source=COMPUTED,
            always=True,
        ),
        RecordField("credit_debit", text(enum=["credit", "debit"]), always=True),
        RecordField(
            "capture_mode",
            reads=Choice(
                ("manual", "delayed"),
                about="manual: capture with a call; delayed: captured after expiration_period.",
            ),
            rule="TRQ-06",
        ),
        RecordField(
            "expiration_period",
            reads=PeriodText(
                about="The time until the attempt expires, and then until its authorization does."
            ),
            always=True,
            rule="TRQ-03",
        ),
        RecordField("is_capturable", fields.Boolean(), always=True),
        RecordField("is_fully_captured", fields.Boolean(), always=True),
        RecordField(
            "transaction_type",
            text("Of a transaction that is completed once it is authorized.", enum=["authorization"]),
            source=COMPUTED,
        ),
        RecordField(
            "reason",
            text("The reason why it ended without a payment."),
            source=COMPUTED,
        ),
        RecordField(
            "customer_message",
            text("The reason, written for the customer."),
            source=COMPUTED,
        ),
        RecordField(
            "events",
            fields.List(fields.Nested(EVENT.shape)),
            source=COMPUTED,
            always=True,
        ),
        RecordField("created", moment(), always=True),
        RecordField("modified", moment(), always=True),
        RecordField("completed", moment()),
        RecordField("msc_amount", number("The service's charge, in cents."), source=COMPUTED),
        RecordField("msc_calculation_type", source=COMPUTED),
        RecordField("msc_currency", source=COMPUTED),
    ),
)

TransactionForm: Final = TRANSACTION.form("TransactionForm", "A transaction: one attempt to pay.", CREATE)


def transaction_record(project: Project, order: Order, attempt: Transaction) -> dict[str, Any]:
    """Serialize a transaction for a response.

    The service charges completed card payments (TX-17), at an assumed rate (A26). A type tells an authorized
    payment from a paid one: both are completed (A70).
    """
    charge_cents, transaction_type = None, None
    if "card_expiry" in attempt.details and attempt.status == TransactionStatus.COMPLETED:
        charge_cents = MSC_FIXED_CENTS + attempt.amount_cents * MSC_RATE_PER_MILLE // 1000
    if attempt.capture_mode is not None and METHODS_BY_NAME[attempt.method].capabilities.page != "invoice":
        transaction_type = "authorization"
    computed: dict[str, Any] = {
        "order_id": order.id,
        "merchant_id": project.merchant_id,
        "project_id": project.project_id,
        "payment_method_details": page_urls.resolve_details(project, order, attempt),
        "payment_url": page_urls.payment_url(project, order, attempt) if attempt.has_page else None,
        "product_type": "ecommerce",
        "channel": "ecom",
        "currency": order.currency,
        "description": order.sent.get("description"),
        "balance": "test" if order.is_test else "internal",
        "transaction_type": transaction_type,
        "reason": reason_of(attempt),
        "customer_message": customer_message_of(order, attempt),
        "events": [EVENT.record(event, {"source": "set_status"}) for event in attempt.events],
        "msc_amount": charge_cents,
        "msc_calculation_type": None if charge_cents is None else "blended",
        "msc_currency": None if charge_cents is None else order.currency,
    }
    return TRANSACTION.record(attempt, computed)


def request_rules() -> Mapping[str, str]:
    """Map the paths of a transaction's fields to the rules broken by wrong values."""
    details = {
        f"transactions.payment_method_details.{name}": field.rule for name, field in details_fields().items()
    }
    return {**TRANSACTION.rules("transactions."), **details}
