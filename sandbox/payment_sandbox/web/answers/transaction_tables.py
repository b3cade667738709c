"""Transactions in requests and responses."""

from collections.abc import Mapping
from operator import attrgetter
from typing import Any, Final, NamedTuple

from marshmallow import fields

from payment_sandbox.forms import Choice, Form, FormPart, PeriodText, Text
from payment_sandbox.methods import METHODS_BY_NAME, details_fields
from payment_sandbox.methods.messages import customer_message_of, reason_of
from payment_sandbox.orders.order import Order
from payment_sandbox.orders.statuses import TransactionStatus
from payment_sandbox.orders.transaction import Transaction, TransactionEvent
from payment_sandbox.projects.project import Project
from payment_sandbox.web.answers import page_urls
from payment_sandbox.web.answers.tables import CREATE, RecordField, Table, moment, number, text

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


class ShownTransaction(NamedTuple):
    """A transaction with its order and project."""

    project: Project
    order: Order
    attempt: Transaction

    @property
    def charge_cents(self) -> int | None:
        """The service's charge for a completed card payment (TX-17); the rate is an assumption (A26)."""
        if "card_expiry" not in self.attempt.details or self.attempt.status != TransactionStatus.COMPLETED:
            return None
        return MSC_FIXED_CENTS + self.attempt.amount_cents * MSC_RATE_PER_MILLE // 1000

    @property
    def transaction_type(self) -> str | None:
        """The type that tells an authorized payment from a paid one: both are completed (A70)."""
        is_invoice = METHODS_BY_NAME[self.attempt.method].capabilities.page == "invoice"
        return "authorization" if self.attempt.capture_mode is not None and not is_invoice else None


EVENT: Final[Table[TransactionEvent]] = Table(
    "Event",
    "A status reached by a transaction.",
    (
        RecordField("id", always=True),
        RecordField("event", text(enum=STATUSES), always=True),
        RecordField("occurred", moment(), getter=attrgetter("at"), always=True),
        RecordField("noticed", moment(), getter=attrgetter("at"), always=True),
        RecordField("source", getter=lambda event: "set_status", always=True),
    ),
)

TRANSACTION: Final[Table[ShownTransaction]] = Table(
    "Transaction",
    "A transaction: one attempt to pay.",
    (
        RecordField("id", always=True),
        RecordField("order_id", getter=attrgetter("order.id"), always=True),
        RecordField("merchant_id", getter=attrgetter("project.merchant_id"), always=True),
        RecordField("project_id", getter=attrgetter("project.project_id"), always=True),
        RecordField("status", text(enum=STATUSES), always=True),
        RecordField(
            "payment_method",
            reads=Text(required=True, about="The payment method's name, or the merchant's alias for it."),
            always=True,
            rule="TRQ-02",
        ),
        RecordField("payment_method_brand", getter=attrgetter("attempt.brand"), always=True),
        RecordField(
            "payment_method_details",
            fields.Dict(metadata={"description": "Details from the payment method."}),
            FormPart(DetailsForm, about="Details that the payment method requires or accepts."),
            getter=lambda shown: page_urls.resolve_details(*shown),
            always=True,
            rule="TRQ-07",
        ),
        RecordField(
            "payment_url",
            text("The page where the customer pays, without a scheme unless absolute_urls is set."),
            getter=lambda shown: page_urls.payment_url(*shown) if shown.attempt.has_page else None,
        ),
        RecordField("product_type", getter=lambda shown: "ecommerce", always=True),
        RecordField("channel", getter=lambda shown: "ecom", always=True),
        RecordField("amount", number("Cents."), getter=attrgetter("attempt.amount_cents"), always=True),
        RecordField("currency", getter=attrgetter("order.currency"), always=True),
        RecordField("description", getter=attrgetter("order.description")),
        RecordField(
            "balance",
            text(enum=["test", "internal"]),
            getter=lambda shown: "test" if shown.order.is_test else "internal",
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
            getter=attrgetter("transaction_type"),
        ),
        RecordField(
            "reason",
            text("The reason why it ended without a payment."),
            getter=lambda shown: reason_of(shown.attempt),
        ),
        RecordField(
            "customer_message",
            text("The reason, written for the customer."),
            getter=lambda shown: customer_message_of(shown.order, shown.attempt),
        ),
        RecordField(
            "events",
            fields.List(fields.Nested(EVENT.shape)),
            getter=lambda shown: [EVENT.record(event) for event in shown.attempt.events],
            always=True,
        ),
        RecordField("created", moment(), always=True),
        RecordField("modified", moment(), always=True),
        RecordField("completed", moment()),
        RecordField(
            "msc_amount",
            number("The service's charge, in cents."),
            getter=attrgetter("charge_cents"),
        ),
        RecordField(
            "msc_calculation_type",
            getter=lambda shown: None if shown.charge_cents is None else "blended",
        ),
        RecordField(
            "msc_currency",
            getter=lambda shown: None if shown.charge_cents is None else shown.order.currency,
        ),
    ),
    prefix="attempt.",
)

TransactionForm: Final = TRANSACTION.form("TransactionForm", "A transaction: one attempt to pay.", CREATE)


def transaction_record(project: Project, order: Order, attempt: Transaction) -> dict[str, Any]:
    """Serialize a transaction for a response."""
    return TRANSACTION.record(ShownTransaction(project, order, attempt))


def request_rules() -> Mapping[str, str]:
    """Map the paths of a transaction's fields to the rules broken by wrong values."""
    details = {
        f"transactions.payment_method_details.{name}": field.rule for name, field in details_fields().items()
    }
    return {**TRANSACTION.rules("transactions."), **details}
