"""A transaction: one payment attempt with one payment method."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, ClassVar, Final, NamedTuple

from payment_sandbox.orders.amounts import Cents
from payment_sandbox.orders.authorization import Authorization
from payment_sandbox.orders.statuses import OPEN_STATUSES, TRANSACTION_TRANSITIONS, TransactionStatus, Trigger

NO_DATA: Final[Mapping[str, Any]] = {}
"""No data; one object for all records, which saves a tenth of the memory of an order."""


class TransactionEvent(NamedTuple):
    """An event: the transaction reached a status."""

    id: str
    event: str
    at: datetime


@dataclass(slots=True)
class Transaction:
    """A payment attempt. A published version never changes; edits work on a copy."""

    TRANSITIONS: ClassVar[Mapping[str, Mapping[Trigger, str]]] = TRANSACTION_TRANSITIONS

    id: str
    method: str
    payment_method: str  # the name or alias in the request
    amount_cents: Cents
    created: datetime
    modified: datetime
    expiration_period: str
    expires_at: datetime
    brand: str
    status: str = TransactionStatus.NEW.value
    completed: datetime | None = None
    capture_mode: str | None = None
    asked: Mapping[str, Any] = field(default_factory=lambda: NO_DATA)  # the request's details, never a CVC
    details: Mapping[str, Any] = field(default_factory=lambda: NO_DATA)  # shown in responses
    events: tuple[TransactionEvent, ...] = ()
    reason: str | None = None
    customer_message: str | None = None
    has_page: bool = False
    visited: bool = False
    credited_cents: Cents = 0
    authorization: Authorization | None = None
    credit_debit: str = "credit"
    plan: Mapping[str, Any] = field(default_factory=lambda: NO_DATA)  # the outcome according to the scenario

    @property
    def is_open(self) -> bool:
        """Whether the outcome is still open."""
        return self.status in OPEN_STATUSES

    @property
    def captured_cents(self) -> Cents:
        """The captured amount, or the whole amount of a completed sale; an overpayment counts (A45)."""
        if self.authorization is not None:
            return self.authorization.captured_cents
        if self.status == TransactionStatus.COMPLETED:
            return max(self.amount_cents, self.credited_cents)
        return 0

    @property
    def received_cents(self) -> Cents:
        """The captured amount, or the part of a transfer that has arrived."""
        return self.captured_cents or self.credited_cents

    @property
    def is_capturable(self) -> bool:
        """Whether a manual capture could succeed."""
        authorization = self.authorization
        return authorization is not None and authorization.is_open and not authorization.delayed

    @property
    def is_fully_captured(self) -> bool:
        """Whether money was captured and nothing remains to capture."""
        authorization = self.authorization
        return (
            authorization is not None
            and authorization.captured_cents > 0
            and authorization.remaining_cents == 0
        )

    def copy(self) -> "Transaction":
        """Return a shallow copy to edit; its values are replaced, never mutated."""
        copy = object.__new__(Transaction)
        for name in _FIELD_NAMES:
            setattr(copy, name, getattr(self, name))
        return copy


_FIELD_NAMES: tuple[str, ...] = tuple(Transaction.__slots__)
