"""The customer fields in responses."""

from collections.abc import Mapping
from typing import Any, Final

LOCALES: Final = ("nl", "de", "nl-BE", "fr-BE", "en-GB")
FIELDS: Final = (
    "first_name",
    "last_name",
    "gender",
    "birthdate",
    "email_address",
    "phone_numbers",
    "address",
    "address_type",
    "additional_addresses",
    "country",
    "ip_address",
    "locale",
    "postal_code",
    "housenumber",
    "merchant_customer_id",
    "user_agent",
    "forwarded_ip",
)
REDUCED_FIELDS: Final = ("country", "ip_address")


def reduced(customer: Mapping[str, Any]) -> dict[str, Any]:
    """Country and IP address only, for projects with ``reduced_customer`` (CUS-13)."""
    return {name: customer[name] for name in REDUCED_FIELDS if name in customer}
