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
        RecordField("id", always=True, rule="EVT-02"),
        RecordField("event", text(enum=STATUSES), always=True, rule="EVT-01"),
        RecordField("occurred", moment(), getter=attrgetter("at"), always=True, rule="EVT-03"),
        RecordField("noticed", moment(), getter=attrgetter("at"), always=True, rule="EVT-03"),
        RecordField("source", getter=lambda event: "set_status", always=True, rule="EVT-04"),
    ),
)

TRANSACTION: Final[Table[ShownTransaction]] = Table(
    "Transaction",
    "A transaction: one attempt to pay.",
    (
        RecordField("id", always=True, rule="TX-01"),
        RecordField("order_id", getter=attrgetter("order.id"), always=True, rule="TX-01"),
        RecordField("merchant_id", getter=attrgetter("project.merchant_id"), always=True, rule="TX-01"),
        RecordField("project_id", getter=attrgetter("project.project_id"), always=True, rule="TX-01"),
        RecordField("status", text(enum=STATUSES), always=True, rule="TX-15"),
        RecordField(
            "payment_method",
            reads=Text(required=True, about="The payment method's name, or the merchant's alias for it."),
            always=True,
            rule="TRQ-02",
        ),
        RecordField("payment_method_brand", getter=attrgetter("attempt.brand"), always=True, rule="TX-10"),
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
            rule="TX-12",
        ),
        RecordField("product_type", getter=lambda shown: "ecommerce", always=True, rule="TX-14"),
        RecordField("channel", getter=lambda shown: "ecom", always=True, rule="SET-29"),
        RecordField(
            "amount", number("Cents."), getter=attrgetter("attempt.amount_cents"), always=True, rule="TX-02"
        ),
        RecordField("currency", getter=attrgetter("order.currency"), always=True, rule="TX-02"),
        RecordField("description", getter=attrgetter("order.description"), rule="TX-03"),
        RecordField(
            "balance",
            text(enum=["test", "internal"]),
            getter=lambda shown: "test" if shown.order.is_test else "internal",
            always=True,
            rule="TX-04",
        ),
        RecordField("credit_debit", text(enum=["credit", "debit"]), always=True, rule="TX-05"),
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
        RecordField("is_capturable", fields.Boolean(), always=True, rule="SET-27"),
        RecordField("is_fully_captured", fields.Boolean(), always=True, rule="SET-27"),
        RecordField(
            "transaction_type",
            text("Of a transaction that is completed once it is authorized.", enum=["authorization"]),
            getter=attrgetter("transaction_type"),
        ),
        RecordField(
            "reason",
            text("The reason why it ended without a payment."),
            getter=lambda shown: reason_of(shown.attempt),
            rule="SET-28",
        ),
        RecordField(
            "customer_message",
            text("The reason, written for the customer."),
            getter=lambda shown: customer_message_of(shown.order, shown.attempt),
            rule="SET-28",
        ),
        RecordField(
            "events",
            fields.List(fields.Nested(EVENT.shape)),
            getter=lambda shown: [EVENT.record(event) for event in shown.attempt.events],
            always=True,
            rule="TX-16",
        ),
        RecordField("created", moment(), always=True, rule="TX-06"),
        RecordField("modified", moment(), always=True, rule="TX-06"),
        RecordField("completed", moment(), rule="TX-07"),
        RecordField(
            "msc_amount",
            number("The service's charge, in cents."),
            getter=attrgetter("charge_cents"),
            rule="TX-17",
        ),
        RecordField(
            "msc_calculation_type",
            getter=lambda shown: None if shown.charge_cents is None else "blended",
            rule="TX-17",
        ),
        RecordField(
            "msc_currency",
            getter=lambda shown: None if shown.charge_cents is None else shown.order.currency,
            rule="TX-17",
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
