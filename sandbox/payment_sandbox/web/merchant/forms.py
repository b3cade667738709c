"""What merchants may send, field by field."""

from collections.abc import Mapping
from typing import Any

from marshmallow import ValidationError, pre_load, validates_schema

from payment_sandbox.forms import (
    Cents,
    Choice,
    Flag,
    Form,
    Items,
    Moment,
    Part,
    PeriodText,
    Text,
    WebUrl,
    Whole,
)
from payment_sandbox.forms.fields import Anything, Birthdate, NumberOrText, without_nulls
from payment_sandbox.orders.amounts import AMOUNT_CENTS_MAX, CURRENCY
from payment_sandbox.orders.customers import LOCALES
from payment_sandbox.orders.lines import LINE_TYPES, NEGATIVE_LINE_TYPES

COUNTRY = {"pattern": "[A-Za-z]{2}", "expected": "a two-letter country code"}


class AddressForm(Form):
    """A further address of a customer."""

    address = Text(about="Lines separated by newlines.")
    address_type = Text(about="Such as customer or billing.")
    country = Text(**COUNTRY, about="Two letters.")


class CustomerForm(Form):
    """Who pays."""

    first_name = Text(about="Given name.")
    last_name = Text(about="Family name.")
    gender = Text(about="Such as male or female.")
    birthdate = Birthdate(about="YYYY-MM-DD.")
    email_address = Text(about="The built-in scenario looks at it: see the test values.")
    phone_numbers = Items(Text(), about="Any number of them.")
    address = Text(about="Lines separated by newlines.")
    address_type = Text(about="Such as customer or billing.")
    additional_addresses = Items(Part(AddressForm), about="Further addresses.")
    country = Text(**COUNTRY, about="Two letters.")
    ip_address = Text(about="Where the customer comes from.")
    locale = Choice(LOCALES, about="The language of the payment page.")
    postal_code = NumberOrText(about="Accepted and echoed.")
    housenumber = NumberOrText(about="Accepted and echoed.")
    merchant_customer_id = NumberOrText(about="The merchant's own number for him.")
    user_agent = Text(about="His browser.")
    forwarded_ip = Text(about="His address behind a proxy.")

    @pre_load
    def nulls_are_absent(self, data: Any, **options: Any) -> Any:
        """A null says nothing (SET-15)."""
        return without_nulls(data) if isinstance(data, Mapping) else data


class OrderLineForm(Form):
    """One line of an order."""

    type = Choice(LINE_TYPES, load_default="physical", about="What kind of line it is.")
    amount = Whole(
        -AMOUNT_CENTS_MAX,
        AMOUNT_CENTS_MAX,
        required=True,
        about="Cents per item, VAT included; below 0 for what lowers the sum.",
    )
    currency = Choice((CURRENCY,), load_default=CURRENCY, about="EUR.")
    merchant_order_line_id = Text(about="How captures, voids and refunds name the line.")
    name = Text(about="What the customer reads.")
    quantity = Whole(low=1, high=AMOUNT_CENTS_MAX, required=True, about="How many.")
    vat_percentage = Whole(low=0, high=10_000, about="Percent times 100: 2100 is 21 %.")

    @validates_schema(skip_on_field_errors=False)
    def sign_fits_type(self, data: Mapping[str, Any], **options: Any) -> None:
        """Only what lowers the sum may be negative."""
        if data.get("amount", 0) < 0 and data.get("type") not in NEGATIVE_LINE_TYPES:
            types = ", ".join(sorted(NEGATIVE_LINE_TYPES))
            raise ValidationError(f"may be negative for {types} only", "amount")


class DetailsForm(Form):
    """What some methods ask for."""

    issuer_id = Text(about="bank-redirect-nl: the bank, from the issuers list.")
    dynamic_descriptor = Text(about="credit-card: what the statement shows, where the merchant may.")
    one_click_type = Choice(
        ("first", "one-click"), about="credit-card: first keeps the card, one-click uses it."
    )
    recurring_type = Choice(
        ("first", "recurring"), about="credit-card: first begins a series, recurring goes on with it."
    )
    vault_token = Text(about="credit-card: the card kept by a first payment.")
    cvc = Text(
        pattern="[0-9]{3,4}", expected="three or four digits", about="credit-card: required for one-click."
    )


