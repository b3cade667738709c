"""The answers of the merchant API as they are documented; tests hold every answer against these."""

from typing import Any

from marshmallow import Schema, fields

from payment_sandbox.orders.lines import LINE_TYPES
from payment_sandbox.orders.statuses import OrderStatus, TransactionStatus
from payment_sandbox.web.merchant.forms import CustomerForm

TIME = {"format": "date-time"}


def _text(description: str = "", **metadata: Any) -> fields.String:
    shown = {"description": description, **metadata} if description else metadata
    return fields.String(metadata=shown)


def _always(field: fields.Field[Any]) -> Any:
    field.required = True
    return field


class EventShape(Schema):
    """A status that a transaction reached."""

    id = _always(_text())
    event = _always(_text(enum=[status.value for status in TransactionStatus]))
    occurred = _always(_text(**TIME))
    noticed = _always(_text(**TIME))
    source = _always(_text())


class OrderLineShape(Schema):
    """A line of an order."""

    type = _always(_text(enum=list(LINE_TYPES)))
    amount = _always(fields.Integer())
    currency = _always(_text())
    merchant_order_line_id = _text()
    name = _text()
    quantity = _always(fields.Integer())
    vat_percentage = fields.Integer()


class TransactionShape(Schema):
    """One attempt to pay."""

    id = _always(_text())
    order_id = _always(_text())
    merchant_id = _always(_text())
    project_id = _always(_text())
    status = _always(_text(enum=[status.value for status in TransactionStatus]))
    payment_method = _always(_text())
    payment_method_brand = _always(_text())
    payment_method_details = _always(fields.Dict())
    payment_url = _text("Where the customer pays, without a scheme unless absolute_urls is set")
    product_type = _always(_text())
    channel = _always(_text())
    amount = _always(fields.Integer())
    currency = _always(_text())
    description = _text()
    balance = _always(_text(enum=["test", "internal"]))
    credit_debit = _always(_text(enum=["credit", "debit"]))
    capture_mode = _text(enum=["manual", "delayed"])
    expiration_period = _always(_text(format="duration"))
    is_capturable = _always(fields.Boolean())
    is_fully_captured = _always(fields.Boolean())
    reason = _text()
    customer_message = _text()
    events = _always(fields.List(fields.Nested(EventShape)))
    created = _always(_text(**TIME))
    modified = _always(_text(**TIME))
    completed = _text(**TIME)
    msc_amount = fields.Integer()
    msc_calculation_type = _text()
    msc_currency = _text()


class LineDetailShape(Schema):
    """Quantities of a line in one status; numbers are texts."""

    amount = _always(_text())
    currency = _always(_text())
    merchant_order_line_id = _text()
    name = _text()
    quantity = _always(_text())
    type = _always(_text(enum=list(LINE_TYPES)))
    vat_percentage = _text()
    status = _always(_text(enum=["authorized", "captured", "voided"]))


class AmountsShape(Schema):
    """What became of the amount, in cents."""

    original = _always(fields.Integer())
    captured = _always(fields.Integer())
    voided = _always(fields.Integer())
    remaining = _always(fields.Integer())


class OrderShape(Schema):
    """An order or a refund."""

    id = _always(_text())
    merchant_id = _always(_text())
    project_id = _always(_text())
    status = _always(_text(enum=[status.value for status in OrderStatus]))
    currency = _always(_text())
    amount = _always(fields.Integer())
    description = _text()
    merchant_order_id = _text()
    return_url = _text(format="uri")
    webhook_url = _text(format="uri")
    expiration_period = _text(format="duration")
    payment_methods = fields.List(_text())
    customer = fields.Nested(CustomerForm)
    order_lines = fields.List(fields.Nested(OrderLineShape))
    transactions = _always(fields.List(fields.Nested(TransactionShape)))
    client = _always(fields.Dict())
    extra = fields.Dict()
    flags = _always(fields.List(_text()))
    reason = _text("For the customer, when the status is error")
    order_url = _text("The hosted payment page, without a scheme unless absolute_urls is set")
    refund_of_order_id = _text("On refunds: the order that is refunded")
    created = _always(_text(**TIME))
    modified = _always(_text(**TIME))
    completed = _text(**TIME)
    last_transaction_added = _text(**TIME)
    order_line_details = fields.List(fields.Nested(LineDetailShape))
    amount_details = fields.Nested(AmountsShape)


class IssuerShape(Schema):
    """A bank."""

    id = _always(_text("The bank's BIC"))
    list_type = _always(_text())
    name = _always(_text())


class CurrenciesShape(Schema):
    """The enabled methods and their currencies."""

    payment_methods = _always(fields.Dict())


class QrShape(Schema):
    """A QR request."""

    id = _always(_text())
    merchant_id = _always(_text())
    project_id = _always(_text())
    merchant_sub_id = _always(fields.Integer())
    beneficiary = _always(_text())
    amount = _text("Euros with two decimals")
    amount_changeable = _always(fields.Boolean())
    amount_min = _text()
    amount_max = _text()
    currency = _always(_text())
    description = _text()
    one_off = _always(fields.Boolean())
    expiration = _always(_text("YYYY-MM-DD HH:MM, UTC"))
    merchant_order_id = _text()
    size = _always(fields.Integer())
    return_url = _text(format="uri")
    webhook_url = _text(format="uri")
    qr_url = _always(_text("The image", format="uri"))


class ViolationShape(Schema):
    """One thing wrong with a request."""

    path = _always(_text())
    message = _always(_text())
    allowed = fields.List(_text())
    nearest = _text("The known word that was perhaps meant")
    file = _text()
    line = fields.Integer()
    column = fields.Integer()


class ErrorShape(Schema):
    """What is wrong."""

    status = _always(fields.Integer())
    type = _always(_text())
    value = _always(_text())
    violations = _always(fields.List(fields.Nested(ViolationShape)))
    allowed = fields.List(_text())
    now = fields.Dict(metadata={"description": "What is true instead of what was waited for"})


class ErrorAnswerShape(Schema):
    """Every 4xx and 5xx."""

    error = _always(fields.Nested(ErrorShape))
