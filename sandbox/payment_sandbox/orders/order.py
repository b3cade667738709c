"""An order and its payment attempts."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, ClassVar, Final, NamedTuple

from payment_sandbox.orders.amounts import Cents
from payment_sandbox.orders.lines import OrderLine, Quantities
from payment_sandbox.orders.statuses import ORDER_TRANSITIONS, OrderStatus, Trigger
from payment_sandbox.orders.transaction import Transaction

UNPAID_STATUSES: Final = (OrderStatus.CANCELLED, OrderStatus.ERROR, OrderStatus.EXPIRED)


class RefundEntry(NamedTuple):
    """A refund, recorded on its order; the amount of a failed refund can be refunded again."""

    refund_id: str
    amount_cents: Cents
    quantities: Quantities
    failed: bool = False


@dataclass(slots=True)
class Order:
    """An order or, with ``refund_of_order_id``, a refund, which has the same shape.

    A published version never changes; edits work on a copy.
    """

    TRANSITIONS: ClassVar[Mapping[str, Mapping[Trigger, str]]] = ORDER_TRANSITIONS

    id: str
    amount_cents: Cents
    currency: str
    created: datetime
    modified: datetime
    client: Mapping[str, Any]
    is_test: bool
    is_hosted: bool = False  # created without a transaction: the customer chooses on the page
    version: int = 0
    status: str = OrderStatus.NEW.value
    completed: datetime | None = None
    last_transaction_added: datetime | None = None
    expires_at: datetime | None = None
    payment_methods: tuple[str, ...] | None = None
    sent: Mapping[str, Any] = field(default_factory=dict)  # the fields of the request, unchanged
    order_lines: tuple[OrderLine, ...] = ()
    transactions: tuple[Transaction, ...] = ()
    bankqr_id: str | None = None  # the QR request of the scan that created the order
    reason: str | None = None
    page_visited: bool = False
    refunds: tuple[RefundEntry, ...] = ()
    refund_of_order_id: str | None = None

    @property
    def description(self) -> str | None:
        """The merchant's description."""
        return self.sent.get("description")

    @property
    def merchant_order_id(self) -> str | None:
        """The merchant's own order id."""
        return self.sent.get("merchant_order_id")

    @property
    def return_url(self) -> str | None:
        """The URL to which the customer returns after the payment."""
        return self.sent.get("return_url")

    @property
    def landing_url(self) -> str | None:
        """The URL to which the customer goes now: ``failure_url``, if there is one, without a payment (A67).

        A customer who leaves the hosted page without an open attempt has not paid either.
        """
        attempt = self.last_transaction
        leaves = self.is_open and self.is_hosted and (attempt is None or not attempt.is_open)
        has_failed = leaves or self.status in UNPAID_STATUSES
        return (self.sent.get("failure_url") if has_failed else None) or self.return_url

    @property
    def webhook_url(self) -> str | None:
        """The URL for webhooks; None means the project's URL."""
        return self.sent.get("webhook_url")

    @property
    def expiration_period(self) -> str | None:
        """The lifetime of the hosted page, in the merchant's notation."""
        return self.sent.get("expiration_period")

    @property
    def customer(self) -> dict[str, Any] | None:
        """The customer who pays."""
        return self.sent.get("customer")

    @property
    def page_locale(self) -> str | None:
        """The locale of the pages, by the customer's locale or the order's (A68); None without either."""
        chosen: str | None = (self.customer or {}).get("locale")
        if chosen is None and "locale" in self.sent:
            chosen = locale_of(self.sent["locale"]) or DEFAULT_LOCALE
        return chosen

    @property
    def extra(self) -> dict[str, Any] | None:
        """The merchant's own data."""
        return self.sent.get("extra")

    @property
    def last_transaction(self) -> Transaction | None:
        """The newest attempt."""
        return self.transactions[-1] if self.transactions else None

    @property
    def is_open(self) -> bool:
        """Whether the outcome is still open."""
        return self.status in (OrderStatus.NEW, OrderStatus.PROCESSING)

    @property
    def is_final(self) -> bool:
        """Whether the outcome is final and no money is reserved."""
        reserved = (attempt.authorization for attempt in self.transactions)
        return not self.is_open and not any(held is not None and held.is_open for held in reserved)

    @property
    def is_refund(self) -> bool:
        """Whether this is a refund."""
        return self.refund_of_order_id is not None

    @property
    def has_page(self) -> bool:
        """Whether the order has a payment page."""
        return self.is_hosted or any(transaction.has_page for transaction in self.transactions)

    @property
    def has_customer_acted(self) -> bool:
        """Whether a customer visited a page or sent money, or an attempt has ended."""
        return self.page_visited or any(
            transaction.visited or transaction.credited_cents or not transaction.is_open
            for transaction in self.transactions
        )

    @property
    def paying_transaction(self) -> Transaction | None:
        """The attempt whose method and lines count: an authorization, a sale, a transfer, or the newest.

        A transfer that arrives beside another payment is a surplus (A45).
        """
        paid = [attempt for attempt in self.transactions if attempt.captured_cents]
        used = [t for t in self.transactions if t.authorization is not None and t.authorization.is_used]
        sales = [attempt for attempt in paid if not attempt.credited_cents]
        return (used or sales or paid or self.transactions or (None,))[-1]

    @property
    def received_cents(self) -> Cents:
        """The money received through all attempts, before refunds (A45).

        Part of a transfer counts once the order has ended; until then, the remainder may arrive.
        """
        if self.is_open:
            return self.paid_cents
        return sum(transaction.received_cents for transaction in self.transactions)

    @property
    def paid_cents(self) -> Cents:
        """The money of attempts that pay the order: captured, or a transfer's whole amount."""
        return sum(transaction.captured_cents for transaction in self.transactions)

    @property
    def captured_cents(self) -> Cents:
        """The received part of the order's amount; an overpayment does not count."""
        return min(self.received_cents, self.amount_cents)

    @property
    def voided_cents(self) -> Cents:
        """The voided part of the order's amount."""
        voided = sum(
            transaction.authorization.voided_cents
            for transaction in self.transactions
            if transaction.authorization is not None
        )
        return min(voided, self.amount_cents - self.captured_cents)

    @property
    def remaining_cents(self) -> Cents:
        """The amount neither captured nor voided: captured + voided + remaining = amount."""
        return self.amount_cents - self.captured_cents - self.voided_cents

    @property
    def flags(self) -> list[str]:
        """The flags that apply to this order."""
        captured_cents = voided_cents = 0
        for transaction in self.transactions:
            if transaction.authorization is not None:
                captured_cents += transaction.authorization.captured_cents
                voided_cents += transaction.authorization.voided_cents
        conditions = (
            ("is-test", self.is_test),
            ("is-refund", self.refund_of_order_id is not None),
            ("from-bankqr", self.bankqr_id is not None),
            ("has-captures", captured_cents > 0),
            ("has-voids", voided_cents > 0),
            ("has-refunds", bool(self.refunds) and any(not refund.failed for refund in self.refunds)),
        )
        return [name for name, holds in conditions if holds]

    def transaction(self, transaction_id: str) -> Transaction | None:
        """Return the transaction with this id; None if it is unknown."""
        for transaction in self.transactions:
            if transaction.id == transaction_id:
                return transaction
        return None

    def copy(self) -> "Order":
        """Return a copy to edit, with copies of its transactions."""
        copy = object.__new__(Order)
        for name in _FIELD_NAMES:
            setattr(copy, name, getattr(self, name))
        copy.transactions = tuple(transaction.copy() for transaction in self.transactions)
        return copy


