"""Orders and refunds in requests and responses, with a common shape."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from marshmallow import ValidationError, fields

from payment_sandbox.forms import Cents, Choice, Form, FormPart, Items, Text, Whole, checks
from payment_sandbox.forms.fields import Anything, AnyValue
from payment_sandbox.forms.order_fields import CUSTOMER_RULES, SENT_FIELDS
from payment_sandbox.methods.messages import customer_message_of
from payment_sandbox.orders.amounts import AMOUNT_CENTS_MAX, CURRENCY
from payment_sandbox.orders.lines import (
    ADDITIONAL_KEYS,
    LINE_TYPES,
    LINES_MAX,
    NEGATIVE_LINE_TYPES,
)
from payment_sandbox.orders.order import Order, reduce_customer
from payment_sandbox.orders.refunds import lines_by_status
from payment_sandbox.orders.statuses import OrderStatus
from payment_sandbox.projects.project import Project
from payment_sandbox.web.answers import page_urls
from payment_sandbox.web.answers.tables import (
    COMPUTED,
    CREATE,
    UPDATE,
    RecordField,
    Table,
    moment,
    number,
    text,
)
from payment_sandbox.web.answers.transaction_tables import (
    TRANSACTION,
    TransactionForm,
    request_rules,
    transaction_record,
)

LINE_STATUSES: Final = ("authorized", "captured", "voided")


LINE_ID: Final = "merchant_order_line_id"
LINE: Final = Table(
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
            source="amount_cents",
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
        *(RecordField(name, reads=AnyValue(), source=COMPUTED) for name in ADDITIONAL_KEYS),
    ),
)


@checks(although_invalid=True)
def check_sign(self: Form, data: Mapping[str, Any], sent: Any, **options: object) -> None:
    """Allow negative amounts only for some types (A18)."""
    if data.get("amount", 0) < 0 and data.get("type") not in NEGATIVE_LINE_TYPES:
        types = ", ".join(sorted(NEGATIVE_LINE_TYPES))
        raise ValidationError(f"may be negative for {types} only", "amount")


OrderLineForm: Final = LINE.form("OrderLineForm", "An order line.", CREATE, check_sign=check_sign)


LINE_DETAIL: Final = Table(
    "LineDetail",
    "The quantity of a line in one status; numbers are strings.",
    (
        RecordField("amount", source=COMPUTED, always=True),
        RecordField("currency", always=True),
        RecordField("merchant_order_line_id"),
        RecordField("name"),
        RecordField("quantity", source=COMPUTED, always=True),
        RecordField("type", text(enum=list(LINE_TYPES)), always=True),
        RecordField("vat_percentage", source=COMPUTED),
        RecordField("status", text(enum=list(LINE_STATUSES)), source=COMPUTED, always=True),
    ),
)


def order_line_details(order: Order) -> list[dict[str, Any]]:
    """Return one entry per line and status, without quantities of 0 (LDET-01 to LDET-04)."""
    details = []
    for status, quantities in _quantities_by_status(order):
        for index, quantity in sorted(quantities.items()):
            line = order.order_lines[index]
            numbers = {
                "amount": str(line.amount_cents),
                "quantity": str(quantity),
                "vat_percentage": None if line.vat_percentage is None else str(line.vat_percentage),
            }
            if quantity:
                details.append(LINE_DETAIL.record(line, {**numbers, "status": status}))
    return details


def _quantities_by_status(order: Order) -> Iterator[tuple[str, dict[int, int]]]:
    lines, paid = lines_by_status(order), order.paying_transaction
    if paid is not None and paid.authorization is not None and not paid.authorization.is_over:
        yield "authorized", lines.remaining
    yield "captured", lines.captured
    yield "voided", lines.voided


LINE_DETAILS_NAME: Final = "order_line_details"
AMOUNT_DETAILS_NAME: Final = "amount_details"


AMOUNTS_TABLE: Final = Table(
    "Amounts",
    "The amount by state, in cents: captured + voided + remaining = original.",
    (
        RecordField("original", number(), source="amount_cents", always=True),
        RecordField("captured", number(), source="captured_cents", always=True),
        RecordField("voided", number(), source="voided_cents", always=True),
        RecordField("remaining", number(), source="remaining_cents", always=True),
        RecordField(
            "received", number("Everything received, if that is more than the amount."), source=COMPUTED
        ),
    ),
)


def amount_details(order: Order) -> dict[str, Any]:
    """Return the amount by state, in cents."""
    received_cents = order.received_cents
    surplus = {"received": received_cents} if received_cents > order.amount_cents else {}
    return AMOUNTS_TABLE.record(order, surplus)


ORDER: Final = Table(
    "Order",
    "An order or a refund.",
    (
        RecordField("id", always=True),
        RecordField("merchant_id", source=COMPUTED, always=True),
        RecordField("project_id", source=COMPUTED, always=True),
        RecordField("status", text(enum=[status.value for status in OrderStatus]), always=True),
        RecordField(
            "currency", reads=Choice((CURRENCY,), required=True, about="EUR."), always=True, rule="ORD-03"
        ),
        RecordField(
            "amount",
            number("Cents."),
            Cents(required=True, about="Cents; it can change until the customer has acted."),
            source="amount_cents",
            always=True,
            rule="SET-11",
        ),
        *(
            RecordField(
                each.name, reads=each.reads, source=COMPUTED, is_updatable=each.changes, rule=each.rule
            )
            for each in SENT_FIELDS
        ),
        RecordField(
            "payment_methods",
            reads=Items(Text(), about="The methods that the hosted page may offer."),
            source=COMPUTED,
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
            source=COMPUTED,
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
            source=COMPUTED,
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
            source=COMPUTED,
        ),
        RecordField(
            "order_url",
            text("The hosted payment page, without a scheme unless absolute_urls is set."),
            source=COMPUTED,
        ),
        RecordField("refund_of_order_id", text("On refunds: the id of the refunded order.")),
        RecordField("created", moment(), always=True),
        RecordField("modified", moment(), always=True),
        RecordField("completed", moment()),
        RecordField("last_transaction_added", moment()),
        RecordField(LINE_DETAILS_NAME, fields.List(fields.Nested(LINE_DETAIL.shape)), source=COMPUTED),
        RecordField(AMOUNT_DETAILS_NAME, fields.Nested(AMOUNTS_TABLE.shape), source=COMPUTED),
    ),
)
EXTRA_BLOCKS: Final = {LINE_DETAILS_NAME: order_line_details, AMOUNT_DETAILS_NAME: amount_details}
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
    """Serialize an order or a refund for a response.

    The customer is shown in full or reduced, depending on the settings; a failed order has the reason of its
    newest attempt, and an order of a QR request that request's id among the extra data.
    """
    sent, methods = order.sent, order.payment_methods
    computed: dict[str, Any] = {
        "merchant_id": project.merchant_id,
        "project_id": project.project_id,
        "payment_methods": None if methods is None else list(methods),
        "order_lines": [LINE.record(line, sent=line.additional) for line in order.order_lines] or None,
        "transactions": [transaction_record(project, order, attempt) for attempt in order.transactions],
        "reason": _reason_of(order),
        "order_url": page_urls.order_url(project, order) if order.has_page else None,
    }
    if sent.get("customer") is not None and project.epoch.state.settings.reduced_customer:
        computed["customer"] = reduce_customer(sent["customer"])
    if order.bankqr_id is not None:
        computed["extra"] = {**(sent.get("extra") or {}), "bankqr_id": order.bankqr_id}
    return ORDER.record(order, computed, sent)


def _reason_of(order: Order) -> str | None:
    attempts = order.transactions if order.status == OrderStatus.ERROR else ()
    return customer_message_of(order, attempts[-1]) if attempts and order.reason is None else order.reason
