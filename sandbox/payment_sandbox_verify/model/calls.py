"""The calls and events of the model. Orders, attempts and codes are named by their number."""

from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from payment_sandbox_verify.model.records import Line, Shop


class Outcome(NamedTuple):
    """One allowed answer, and the state that follows it.

    The first of ``rules`` is the closest; a refusal instead breaks ``accepted``. ``assumption`` is its number
    where the specification leaves a choice, and the contract made it.
    """

    status: int
    shop: Shop
    type: str = ""  # of the error; "" for any
    rules: tuple[str, ...] = ()
    assumption: str = ""
    accepted: tuple[str, ...] = ()


Outcomes = tuple[Outcome, ...]


class Refusal(NamedTuple):
    """A reason to refuse a call; if there are several, each of them is a right answer."""

    status: int
    type: str
    rules: tuple[str, ...] = ()
    assumption: str = ""


IMPOSSIBLE: Final = Refusal(409, "", ("CTL-20",))
NOT_FOUND: Final = Refusal(404, "NotFound", ("SET-08",))


def allow(status: int, shop: Shop, *rules: str, by: str = "", accepted: tuple[str, ...] = ()) -> Outcome:
    """An answer, the state after it, and the rules and the assumption that say so."""
    return Outcome(status, shop, "", (*rules, *accepted), by, accepted or rules[:1])


def refuse(shop: Shop, *refusals: Refusal) -> Outcomes:
    """A refused call changes nothing (SET-47)."""
    return tuple(Outcome(r.status, shop, r.type, r.rules, r.assumption) for r in refusals)


def invalid(condition: bool, *rules: str) -> list[Refusal]:
    """Refuse with 400 if that holds: no state would allow it (SET-08, A04)."""
    return [Refusal(400, "ValidationError", rules)] if condition else []


Wanted = tuple[tuple[str, Any], ...]
"""Order lines of a request: pairs of a ``merchant_order_line_id`` and a quantity."""


@dataclass(frozen=True)
class Create:
    """POST /v1/orders/, without a method for the hosted page."""

    amount: Any
    method: str = ""
    currency: Any = "EUR"
    capture_mode: str = ""
    period: str = ""  # of the transaction, or of the hosted page
    lines: tuple[Line, ...] = ()
    customer: str = ""  # what the e-mail address begins with, such as "declined"
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


@dataclass(frozen=True)
class Capture:
    """POST .../captures/, .../captures/amount/ or .../captures/orderlines/."""

    order: int
    attempt: int
    amount: Any = None
    lines: Wanted | None = None
    if_match: str = ""

    @property
    def style(self) -> str:
        """By lines, by amount or in full, which has no style and fixes none (contract: capture answers)."""
        return "lines" if self.lines is not None else "amount" if self.amount is not None else ""


@dataclass(frozen=True)
class Void(Capture):
    """POST .../voids/amount/ or .../voids/orderlines/."""


@dataclass(frozen=True)
class MakeRefund:
    """POST /v1/orders/<order_id>/refunds/."""

    order: int
    amount: Any = None
    lines: Wanted | None = None
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
    expires_after: str = ""


@dataclass(frozen=True)
class Act:
    """A customer, a bank, a screening or a processor does something to an order."""

    order: int
    actor: str
    action: str
    method: str = ""
    amount: int | None = None
    card: str = ""
    refund: int | None = None


@dataclass(frozen=True)
class Scan:
    """A payer scans a QR code."""

    code: int
    amount: int | None = None


@dataclass(frozen=True)
class Advance:
    """The clock advances, and everything due on the way happens at its own time."""

    by: str


@dataclass(frozen=True)
class Answer:
    """From now on the shop answers webhooks, or fails to."""

    is_reachable: bool


Call = Create | Update | Cancel | Capture | Void | MakeRefund | CreateCode | Act | Scan | Advance | Answer
