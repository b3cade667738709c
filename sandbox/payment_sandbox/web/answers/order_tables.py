"""Orders and refunds in requests and responses, with a common shape."""

from collections.abc import Callable, Iterator, Mapping
from operator import attrgetter
from typing import Any, Final, NamedTuple

from marshmallow import ValidationError, fields

from payment_sandbox.forms import Cents, Choice, Form, FormPart, Items, Text, Whole, checks
from payment_sandbox.forms.fields import Anything, AnyValue
from payment_sandbox.forms.order_fields import CUSTOMER_RULES, SENT_FIELDS, SentField
from payment_sandbox.methods.messages import customer_message_of
from payment_sandbox.orders.amounts import AMOUNT_CENTS_MAX, CURRENCY
from payment_sandbox.orders.lines import (
    ADDITIONAL_KEYS,
    LINE_TYPES,
    LINES_MAX,
    NEGATIVE_LINE_TYPES,
    OrderLine,
)
from payment_sandbox.orders.order import Order, reduce_customer
from payment_sandbox.orders.refunds import lines_by_status
from payment_sandbox.orders.statuses import OrderStatus
from payment_sandbox.projects.project import Project
from payment_sandbox.web.answers import page_urls
from payment_sandbox.web.answers.tables import CREATE, UPDATE, RecordField, Table, echo, moment, number, text
from payment_sandbox.web.answers.transaction_tables import (
    TRANSACTION,
    TransactionForm,
    request_rules,
    transaction_record,
)

LINE_STATUSES: Final = ("authorized", "captured", "voided")


def _echo_key(name: str) -> RecordField[OrderLine]:
    """Define a key of a line that is stored and echoed unchanged."""
    return RecordField(name, reads=AnyValue(), getter=echo("additional", name))


LINE_ID: Final = "merchant_order_line_id"
LINE: Final[Table[OrderLine]] = Table(
    "OrderLine",
    "An order line.",
    (
        RecordField(
            "type",
            reads=Choice(LINE_TYPES, load_default="physical", about="The kind of line."),
            always=True,
            rule="LINE-01",
        ),
        RecordField(
            "amount",
            reads=Whole(
                -AMOUNT_CENTS_MAX,
                AMOUNT_CENTS_MAX,
                required=True,
                about="Cents per item, including VAT; negative for some types only.",
            ),
            getter=attrgetter("amount_cents"),
            always=True,
            rule="LINE-02",
        ),
        RecordField(
            "currency",
            reads=Choice((CURRENCY,), load_default=CURRENCY, about="EUR."),
            always=True,
            rule="LINE-03",
        ),
        RecordField(
            "merchant_order_line_id",
            reads=Text(
                about="The id that captures, voids and refunds use for this line; unique in its order."
            ),
            rule="LINE-04",
        ),
        RecordField("name", reads=Text(about="Shown to the customer."), rule="LINE-05"),
        RecordField(
            "quantity",
            reads=Whole(low=1, high=AMOUNT_CENTS_MAX, required=True, about="The number of items."),
            always=True,
            rule="LINE-06",
        ),
        RecordField(
            "vat_percentage",
            reads=Whole(low=0, high=10_000, about="Percent times 100: 2100 means 21%."),
            rule="SET-30",
        ),
        *map(_echo_key, ADDITIONAL_KEYS),
    ),
)


@checks(although_invalid=True)
def check_sign(self: Form, data: Mapping[str, Any], sent: Any, **options: object) -> None:
    """Allow negative amounts only for some types (A18)."""
    if data.get("amount", 0) < 0 and data.get("type") not in NEGATIVE_LINE_TYPES:
        types = ", ".join(sorted(NEGATIVE_LINE_TYPES))
        raise ValidationError(f"may be negative for {types} only", "amount")


OrderLineForm: Final = LINE.form("OrderLineForm", "An order line.", CREATE, check_sign=check_sign)


class LineDetail(NamedTuple):
    """A quantity of a line in one status."""

    line: OrderLine
    quantity: int
    status: str


