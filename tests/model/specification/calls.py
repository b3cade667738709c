"""The calls and events of the model, which refer to orders, attempts and codes by number."""

from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from tests.model.specification.records import LineItem, Shop


class Outcome(NamedTuple):
    """One allowed answer, and the state that follows it."""

    status: int
    shop: Shop
    type: str = ""  # the error type; "" means any type


Outcomes = tuple[Outcome, ...]


class Refusal(NamedTuple):
    """A reason to refuse a call; if several apply, each of them is a correct answer."""

    status: int
    type: str


ACTION_IMPOSSIBLE: Final = Refusal(409, "")  # CTL-20
NOT_FOUND: Final = Refusal(404, "NotFound")  # SET-08


def allow(status: int, *shops: Shop) -> Outcomes:
    """Return an allowed outcome for each of these states."""
    return tuple(Outcome(status, shop) for shop in shops)


def refuse(shop: Shop, *refusals: Refusal) -> Outcomes:
    """Return the outcomes of a refused call, which changes nothing (SET-47)."""
    return tuple(Outcome(refusal.status, shop, refusal.type) for refusal in refusals)


def refuse_if(condition: bool) -> list[Refusal]:
    """Refuse with 400 if a condition holds, in any state of the order (SET-08, A04)."""
    return [Refusal(400, "ValidationError")] if condition else []


RequestedLines = tuple[tuple[str, Any], ...]
"""Order lines in a request, each a ``merchant_order_line_id`` and a quantity."""


@dataclass(frozen=True)
class Create:
    """POST /v1/orders/; without a method, the customer chooses on the hosted page."""

    amount: Any
    method: str = ""
    currency: Any = "EUR"
    capture_mode: str = ""
    period: str = ""  # the period of the transaction or hosted page
    lines: tuple[LineItem, ...] = ()
    customer: str = ""  # the local part of the email address, such as "declined"
    offered: tuple[str, ...] = ()
    issuer: str = ""
    flow: str = ""
    card: int | None = None
    cvc: str = ""
    description: str = ""
    webhook_url: str = ""


@dataclass(frozen=True)
class Update:
    """PUT /v1/orders/<order_id>/."""

    order: int
    amount: Any = None
    description: str | None = None
    if_match: str = ""  # "current" or "stale"


@dataclass(frozen=True)
class Cancel:
    """DELETE /v1/orders/<order_id>/."""

    order: int
    if_match: str = ""


class Portion:
    """A part of an order's money, or all of it."""

    amount: Any
    lines: RequestedLines | None

    @property
    def style(self) -> str:
        """``lines``, ``amount``, or "" for all money, which sets no style (contract: capture answers)."""
        return "lines" if self.lines is not None else "amount" if self.amount is not None else ""


@dataclass(frozen=True)
class Capture(Portion):
    """POST .../captures/, .../captures/amount/ or .../captures/orderlines/."""

    order: int
    attempt: int
    amount: Any = None
    lines: RequestedLines | None = None
    if_match: str = ""


@dataclass(frozen=True)
class Void(Capture):
    """POST .../voids/amount/ or .../voids/orderlines/."""


@dataclass(frozen=True)
class CreateRefund(Portion):
    """POST /v1/orders/<order_id>/refunds/."""

    order: int
    amount: Any = None
    lines: RequestedLines | None = None
    if_match: str = ""


@dataclass(frozen=True)
class CreateCode:
    """POST /v1/bankqr/."""

    amount: Any = None
    is_changeable: bool = False
    smallest: Any = None
    largest: Any = None
    is_one_off: bool = True
    size: Any = 200


@dataclass(frozen=True)
class Act:
    """An action by a customer, a bank, a screening or a processor on an order."""

    order: int
    actor: str
    action: str
    method: str = ""
    amount: int | None = None
    card: str = ""
    refund: int | None = None
    attempt: int = -1  # the number of the credited transfer; by default, the newest one
    arrives: str = ""  # the period after which the money of a chosen transfer arrives


@dataclass(frozen=True)
class Scan:
    """A payer's scan of a QR code."""

    code: int
    amount: int | None = None


@dataclass(frozen=True)
class Advance:
    """A clock advance; every due event happens at its own time."""

    by: str


@dataclass(frozen=True)
class SetReachability:
    """A change in the shop's behaviour: from then on, the shop accepts webhooks or answers with 503."""

    is_reachable: bool


Change = Update | Cancel | Capture | CreateRefund
"""A call that changes an order, and so accepts an entity tag."""
Call = Create | Change | CreateCode | Act | Scan | Advance | SetReachability