_FIELD_NAMES: tuple[str, ...] = tuple(Order.__slots__)


DEFAULT_LOCALE: Final = "en-GB"
LOCALES: Final = ("nl", "de", "nl-BE", "fr-BE", "en-GB")
_LOCALES_BY_TAG: Final = {"fr": "fr-BE", "en": "en-GB", **{locale.lower(): locale for locale in LOCALES}}


def locale_of(tag: str) -> str | None:
    """Return the locale with the language of a tag such as de_DE and, if there is one, its region."""
    lower = tag.strip().replace("_", "-").partition(".")[0].lower()
    return _LOCALES_BY_TAG.get(lower) or _LOCALES_BY_TAG.get(lower.partition("-")[0])


def missing_personal_data(customer: Mapping[str, Any] | None) -> list[str]:
    """Return the paths of the data that a screening needs and an order lacks (A75)."""
    known = customer or {}
    has_address = known.get("address") or any(
        other.get("address") for other in known.get("additional_addresses", ())
    )
    missing = [name for name in ("birthdate", "gender") if not known.get(name)]
    return [f"customer.{name}" for name in (*missing, *(() if has_address else ("address",)))]


REDUCED_CUSTOMER_FIELDS: Final = ("country", "ip_address")


def reduce_customer(customer: Mapping[str, Any]) -> dict[str, Any]:
    """Reduce a customer to country and IP address, for projects with ``reduced_customer`` (CUS-13)."""
    return {name: customer[name] for name in REDUCED_CUSTOMER_FIELDS if name in customer}
