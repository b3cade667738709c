"""The fields of an order that are stored and repeated in responses, one row each.

Parsing, responses, updates, the API description and snapshots all derive from these rows.
"""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from payment_sandbox.forms.base import Form, repairs
from payment_sandbox.forms.fields import (
    Anything,
    AnyValue,
    Birthdate,
    Choice,
    FormPart,
    Items,
    PeriodText,
    Text,
    WebUrl,
    without_nulls,
)
from payment_sandbox.orders.order import LOCALES, locale_of

COUNTRY: Final = {"pattern": "[A-Za-z]{2}", "expected": "a two-letter country code"}


class Locale(Choice):
    """A language of the payment page; a refusal suggests the language's own locale."""

    def suggest(self, word: str) -> str | None:
        """Return the locale with the same language and, if there is one, the same region."""
        return locale_of(word)


class AddressForm(Form):
    """Another address of a customer."""

    null_is_absent = True

    address = Text(about="Lines separated by newlines.")
    address_type = Text(about="The type, such as customer or billing.")
    country = Text(**COUNTRY, about="The two-letter code.")
    postal_code = AnyValue()
    housenumber = AnyValue()
    merchant_customer_id = AnyValue()
    user_agent = AnyValue()
    forwarded_ip = AnyValue()


class CustomerForm(AddressForm):
    """The customer who pays."""

    first_name = Text(about="The given name.")
    last_name = Text(about="The family name.")
    gender = Text(about="Such as male or female.")
    birthdate = Birthdate(about="The date of birth, as YYYY-MM-DD.")
    email_address = Text(about="Some addresses trigger an outcome: see the test values.")
    phone_numbers = Items(Text(), about="Phone numbers.")
    additional_addresses = Items(FormPart(AddressForm), about="Other addresses.")
    ip_address = Text(about="The customer's IP address.")
    locale = Locale(LOCALES, about="The language of the payment page.")

    @repairs
    def drop_nulls(self, data: Any, **options: Any) -> Any:
        """Treat null as absent (SET-15)."""
        return without_nulls(data) if isinstance(data, Mapping) else data


CUSTOMER_RULES: Final = {
    "first_name": "CUS-01",
    "last_name": "CUS-01",
    "gender": "CUS-02",
    "birthdate": "CUS-03",
    "email_address": "CUS-04",
    "phone_numbers": "CUS-05",
    "address": "CUS-06",
    "address_type": "CUS-07",
    "additional_addresses": "CUS-08",
    "country": "CUS-09",
    "ip_address": "CUS-10",
    "locale": "CUS-11",
}
"""The rules of a customer's fields; the other fields are additional (SET-16)."""


class SentField(NamedTuple):
    """A stored field; a wrong value breaks ``rule``, and PUT may update a field that ``changes``.

    With ``is_refunded``, a refund copies the value from its order.
    """

    name: str
    reads: Any
    rule: str
    changes: bool = True
    is_refunded: bool = False

    @property
    def is_plain(self) -> bool:
        """Whether the field is free text, without a meaning in the sandbox."""
        return isinstance(self.reads, Text) and not isinstance(self.reads, WebUrl)


SENT_FIELDS: Final = (
    SentField("description", Text(about="Stored with the order."), "ORD-06"),
    SentField(
        "merchant_order_id", Text(about="The merchant's own id for the order."), "ORD-07", is_refunded=True
    ),
    SentField("return_url", WebUrl(about="The URL for the customer's return after the payment."), "ORD-08"),
    SentField("failure_url", WebUrl(about="The URL for the customer's return without a payment."), "ORD-30"),
    SentField(
        "webhook_url",
        WebUrl(about="The URL for this order's webhooks."),
        "ORD-10",
        is_refunded=True,
    ),
    SentField(
        "expiration_period", PeriodText(about="The lifetime of the hosted page."), "ORD-11", changes=False
    ),
    SentField("customer", FormPart(CustomerForm, about="The customer who pays."), "ORD-15", is_refunded=True),
    SentField("locale", Text(about="The language of the payment page, such as de-DE."), "ORD-31"),
    SentField("verified_terms_of_service", AnyValue(), "ORD-32", changes=False),
    SentField("extra", Anything(about="Free-form data; responses repeat it."), "SET-14"),
)
