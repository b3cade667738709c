"""The types of the merchant API's records, for typed clients; generated from their tables.

``python -m tests.typed_records`` writes this file, and a test compares it with the tables.
"""

from typing import Any, NotRequired, TypedDict


class Address(TypedDict):
    """Another address of a customer."""

    address: NotRequired[str]
    address_type: NotRequired[str]
    country: NotRequired[str]


class Customer(TypedDict):
    """The customer who pays."""

    first_name: NotRequired[str]
    last_name: NotRequired[str]
    gender: NotRequired[str]
    birthdate: NotRequired[str]
    email_address: NotRequired[str]
    phone_numbers: NotRequired[list[str]]
    address: NotRequired[str]
    address_type: NotRequired[str]
    additional_addresses: NotRequired[list[Address]]
    country: NotRequired[str]
    ip_address: NotRequired[str]
    locale: NotRequired[str]
    postal_code: NotRequired[str]
    housenumber: NotRequired[str]
    merchant_customer_id: NotRequired[str]
    user_agent: NotRequired[str]
    forwarded_ip: NotRequired[str]


class OrderLine(TypedDict):
    """An order line."""

    type: str
    amount: int
    currency: str
    merchant_order_line_id: NotRequired[str]
    name: NotRequired[str]
    quantity: int
    vat_percentage: NotRequired[int]


class Event(TypedDict):
    """A status reached by a transaction."""

    id: str
    event: str
    occurred: str
    noticed: str
    source: str


class Transaction(TypedDict):
    """A transaction: one attempt to pay."""

    id: str
    order_id: str
    merchant_id: str
    project_id: str
    status: str
    payment_method: str
    payment_method_brand: str
    payment_method_details: dict[str, Any]
    payment_url: NotRequired[str]
    product_type: str
    channel: str
    amount: int
    currency: str
    description: NotRequired[str]
    balance: str
    credit_debit: str
    capture_mode: NotRequired[str]
    expiration_period: str
    is_capturable: bool
    is_fully_captured: bool
    reason: NotRequired[str]
    customer_message: NotRequired[str]
    events: list[Event]
    created: str
    modified: str
    completed: NotRequired[str]
    msc_amount: NotRequired[int]
    msc_calculation_type: NotRequired[str]
    msc_currency: NotRequired[str]


class LineDetail(TypedDict):
    """The quantity of a line in one status; numbers are strings."""

    amount: str
    currency: str
    merchant_order_line_id: NotRequired[str]
    name: NotRequired[str]
    quantity: str
    type: str
    vat_percentage: NotRequired[str]
    status: str


class Amounts(TypedDict):
    """The amount by state, in cents: captured + voided + remaining = original."""

    original: int
    captured: int
    voided: int
    remaining: int


class Order(TypedDict):
    """An order or a refund."""

    id: str
    merchant_id: str
    project_id: str
    status: str
    currency: str
    amount: int
    description: NotRequired[str]
    merchant_order_id: NotRequired[str]
    return_url: NotRequired[str]
    webhook_url: NotRequired[str]
    expiration_period: NotRequired[str]
    customer: NotRequired[Customer]
    extra: NotRequired[dict[str, Any]]
    payment_methods: NotRequired[list[str]]
    order_lines: NotRequired[list[OrderLine]]
    transactions: list[Transaction]
    client: dict[str, Any]
    flags: list[str]
    reason: NotRequired[str]
    order_url: NotRequired[str]
    refund_of_order_id: NotRequired[str]
    created: str
    modified: str
    completed: NotRequired[str]
    last_transaction_added: NotRequired[str]
    order_line_details: NotRequired[list[LineDetail]]
    amount_details: NotRequired[Amounts]
