"""What merchants may send besides orders: captures, voids, refunds and queries."""

from typing import Final

from payment_sandbox.forms import Cents, Choice, Form, Items, Part, Text, Whole
from payment_sandbox.orders.amounts import AMOUNT_CENTS_MAX
from payment_sandbox.web.answers.order import AMOUNTS, DETAILS

LINES_EXAMPLE: Final = [{"merchant_order_line_id": "line-1", "quantity": 1}]


class LineQuantityForm(Form):
    """A quantity of a line."""

    merchant_order_line_id = Text(required=True, about="A line of the order.")
    quantity = Whole(low=1, high=AMOUNT_CENTS_MAX, required=True, about="How many of it.")


class NothingForm(Form):
    """No keys at all."""


class ByAmountForm(Form):
    """A capture or void by amount."""

    description = Text(about="Stored with it.")
    amount = Cents(required=True, about="Cents, at most what is left.")


class ByLinesForm(Form):
    """A capture or void by lines."""

    description = Text(about="Stored with it.")
    order_lines = Items(
        Part(LineQuantityForm),
        least=1,
        required=True,
        about="Lines and quantities, at most what is left.",
    )


class RefundForm(Form):
    """A refund: an amount, lines, both, or neither for all that is left."""

    description = Text(about="Stored with it.")
    amount = Cents(about="Cents, at most what was captured and not refunded; it decides over order_lines.")
    order_lines = Items(
        Part(LineQuantityForm), least=1, about="Lines and quantities; required for invoice-later-b."
    )


BLOCKS: Final = Items(Choice((DETAILS, AMOUNTS)), about="Which extra blocks to add.")
OrderQuery: Final = type(
    "OrderQuery",
    (Form,),
    {"__doc__": "Which extra blocks to add.", "__module__": __name__, "fields[]": BLOCKS},
)
