"""The customer, as requests send them and responses echo them."""

from collections.abc import Mapping
from typing import Any, Final

from payment_sandbox.forms import Choice, Form, Items, Part, Text, repairs
from payment_sandbox.forms.fields import Birthdate, NumberOrText, without_nulls
from payment_sandbox.orders.order import LOCALES

COUNTRY: Final = {"pattern": "[A-Za-z]{2}", "expected": "a two-letter country code"}


class AddressForm(Form):
    """Another address of a customer."""

    null_is_absent = True

    address = Text(about="Lines separated by newlines.")
    address_type = Text(about="Such as customer or billing.")
    country = Text(**COUNTRY, about="Two letters.")


class CustomerForm(Form):
    """The customer who pays."""

    null_is_absent = True

    first_name = Text(about="Given name.")
    last_name = Text(about="Family name.")
    gender = Text(about="Such as male or female.")
    birthdate = Birthdate(about="YYYY-MM-DD.")
    email_address = Text(about="Some addresses trigger an outcome: see the test values.")
    phone_numbers = Items(Text(), about="Any number of phone numbers.")
    address = Text(about="Lines separated by newlines.")
    address_type = Text(about="Such as customer or billing.")
    additional_addresses = Items(Part(AddressForm), about="Other addresses.")
    country = Text(**COUNTRY, about="Two letters.")
    ip_address = Text(about="The customer's IP address.")
    locale = Choice(LOCALES, about="The language of the payment page.")
    postal_code = NumberOrText(about="Accepted and echoed.")
    housenumber = NumberOrText(about="Accepted and echoed.")
    merchant_customer_id = NumberOrText(about="The merchant's own id for the customer.")
    user_agent = Text(about="The customer's browser.")
    forwarded_ip = Text(about="The customer's IP address behind a proxy.")

    @repairs
    def nulls_are_absent(self, data: Any, **options: Any) -> Any:
        """Treat null as absent (SET-15)."""
        return without_nulls(data) if isinstance(data, Mapping) else data
