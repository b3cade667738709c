"""Wrong values in the fields of a new order, one at a time."""

from typing import Any, Final

from payment_sandbox.verification.checks import Checks, refused
from payment_sandbox.verification.probing import probe
from payment_sandbox.verification.samples import CARD, CUSTOMER, LINES, LINES_TOTAL, by, card
from payment_sandbox.verification.service import Service

WRONG: Final[tuple[tuple[str, str, dict[str, Any]], ...]] = (
    ("ORD-02", "currency", {"currency": ...}),
    ("ORD-03", "currency", {"currency": "USD"}),
    ("LIM-01", "currency", {"currency": "GBP"}),
    ("ORD-04", "amount", {"amount": ...}),
    ("ORD-05", "amount", {"amount": "1295"}),
    ("LIM-02", "amount", {"amount": 12.95}),
    ("SET-11", "amount", {"amount": 0}),
    ("SET-11", "amount", {"amount": None}),
    ("SET-11", "amount", {"amount": True}),
    ("ORD-06", "description", {"description": 5}),
    ("ORD-07", "merchant_order_id", {"merchant_order_id": 5}),
    ("ORD-08", "return_url", {"return_url": "no address"}),
    ("ORD-10", "webhook_url", {"webhook_url": "no address"}),
    ("ORD-11", "expiration_period", {"expiration_period": "an hour"}),
    ("SET-21", "expiration_period", {"expiration_period": "PT0S"}),
    ("SET-21", "expiration_period", {"expiration_period": "-PT5M"}),
    ("ORD-13", "payment_methods", {"payment_methods": CARD}),
    ("ORD-15", "customer", {"customer": "Jan"}),
    (
        "TRQ-07",
        "transactions[0].payment_method_details",
        {"transactions": [card() | {"payment_method_details": 5}]},
    ),
    ("TRQ-01", "transactions[0].payment_method", {"transactions": [{}]}),
    ("TRQ-02", "transactions[0].payment_method", {"transactions": [by("cheque")]}),
    ("TRQ-03", "transactions[0].expiration_period", {"transactions": [by(CARD, expiration_period="soon")]}),
    ("TRQ-06", "transactions[0].capture_mode", {"transactions": [by(CARD, capture_mode="later")]}),
    ("SET-17", "transactions", {"transactions": [by(CARD), by(CARD)]}),
)
CUSTOMERS: Final[tuple[tuple[str, str, Any], ...]] = (
    ("CUS-01", "first_name", 5),
    ("CUS-02", "gender", 5),
    ("CUS-03", "birthdate", "31-01-1990"),
    ("CUS-04", "email_address", 5),
    ("CUS-05", "phone_numbers", "+31000000000"),
    ("CUS-06", "address", 5),
    ("CUS-07", "address_type", 5),
    ("CUS-08", "additional_addresses", "Teststraat 2"),
    ("CUS-09", "country", "Netherlands"),
    ("CUS-10", "ip_address", 5),
    ("CUS-11", "locale", "xx"),
)
OF_LINES: Final[tuple[tuple[str, str, Any], ...]] = (
    ("LINE-01", "type", "service"),
    ("LINE-02", "amount", 2.5),
    ("LINE-03", "currency", "USD"),
    ("LINE-04", "merchant_order_line_id", 5),
    ("LINE-05", "name", 5),
    ("LINE-06", "quantity", 1.5),
    ("LINE-07", "vat_percentage", "21%"),
    ("SET-30", "vat_percentage", 10_001),
)


@probe(*(rule for rule, _, _ in WRONG))
def wrong_fields(service: Service) -> Checks:
    """Each is refused, at its place."""
    for rule, place, fields in WRONG:
        yield from refused(rule, service.create(**fields), 400, "ValidationError", place)


@probe(*(rule for rule, _, _ in CUSTOMERS))
def wrong_customers(service: Service) -> Checks:
    """Each is refused, at its place."""
    for rule, name, value in CUSTOMERS:
        answer = service.create(customer={**CUSTOMER, name: value})
        yield from refused(rule, answer, 400, "ValidationError", f"customer.{name}")


@probe(*(rule for rule, _, _ in OF_LINES))
def wrong_lines(service: Service) -> Checks:
    """Each is refused, at its place."""
    for rule, name, value in OF_LINES:
        lines = [{**LINES[0], name: value}, LINES[1]]
        answer = service.create(amount=LINES_TOTAL, order_lines=lines)
        yield from refused(rule, answer, 400, "ValidationError", f"order_lines[0].{name}")