class TransactionForm(Form):
    """One attempt to pay."""

    payment_method = Text(required=True, about="A method's identifier, or the merchant's alias for it.")
    expiration_period = PeriodText(about="How long the attempt, and then its authorization, lasts.")
    capture_mode = Choice(
        ("manual", "delayed"), about="Authorize now; capture by a call, or by itself after expiration_period."
    )
    payment_method_details = Part(DetailsForm, about="What the method asks for.")


class OrderForm(Form):
    """A new order."""

    currency = Choice((CURRENCY,), required=True, about="EUR.")
    amount = Cents(required=True, about="Cents.")
    description = Text(about="Stored with the order.")
    merchant_order_id = Text(about="The merchant's own number for it.")
    return_url = WebUrl(about="Where the customer goes after the payment.")
    webhook_url = WebUrl(about="Where this order's webhooks go.")
    expiration_period = PeriodText(about="How long the hosted page is open.")
    payment_methods = Items(Text(), about="The methods that the hosted page may offer.")
    customer = Part(CustomerForm, about="Who pays.")
    order_lines = Items(Part(OrderLineForm), about="What is bought.")
    transactions = Items(
        Part(TransactionForm), most=1, about="None for the hosted page; one to choose the method."
    )
    client = Anything(about="Free-form, echoed.")
    extra = Anything(about="Free-form, echoed.")


class UpdateForm(Form):
    """What of an order can change."""

    description = Text(about="Stored with the order.")
    merchant_order_id = Text(about="The merchant's own number for it.")
    return_url = WebUrl(about="Where the customer goes after the payment.")
    webhook_url = WebUrl(about="Where this order's webhooks go.")
    customer = Part(CustomerForm, about="Who pays.")
    extra = Anything(about="Free-form, echoed.")
    amount = Cents(about="Cents; until the customer has acted.")
    order_lines = Items(Part(OrderLineForm), about="What is bought; until the customer has acted.")


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


def _some_lines(**options: Any) -> Items:
    return Items(Part(LineQuantityForm), least=1, **options)


class ByLinesForm(Form):
    """A capture or void by lines."""

    description = Text(about="Stored with it.")
    order_lines = _some_lines(required=True, about="Lines and quantities, at most what is left.")


class RefundForm(Form):
    """A refund: an amount, lines, or neither for all that is left."""

    description = Text(about="Stored with it.")
    amount = Cents(about="Cents, at most what was captured and not refunded.")
    order_lines = _some_lines(about="Lines and quantities; invoice-later-b asks for them.")


class QrForm(Form):
    """A QR request."""

    amount = Cents(about="Cents; required when the payer may not change it.")
    amount_changeable = Flag(about="Whether the payer may change the amount; false by default.")
    amount_max = Cents(about="The most he may pay, in cents.")
    amount_min = Cents(about="The least he may pay, in cents.")
    currency = Choice((CURRENCY,), about="EUR.")
    description = Text(about="What the payer reads.")
    one_off = Flag(about="Whether the code is for one payment; true by default.")
    expiration = Moment(about="Until when it can be scanned; a year by default.")
    merchant_order_id = Text(about="The merchant's own number for it.")
    size = Whole(low=100, high=2000, about="Pixels, 100 to 2000; 200 by default.")
    return_url = WebUrl(about="Where the payer goes after the payment.")
    webhook_url = WebUrl(about="Where the webhooks of its orders go.")

    @pre_load
    def zero_is_no_amount(self, data: Any, **options: Any) -> Any:
        """An amount of 0 that the payer may change says that there is none yet (A23)."""
        if not isinstance(data, Mapping) or data.get("amount_changeable") is not True:
            return data
        amount = data.get("amount")
        is_zero = isinstance(amount, int) and not isinstance(amount, bool) and amount == 0
        return {key: value for key, value in data.items() if key != "amount"} if is_zero else data
