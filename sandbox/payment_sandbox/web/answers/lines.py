"""Order lines in requests and responses, and their order_line_details."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from marshmallow import ValidationError

from payment_sandbox.forms import Choice, Text, Whole, checks
from payment_sandbox.orders.amounts import AMOUNT_CENTS_MAX, CURRENCY
from payment_sandbox.orders.authorization import Taken
from payment_sandbox.orders.lines import LINE_TYPES, NEGATIVE_LINE_TYPES, OrderLine
from payment_sandbox.orders.order import Order
from payment_sandbox.web.answers.tables import CREATE, Row, Table, text

SENT: Final = (CREATE,)
STATUSES: Final = ("authorized", "captured", "voided")

LINE: Final[Table[OrderLine]] = Table(
    "OrderLine",
    "An order line.",
    (
        Row(
            "type",
            lambda line: line.type,
            reads=Choice(LINE_TYPES, load_default="physical", about="The kind of line."),
            on=SENT,
            always=True,
            rule="LINE-01",
        ),
        Row(
            "amount",
            lambda line: line.amount_cents,
            reads=Whole(
                -AMOUNT_CENTS_MAX,
                AMOUNT_CENTS_MAX,
                required=True,
                about="Cents per item, including VAT; negative only for types that lower the total.",
            ),
            on=SENT,
            always=True,
            rule="LINE-02",
        ),
        Row(
            "currency",
            lambda line: line.currency,
            reads=Choice((CURRENCY,), load_default=CURRENCY, about="EUR."),
            on=SENT,
            always=True,
            rule="LINE-03",
        ),
        Row(
            "merchant_order_line_id",
            lambda line: line.merchant_order_line_id,
            reads=Text(about="The id that captures, voids and refunds use for this line."),
            on=SENT,
            rule="LINE-04",
        ),
        Row(
            "name",
            lambda line: line.name,
            reads=Text(about="Shown to the customer."),
            on=SENT,
            rule="LINE-05",
        ),
        Row(
            "quantity",
            lambda line: line.quantity,
            reads=Whole(low=1, high=AMOUNT_CENTS_MAX, required=True, about="The number of items."),
            on=SENT,
            always=True,
            rule="LINE-06",
        ),
        Row(
            "vat_percentage",
            lambda line: line.vat_percentage,
            reads=Whole(low=0, high=10_000, about="Percent times 100: 2100 means 21%."),
            on=SENT,
            rule="SET-30",
        ),
    ),
)


@checks(although_invalid=True)
def sign_fits_type(self: Any, data: Mapping[str, Any], **options: Any) -> None:
    """Allow negative amounts only for types that lower the total."""
    if data.get("amount", 0) < 0 and data.get("type") not in NEGATIVE_LINE_TYPES:
        types = ", ".join(sorted(NEGATIVE_LINE_TYPES))
        raise ValidationError(f"may be negative for {types} only", "amount")


OrderLineForm: Final = LINE.form("OrderLineForm", "An order line.", CREATE, sign_fits_type=sign_fits_type)


class LineDetail:
    """A quantity of a line in one status."""

    __slots__ = ("line", "quantity", "status")

    def __init__(self, line: OrderLine, quantity: int, status: str) -> None:
        self.line = line
        self.quantity = quantity
        self.status = status


DETAIL: Final[Table[LineDetail]] = Table(
    "LineDetail",
    "The quantity of a line in one status; numbers are strings.",
    (
        Row("amount", lambda detail: str(detail.line.amount_cents), text(), always=True),
        Row("currency", lambda detail: detail.line.currency, text(), always=True),
        Row("merchant_order_line_id", lambda detail: detail.line.merchant_order_line_id, text()),
        Row("name", lambda detail: detail.line.name, text()),
        Row("quantity", lambda detail: str(detail.quantity), text(), always=True),
        Row("type", lambda detail: detail.line.type, text(enum=list(LINE_TYPES)), always=True),
        Row(
            "vat_percentage",
            lambda detail: None if detail.line.vat_percentage is None else str(detail.line.vat_percentage),
            text(),
        ),
        Row("status", lambda detail: detail.status, text(enum=list(STATUSES)), always=True),
    ),
)


def order_line_details(order: Order) -> list[dict[str, Any]]:
    """One entry per line and status; quantities of 0 are left out (LDET-01 to LDET-04)."""
    return [
        DETAIL.record(LineDetail(order.order_lines[index], quantity, status))
        for status, quantities in _quantities_by_status(order)
        for index, quantity in quantities.items()
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
