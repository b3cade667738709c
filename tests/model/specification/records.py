"""The state of a merchant's project: orders, attempts, authorizations, refunds, codes and webhooks.

All records are immutable and hashable, so that equal states can be merged.
"""

import re
from calendar import monthrange
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, NamedTuple

START: Final = datetime.fromisoformat("2027-01-01T00:00:00+00:00")
LARGEST_AMOUNT: Final = 2**53 - 1  # A08
RETRY_AFTER: Final = timedelta(minutes=2)  # HOOK-11
DELIVERY_ATTEMPTS_MAX: Final = 10  # HOOK-12, LIM-06
RECURRING_SETTLEMENT_DELAY: Final = timedelta(minutes=1)  # SET-64
SCREENING_DURATION: Final = timedelta(minutes=10)  # the trigger value needs-time
SERIES_PERIOD: Final = "P1Y"  # LIM-08
HOSTED_PAGE_PERIOD: Final = "P1D"  # SET-69
QR_PERIOD: Final = "P1Y"  # QR-15
PERIOD: Final = re.compile(
    r"P(?:(?P<Y>\d+)Y)?(?:(?P<M>\d+)M)?(?:(?P<W>\d+)W)?(?:(?P<D>\d+)D)?"
    r"(?:T(?:(?P<h>\d+)H)?(?:(?P<m>\d+)M)?(?:(?P<s>\d+)S)?)?"
)


def add_period(moment: datetime, period: str) -> datetime:
    """Add an ISO 8601 duration; months and years follow the calendar (SET-22).

    Raises:
        ValueError: the period is malformed or zero (SET-21).
    """
    match = PERIOD.fullmatch(period)
    parts = {name: int(value) for name, value in match.groupdict().items() if value} if match else {}
    if not any(parts.values()):
        raise ValueError(period)
    months = moment.month - 1 + parts.get("M", 0) + 12 * parts.get("Y", 0)
    year, month = moment.year + months // 12, months % 12 + 1
    day = min(moment.day, monthrange(year, month)[1])
    names = {"W": "weeks", "D": "days", "h": "hours", "m": "minutes", "s": "seconds"}
    rest = timedelta(**{name: parts.get(letter, 0) for letter, name in names.items()})
    return moment.replace(year=year, month=month, day=day) + rest


class Method(NamedTuple):
    """The properties of a payment method in the specification."""

    period: str  # TRQ-04, SET-65 to SET-68
    has_page: bool = True
    authorizes: bool = False
    needs: tuple[str, ...] = ()
    is_testable: bool = True
    is_transfer: bool = False  # pending until the bank credits it (SEPA-01)
    screenings: tuple[str, ...] = ()  # possible screening results, except a pass
    has_flows: bool = False  # offers one-click and recurring payments (CARD-04)

    @property
    def is_invoice(self) -> bool:
        """Whether a passed screening completes the payment; refunds are by lines (STA-17, END-09)."""
        return bool(self.screenings) and not self.has_page


METHODS: Final = {
    "credit-card": Method("PT30M", authorizes=True, has_flows=True),  # CARD-01, CARD-03, LIM-12
    "bank-transfer": Method("P30D", has_page=False, is_transfer=True),  # SEPA-01, SEPA-03, SEPA-05, LIM-14
    "bank-redirect-nl": Method("PT60M", needs=("issuer_id",)),  # IDR-02, LIM-13
    "bank-redirect-be": Method("PT60M", is_testable=False),  # BRB-01
    "bank-redirect-de": Method("PT60M"),  # BRD-01
    "wallet-qr": Method("PT30M"),  # WQR-02
    "wallet-web": Method("PT30M"),  # WWEB-01
    "wallet-apple": Method("PT30M", is_testable=False),  # WAPP-01
    "wallet-google": Method("PT30M"),  # GPAY-01, GPAY-05
    "pay-later-a": Method(  # PLA-05
        "PT48H", authorizes=True, needs=("order_lines",), screenings=("declined", "needs-time", "error")
    ),
    "invoice-later-b": Method(  # INV-06
        "P30D", has_page=False, authorizes=True, needs=("order_lines", "customer"), screenings=("declined",)
    ),
}


class LineItem(NamedTuple):
    """An order line: ``amount`` is per item, VAT included (A16)."""

    id: str
    amount: int
    quantity: int


@dataclass(frozen=True)
class Authorization:
    """An authorization, which the merchant can capture until it expires (capture and void rules 1 to 5)."""

    amount: int
    expires: datetime
    is_delayed: bool
    captured_lines: tuple[int, ...]  # the quantity of each line captured by lines
    voided_lines: tuple[int, ...]
    captured: int = 0
    voided: int = 0
    voided_by_amount: int = 0
    style: str = ""  # "lines" or "amount", set by the first such capture (CAP-08, CAP-09)
    is_expired: bool = False

    @property
    def remaining(self) -> int:
        """The amount neither captured nor voided; partial captures add up (SET-47)."""
        return self.amount - self.captured - self.voided


