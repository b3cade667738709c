"""The status transitions, and the only function that applies them."""

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from types import MappingProxyType
from typing import ClassVar, Final, NamedTuple, Protocol


class OrderStatus(StrEnum):
    """The statuses of an order."""

    NEW = "new"
    PROCESSING = "processing"
    ACCEPTED = "accepted"
    COMPLETED = "completed"
    CANCELLED = "cancelled"
    EXPIRED = "expired"
    ERROR = "error"


class TransactionStatus(StrEnum):
    """The statuses of a transaction."""

    NEW = "new"
    PROCESSING = "processing"
    PENDING = "pending"
    ACCEPTED = "accepted"
    COMPLETED = "completed"
    CANCELLED = "cancelled"
    EXPIRED = "expired"
    ERROR = "error"


class Trigger(StrEnum):
    """The triggers of status changes."""

    VISIT = "visit"  # the customer opened the payment page
    START = "start"  # the processor has started; no customer is needed
    PEND = "pend"  # a bank or a screening will answer later
    PASS = "pass"
    PAY = "pay"
    AUTHORIZE = "authorize"  # money is reserved and shown as completed
    ACCEPT = "accept"  # money is reserved and shown as accepted
    FINISH = "finish"  # nothing remains to capture
    FAIL = "fail"
    DECLINE = "decline"
    CANCEL = "cancel"
    EXPIRE = "expire"
    LAPSE = "lapse"  # an authorization expired unused


_O, _T = OrderStatus, TransactionStatus
_PAYMENTS: Final = {
    Trigger.PAY: _T.COMPLETED.value,
    Trigger.AUTHORIZE: _T.COMPLETED.value,
    Trigger.ACCEPT: _T.ACCEPTED.value,
}
_ENDINGS: Final = {
    Trigger.FAIL: _T.ERROR.value,
    Trigger.CANCEL: _T.CANCELLED.value,
    Trigger.EXPIRE: _T.EXPIRED.value,
}

ORDER_TRANSITIONS: Final[Mapping[str, Mapping[Trigger, str]]] = MappingProxyType(
    {
        _O.NEW: {
            Trigger.VISIT: _O.PROCESSING,
            Trigger.START: _O.PROCESSING,
            Trigger.PEND: _O.PROCESSING,
            **_PAYMENTS,
            Trigger.DECLINE: _O.CANCELLED,
            **_ENDINGS,
        },
        _O.PROCESSING: {
            Trigger.PASS: _O.NEW,
            **_PAYMENTS,
            Trigger.DECLINE: _O.CANCELLED,
            **_ENDINGS,
        },
        _O.ACCEPTED: {
            Trigger.PAY: _O.COMPLETED,  # a late bank transfer
            Trigger.FINISH: _O.COMPLETED,
            Trigger.CANCEL: _O.CANCELLED,
            Trigger.LAPSE: _O.EXPIRED,
        },
        # Completed is final for money that moved; a mere reservation can still be voided or expire.
        _O.COMPLETED: {Trigger.CANCEL: _O.CANCELLED, Trigger.LAPSE: _O.EXPIRED},
        _O.EXPIRED: {Trigger.PAY: _O.COMPLETED},  # a late bank transfer
        _O.CANCELLED: {},
        _O.ERROR: {},
    }
)

TRANSACTION_TRANSITIONS: Final[Mapping[str, Mapping[Trigger, str]]] = MappingProxyType(
    {
        _T.NEW: {
            Trigger.VISIT: _T.PROCESSING,
            Trigger.START: _T.PROCESSING,
            Trigger.PEND: _T.PENDING,
            **_PAYMENTS,
            Trigger.DECLINE: _T.CANCELLED,
            **_ENDINGS,
        },
        _T.PROCESSING: {**_PAYMENTS, **_ENDINGS},
        _T.PENDING: {
            Trigger.PASS: _T.NEW,
            Trigger.PAY: _T.COMPLETED,
            Trigger.DECLINE: _T.CANCELLED,
            **_ENDINGS,
        },
        _T.ACCEPTED: {
            Trigger.FINISH: _T.COMPLETED,
            Trigger.CANCEL: _T.CANCELLED,
            Trigger.LAPSE: _T.EXPIRED,
        },
        _T.COMPLETED: {Trigger.CANCEL: _T.CANCELLED, Trigger.LAPSE: _T.EXPIRED},
        # A bank transfer can be paid at any time, and chosen again on the hosted page.
        _T.EXPIRED: {Trigger.PAY: _T.COMPLETED},
        _T.CANCELLED: {Trigger.PAY: _T.COMPLETED, Trigger.PEND: _T.PENDING},
        _T.ERROR: {},
    }
)

OPEN_STATUSES: Final = frozenset(
    {TransactionStatus.NEW, TransactionStatus.PROCESSING, TransactionStatus.PENDING}
)


class StatusChange(NamedTuple):
    """The status of an order or a transaction has changed."""

    subject_id: str
    before: str
    after: str
    at: datetime


class HasStatus(Protocol):
    """An order or a transaction, whose status ``move`` changes."""

    id: str
    status: str
    completed: datetime | None
    modified: datetime
    TRANSITIONS: ClassVar[Mapping[str, Mapping[Trigger, str]]]


class IllegalTransition(Exception):
    """The trigger is not allowed in this status; nothing has changed."""


def can_move(subject: HasStatus, trigger: Trigger) -> bool:
    """Whether ``trigger`` is allowed in the subject's status."""
    return trigger in subject.TRANSITIONS[subject.status]


def move(subject: HasStatus, trigger: Trigger, now: datetime) -> StatusChange:
    """Apply ``trigger``; no other function sets a status.

    Raises:
        IllegalTransition: the trigger is not allowed in this status; nothing has changed.
    """
    before = subject.status
    after = subject.TRANSITIONS[before].get(trigger)
    if after is None:
        raise IllegalTransition(f"{subject.id} is {before}: {trigger} is not allowed in this status")
    subject.status = str(after)
    subject.modified = now
    if after == "completed" and subject.completed is None:
        subject.completed = now
    return StatusChange(subject.id, before, str(after), now)
