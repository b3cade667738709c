"""What merchants may send, field by field."""

from collections.abc import Mapping
from typing import Any

from marshmallow import ValidationError, pre_load, validates_schema

from sandbox.forms import Cents, Choice, Flag, Form, Items, Moment, Part, PeriodText, Text, WebUrl, Whole
from sandbox.forms.fields import Anything, Birthdate, NumberOrText, without_nulls
from sandbox.orders.amounts import AMOUNT_CENTS_MAX, CURRENCY
from sandbox.orders.customers import LOCALES
from sandbox.orders.lines import LINE_TYPES, NEGATIVE_LINE_TYPES

COUNTRY = {"pattern": "[A-Za-z]{2}", "expected": "a two-letter country code"}


class AddressForm(Form):
    """A further address of a customer."""

    address = Text()
    address_type = Text()
    country = Text(**COUNTRY)


class CustomerForm(Form):
    """Who pays."""

    first_name = Text()
    last_name = Text()
    gender = Text()
    birthdate = Birthdate()
    email_address = Text()
    phone_numbers = Items(Text())
    address = Text()
    address_type = Text()
    additional_addresses = Items(Part(AddressForm))
    country = Text(**COUNTRY)
    ip_address = Text()
    locale = Choice(LOCALES)
    postal_code = NumberOrText()
    housenumber = NumberOrText()
    merchant_customer_id = NumberOrText()
    user_agent = Text()
    forwarded_ip = Text()

    @pre_load
    def nulls_are_absent(self, data: Any, **options: Any) -> Any:
        """A null says nothing (SET-15)."""
        return without_nulls(data) if isinstance(data, Mapping) else data


class OrderLineForm(Form):
    """One line of an order."""

    type = Choice(LINE_TYPES, load_default="physical")
    amount = Whole(-AMOUNT_CENTS_MAX, AMOUNT_CENTS_MAX, required=True)
    currency = Choice((CURRENCY,), load_default=CURRENCY)
    merchant_order_line_id = Text()
    name = Text()
    quantity = Whole(low=1, high=AMOUNT_CENTS_MAX, required=True)
    vat_percentage = Whole(low=0, high=10_000)

    @validates_schema(skip_on_field_errors=False)
    def sign_fits_type(self, data: Mapping[str, Any], **options: Any) -> None:
        """Only what lowers the sum may be negative."""
        if data.get("amount", 0) < 0 and data.get("type") not in NEGATIVE_LINE_TYPES:
            types = ", ".join(sorted(NEGATIVE_LINE_TYPES))
            raise ValidationError(f"may be negative for {types} only", "amount")


class DetailsForm(Form):
    """What some methods ask for."""

    issuer_id = Text()
    dynamic_descriptor = Text()
    one_click_type = Choice(("first", "one-click"))
    recurring_type = Choice(("first", "recurring"))
    vault_token = Text()
    cvc = Text(pattern="[0-9]{3,4}", expected="three or four digits")


class TransactionForm(Form):
    """One attempt to pay."""

    payment_method = Text(required=True)
    expiration_period = PeriodText()
    capture_mode = Choice(("manual", "delayed"))
    payment_method_details = Part(DetailsForm)


class OrderForm(Form):
    """A new order."""

    currency = Choice((CURRENCY,), required=True)
    amount = Cents(required=True)
    description = Text()
    merchant_order_id = Text()
    return_url = WebUrl()
    webhook_url = WebUrl()
    expiration_period = PeriodText()
    payment_methods = Items(Text())
    customer = Part(CustomerForm)
    order_lines = Items(Part(OrderLineForm))
    transactions = Items(Part(TransactionForm), most=1)
    client = Anything()
    extra = Anything()


class UpdateForm(Form):
    """What of an order can change."""

    description = Text()
    merchant_order_id = Text()
    return_url = WebUrl()
    webhook_url = WebUrl()
    customer = Part(CustomerForm)
    extra = Anything()
    amount = Cents()
    order_lines = Items(Part(OrderLineForm))


class LineQuantityForm(Form):
    """A quantity of a line."""

    merchant_order_line_id = Text(required=True)
    quantity = Whole(low=1, high=AMOUNT_CENTS_MAX, required=True)


class NothingForm(Form):
    """No keys at all."""


class ByAmountForm(Form):
    """A capture or void by amount."""

    description = Text()
    amount = Cents(required=True)


def _some_lines(**options: Any) -> Items:
    return Items(Part(LineQuantityForm), least=1, **options)


class ByLinesForm(Form):
    """A capture or void by lines."""

    description = Text()
    order_lines = _some_lines(required=True)


class RefundForm(Form):
    """A refund: an amount, lines, or neither for all that is left."""

    description = Text()
    amount = Cents()
    order_lines = _some_lines()


class QrForm(Form):
    """A QR request."""

    amount = Cents()
    amount_changeable = Flag()
    amount_max = Cents()
    amount_min = Cents()
    currency = Choice((CURRENCY,))
    description = Text()
    one_off = Flag()
    expiration = Moment()
    merchant_order_id = Text()
    size = Whole(low=100, high=2000)
    return_url = WebUrl()
    webhook_url = WebUrl()

    @pre_load
    def zero_is_no_amount(self, data: Any, **options: Any) -> Any:
        """An amount of 0 that the payer may change says that there is none yet (A23)."""
        if not isinstance(data, Mapping) or data.get("amount_changeable") is not True:
            return data
        amount = data.get("amount")
        is_zero = isinstance(amount, int) and not isinstance(amount, bool) and amount == 0
        return {key: value for key, value in data.items() if key != "amount"} if is_zero else data