LINE_DETAIL: Final[Table[LineDetail]] = Table(
    "LineDetail",
    "The quantity of a line in one status; numbers are strings.",
    (
        RecordField("amount", getter=lambda detail: str(detail.line.amount_cents), always=True),
        RecordField("currency", always=True),
        RecordField("merchant_order_line_id"),
        RecordField("name"),
        RecordField("quantity", getter=lambda detail: str(detail.quantity), always=True),
        RecordField("type", text(enum=list(LINE_TYPES)), always=True),
        RecordField(
            "vat_percentage",
            getter=lambda detail: (
                None if detail.line.vat_percentage is None else str(detail.line.vat_percentage)
            ),
        ),
        RecordField("status", text(enum=list(LINE_STATUSES)), getter=attrgetter("status"), always=True),
    ),
    prefix="line.",
)


def order_line_details(order: Order) -> list[dict[str, Any]]:
    """Return one entry per line and status, without quantities of 0 (LDET-01 to LDET-04)."""
    return [
        LINE_DETAIL.record(LineDetail(order.order_lines[index], quantity, status))
        for status, quantities in _quantities_by_status(order)
        for index, quantity in sorted(quantities.items())
        if quantity
    ]


def _quantities_by_status(order: Order) -> Iterator[tuple[str, dict[int, int]]]:
    lines, paid = lines_by_status(order), order.paying_transaction
    if paid is not None and paid.authorization is not None and not paid.authorization.is_over:
        yield "authorized", lines.remaining
    yield "captured", lines.captured
    yield "voided", lines.voided


LINE_DETAILS_NAME: Final = "order_line_details"
AMOUNT_DETAILS_NAME: Final = "amount_details"


class ShownOrder(NamedTuple):
    """An order and its project."""

    project: Project
    order: Order

    @property
    def customer(self) -> dict[str, Any] | None:
        """The customer, in full or reduced, depending on the settings."""
        customer: dict[str, Any] | None = self.order.sent.get("customer")
        if customer is not None and self.project.settings.reduced_customer:
            return reduce_customer(customer)
        return customer

    @property
    def reason(self) -> str | None:
        """The reason of a failed order, which is that of its newest attempt."""
        attempt = self.order.last_transaction
        if self.order.reason is not None or attempt is None or self.order.status != OrderStatus.ERROR:
            return self.order.reason
        return customer_message_of(self.order, attempt)

    @property
    def extra(self) -> dict[str, Any] | None:
        """The merchant's extra data, plus the QR request's id on QR orders."""
        extra: dict[str, Any] | None = self.order.sent.get("extra")
        if self.order.bankqr_id is None:
            return extra
        return {**(extra or {}), "bankqr_id": self.order.bankqr_id}


SPECIAL_GETTERS: Final[Mapping[str, Callable[[ShownOrder], Any]]] = {
    "customer": attrgetter("customer"),
    "extra": attrgetter("extra"),
}
"""The getters of fields that are not echoed."""


def _echo_field(field: SentField) -> RecordField[ShownOrder]:
    """Define a field that is stored and echoed unchanged."""

    getter = SPECIAL_GETTERS.get(field.name) or echo("order.sent", field.name)
    return RecordField(
        field.name, reads=field.reads, getter=getter, is_updatable=field.changes, rule=field.rule
    )


AMOUNTS_TABLE: Final[Table[Order]] = Table(
    "Amounts",
    "The amount by state, in cents: captured + voided + remaining = original.",
    (
        RecordField("original", number(), getter=attrgetter("amount_cents"), always=True),
        RecordField("captured", number(), getter=attrgetter("captured_cents"), always=True),
        RecordField("voided", number(), getter=attrgetter("voided_cents"), always=True),
        RecordField("remaining", number(), getter=attrgetter("remaining_cents"), always=True),
        RecordField(
            "received",
            number("Everything received, if that is more than the amount."),
            getter=lambda order: order.received_cents if order.received_cents > order.amount_cents else None,
        ),
    ),
)

