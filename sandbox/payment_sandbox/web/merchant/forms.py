"""The forms of captures, voids, refunds and queries."""

from typing import Final

from payment_sandbox.forms import Cents, Choice, Form, FormPart, Items, Text, Whole
from payment_sandbox.orders.amounts import AMOUNT_CENTS_MAX
from payment_sandbox.orders.lines import LINES_MAX
from payment_sandbox.web.answers.order import AMOUNTS, DETAILS

LINES_EXAMPLE: Final = [{"merchant_order_line_id": "line-1", "quantity": 1}]


class LineQuantityForm(Form):
    """A quantity of an order line."""

    merchant_order_line_id = Text(required=True, about="The order line's merchant_order_line_id.")
    quantity = Whole(low=1, high=AMOUNT_CENTS_MAX, required=True, about="The number of items.")


class ByAmountForm(Form):
    """A capture or void by amount."""

    description = Text(about="Stored with the capture or void.")
    amount = Cents(required=True, about="Cents; at most the remaining amount.")


class ByLinesForm(Form):
    """A capture or void by lines."""

    description = Text(about="Stored with the capture or void.")
    order_lines = Items(
        FormPart(LineQuantityForm),
        least=1,
        most=LINES_MAX,
        required=True,
        about="Lines and quantities; at most the remaining quantities.",
    )


class RefundForm(Form):
    """A refund by amount, by lines or both; an empty one refunds the full remaining amount."""

    description = Text(about="Stored with the refund.")
    amount = Cents(
        about="Cents; at most what is captured and not yet refunded. Takes precedence over order_lines."
    )
    order_lines = Items(
        FormPart(LineQuantityForm),
        least=1,
        most=LINES_MAX,
        about="Lines and quantities; required for invoice-later-b.",
    )


BLOCKS: Final = Items(Choice((DETAILS, AMOUNTS)), about="Extra blocks to include.")
OrderQuery: Final = type(
    "OrderQuery",
    (Form,),
    {"__doc__": "Extra blocks to include.", "__module__": __name__, "fields[]": BLOCKS},
)