@dataclass(frozen=True)
class Attempt:
    """A transaction: an attempt to pay with one method (GEN-02)."""

    method: str
    amount: int
    status: str
    period: str
    expires: datetime
    capture_mode: str = ""
    flow: str = ""  # "first one-click", "one-click", "first recurring" or "recurring"
    authorization: Authorization | None = None
    received: int = 0  # the money from a sale or a transfer
    screening: str = ""  # the pending result of a slow screening
    due: datetime | None = None  # the time of the screening result or the settlement
    arrives: datetime | None = None  # the time of a transfer's planned credit
    credit: int | None = None  # its amount; None means the amount that is missing then

    @property
    def facts(self) -> Method:
        """The properties of the method."""
        return METHODS[self.method]

    @property
    def is_open(self) -> bool:
        """Whether the attempt is still in progress."""
        return self.status in {"new", "processing", "pending"}

    @property
    def is_unpaid(self) -> bool:
        """Whether the attempt has neither reserved nor received money, and so was never completed."""
        return self.authorization is None and not self.received

    @property
    def captured(self) -> int:
        """The money captured or received through the attempt."""
        return self.authorization.captured if self.authorization else self.received

    @property
    def is_paid(self) -> bool:
        """Whether the attempt has captured money, or received its whole amount."""
        return self.captured > 0 and (self.authorization is not None or self.status == "completed")


@dataclass(frozen=True)
class Webhook:
    """A webhook for a status change (HOOK-02)."""

    created_at: datetime
    attempts: int = 0
    state: str = "pending"

    @property
    def due(self) -> datetime | None:
        """The time of the next delivery, two minutes after the previous one (HOOK-11)."""
        return self.created_at + self.attempts * RETRY_AFTER if self.state == "pending" else None


@dataclass(frozen=True)
class Refund:
    """A refund, an order-like record (SET-48)."""

    amount: int
    status: str
    lines: tuple[int, ...]  # the quantity of each line
    fails_at: datetime | None = None
    webhooks: tuple[Webhook, ...] = ()


@dataclass(frozen=True)
class Order:
    """An order with its refunds."""

    amount: int
    status: str
    expires: datetime | None  # None if the order has no hosted page
    lines: tuple[LineItem, ...] = ()
    customer: str = ""
    offered: tuple[str, ...] = ()
    attempts: tuple[Attempt, ...] = ()
    description: str = ""
    webhook_url: str = ""  # this order's URL (ORD-10, HOOK-04); "" means the project's (HOOK-03)
    has_acted: bool = False  # whether the customer has acted
    from_code: bool = False
    refunds: tuple[Refund, ...] = ()
    webhooks: tuple[Webhook, ...] = ()

    @property
    def is_invoice(self) -> bool:
        """Whether an invoice was captured, or nothing was paid and the newest attempt is an invoice."""
        paid = [attempt for attempt in self.attempts if attempt.is_paid]
        return any(attempt.facts.is_invoice for attempt in paid or self.attempts[-1:])

    @property
    def is_hosted(self) -> bool:
        """Whether the customer chooses the method (STA-03)."""
        return self.expires is not None

    @property
    def is_active(self) -> bool:
        """Whether the customer can still pay for the order."""
        return self.status in {"new", "processing"}

    @property
    def is_unpaid(self) -> bool:
        """Whether no attempt reserved or received money."""
        return all(attempt.is_unpaid for attempt in self.attempts)

    def is_page_open(self, now: datetime) -> bool:
        """Whether customers can use the page; a transfer keeps the order open for longer (ORD-12, A21)."""
        return self.is_active and (self.expires is None or now < self.expires)

    @property
    def received(self) -> int:
        """All money received for the order; part of a transfer counts once the order has ended (A45)."""
        counted = [attempt for attempt in self.attempts if attempt.is_paid or not self.is_active]
        return sum(attempt.captured for attempt in counted)

    @property
    def is_paid(self) -> bool:
        """Whether money has moved; part of a transfer does not pay an order (SET-50, A45)."""
        return any(attempt.is_paid for attempt in self.attempts)

    @property
    def refundable(self) -> int:
        """Everything received, less earlier refunds (SET-49, A45)."""
        return self.received - sum(refund.amount for refund in self.refunds if refund.status != "error")


class StoredCard(NamedTuple):
    """A stored card, known by the vault token of a first payment (CARD-20)."""

    order: int
    flow: str
    amount: int
    valid_until: datetime


class QrRequest(NamedTuple):
    """A QR request."""

    amount: int
    is_changeable: bool
    smallest: int | None
    largest: int | None
    is_one_off: bool
    expires: datetime
    scans: int = 0


@dataclass(frozen=True)
class Shop:
    """The state of a merchant's project at a point in time."""

    now: datetime = START
    mode: str = "test"
    authorized_status: str = "completed"
    is_reachable: bool = True  # whether the shop answers webhooks with 200 rather than 503
    orders: tuple[Order, ...] = ()
    cards: tuple[StoredCard, ...] = ()
    codes: tuple[QrRequest, ...] = ()