ORDER: Final[Table[ShownOrder]] = Table(
    "Order",
    "An order or a refund.",
    (
        RecordField("id", always=True),
        RecordField("merchant_id", getter=attrgetter("project.merchant_id"), always=True),
        RecordField("project_id", getter=attrgetter("project.project_id"), always=True),
        RecordField("status", text(enum=[status.value for status in OrderStatus]), always=True),
        RecordField(
            "currency", reads=Choice((CURRENCY,), required=True, about="EUR."), always=True, rule="ORD-03"
        ),
        RecordField(
            "amount",
            number("Cents."),
            Cents(required=True, about="Cents; it can change until the customer has acted."),
            getter=attrgetter("order.amount_cents"),
            always=True,
            rule="SET-11",
        ),
        *map(_echo_field, SENT_FIELDS),
        RecordField(
            "payment_methods",
            reads=Items(Text(), about="The methods that the hosted page may offer."),
            getter=lambda shown: (
                None if shown.order.payment_methods is None else list(shown.order.payment_methods)
            ),
            rule="ORD-13",
        ),
        RecordField(
            "order_lines",
            fields.List(fields.Nested(LINE.shape)),
            Items(
                FormPart(OrderLineForm),
                most=LINES_MAX,
                about="The items bought; they can change until the customer has acted.",
            ),
            getter=lambda shown: list(map(LINE.record, shown.order.order_lines)) or None,
            is_updatable=True,
            rule="ORD-16",
        ),
        RecordField(
            "transactions",
            fields.List(fields.Nested(TRANSACTION.shape)),
            Items(
                FormPart(TransactionForm),
                most=1,
                about="Omit it for the hosted page; send one transaction to choose the method.",
            ),
            getter=lambda shown: [
                transaction_record(*shown, attempt) for attempt in shown.order.transactions
            ],
            always=True,
            rule="SET-17",
        ),
        RecordField(
            "client", reads=Anything(about="Free-form data; responses repeat it."), always=True, rule="ORD-18"
        ),
        RecordField("flags", fields.List(text()), always=True),
        RecordField(
            "reason",
            text("When the status is error: the reason, written for the customer."),
            getter=attrgetter("reason"),
        ),
        RecordField(
            "order_url",
            text("The hosted payment page, without a scheme unless absolute_urls is set."),
            getter=lambda shown: page_urls.order_url(*shown) if shown.order.has_page else None,
        ),
        RecordField("refund_of_order_id", text("On refunds: the id of the refunded order.")),
        RecordField("created", moment(), always=True),
        RecordField("modified", moment(), always=True),
        RecordField("completed", moment()),
        RecordField("last_transaction_added", moment()),
        RecordField(
            LINE_DETAILS_NAME, fields.List(fields.Nested(LINE_DETAIL.shape)), getter=lambda shown: None
        ),
        RecordField(AMOUNT_DETAILS_NAME, fields.Nested(AMOUNTS_TABLE.shape), getter=lambda shown: None),
    ),
    prefix="order.",
)
EXTRA_BLOCKS: Final = {LINE_DETAILS_NAME: order_line_details, AMOUNT_DETAILS_NAME: AMOUNTS_TABLE.record}
"""The serializers of the optional blocks, which ``fields[]`` requests."""


@checks(although_invalid=True)
def check_line_ids(self: Form, data: Mapping[str, Any], sent: Any, **options: object) -> None:
    """Refuse lines with the same id; the path of each names another (A19)."""
    first: dict[str, int] = {}
    problems: dict[int, dict[str, list[str]]] = {}
    for index, line in enumerate(data.get("order_lines", ())):
        other = first.setdefault(line.get(LINE_ID, index), index)
        for path, same in ((index, other), (other, index)) if other != index else ():
            message = f"must be unique in the order, as order_lines[{same}].{LINE_ID} has the same value"
            problems[path] = {LINE_ID: [message]}
    if problems:
        raise ValidationError({"order_lines": problems})


OrderForm: Final = ORDER.form("OrderForm", "A new order.", CREATE, check_line_ids=check_line_ids)
UpdateForm: Final = ORDER.form(
    "UpdateForm",
    "The fields of an order that can change.",
    UPDATE,
    check_line_ids=check_line_ids,
    amount=Cents(about="Cents; it can change until the customer has acted."),
)
READ_ONLY_FIELDS: Final = ORDER.read_only_fields(UPDATE) - {"amount"}
COMPARED_FIELDS: Final = READ_ONLY_FIELDS - EXTRA_BLOCKS.keys()
CUSTOMER_FIELD_RULES: Final = {f"customer.{name}": rule for name, rule in CUSTOMER_RULES.items()}
FIELD_RULES: Final = {
    **ORDER.rules(),
    **CUSTOMER_FIELD_RULES,
    **LINE.rules("order_lines."),
    **request_rules(),
}


def order_record(project: Project, order: Order) -> dict[str, Any]:
    """Serialize an order or a refund for a response."""
    return ORDER.record(ShownOrder(project, order))
