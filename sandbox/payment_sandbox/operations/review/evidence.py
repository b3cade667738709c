"""What a review looks at, and what it finds."""

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Annotated, Any, Final, NamedTuple

from payment_sandbox.kernel.descriptions import OneOf
from payment_sandbox.kernel.times import timestamp
from payment_sandbox.orders.order import Order
from payment_sandbox.orders.webhooks import Delivery, WebhookAttempt
from payment_sandbox.projects.journal import JournalEntry, PerformedAction, StatusReached

LOOKED: Final = (200, 304)


MISTAKE: Final = "mistake"
HINT: Final = "hint"
KINDS: Final = (MISTAKE, HINT)
ORDERS: Final = "orders"
NUMBERS: Final = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")


class Finding(NamedTuple):
    """A mistake of an integration.

    A hint is about the test rather than the integration.
    """

    rule: Annotated[str, "The rule behind it."]
    problem: Annotated[str, "What happened."]
    advice: Annotated[str, "What to do."]
    order_id: str | None
    requests: tuple[Annotated[str, "A request or webhook that shows it."], ...]
    kind: Annotated[str, OneOf(lambda: KINDS), "A mistake of the integration, or a hint about its test."] = (
        MISTAKE
    )
    risk: Annotated[str, "What the mistake costs in money or goods; empty for hints."] = ""
    page: Annotated[str, "Where the documentation explains it; for a mistake with wrong and right code."] = ""
    amount: Annotated[int, "Cents at risk in this history; 0 if none or unknown."] = 0
    healed: Annotated[str, "How it was put right later, such as by a retry; empty if it was not."] = ""
    shown_by: tuple[Annotated[str, "The id of a record in the timeline that shows it."], ...] = ()

    @classmethod
    def read(cls, item: Mapping[str, Any]) -> "Finding":
        """A finding from its JSON."""
        lists = {name: tuple(item[name]) for name in ("requests", "shown_by")}
        return cls(**{**item, **lists})

    @property
    def is_open(self) -> bool:
        """Whether it is a mistake that nothing has put right."""
        return self.kind == MISTAKE and not self.healed

    def __str__(self) -> str:
        lesson = f"\n  Risk: {self.risk}. See {self.page}" if self.risk else ""
        healed = f"\n  Put right: {self.healed}" if self.healed else ""
        shown = "".join(f"\n    {request}" for request in self.requests)
        of = f" (order {self.order_id})" if self.order_id is not None else ""
        return f"{self.rule}: {self.problem}{of}\n  {self.advice}{lesson}{healed}{shown}"


@dataclass(frozen=True)
class Reviewed:
    """The history of a project: requests, returns to the shop, webhooks, statuses, orders, and its set-up."""

    requests: Sequence[JournalEntry]
    returns: Sequence[PerformedAction]
    webhooks: Sequence[Delivery]
    orders: Mapping[str, Order]
    reached: Sequence[StatusReached]
    now: datetime  # sandbox time
    tells_early: bool = False  # webhooks come before responses, as a setting says
    unreported: int = 0  # changes of statuses that no webhook told, because it had no address
    unmatched: Sequence[str] = ()  # the rules of the scenario that decided nothing
    scenario: str = ""
    lapsed: Sequence[str] = ()  # orders whose authorization expired with nothing captured

    @cached_property
    def reads(self) -> "Entries":
        """The successful reads, by order."""
        return _by_order(entry for entry in self._asked if entry.status in LOOKED)

    @cached_property
    def tries(self) -> "Entries":
        """The successful reads, and those that a fault of the sandbox prevented, by order."""
        return _by_order(entry for entry in self._asked if entry.status in LOOKED or entry.fault is not None)

    @cached_property
    def _asked(self) -> list[JournalEntry]:
        return list(filter(is_read, self.requests))

    @cached_property
    def statuses(self) -> Mapping[str, str | None]:
        """The order's status in each response, by the id of the request; None if there is none."""
        return {entry.id: as_object(entry.response).get("status") for entry in self.requests}

    def status(self, order_id: str | None) -> str | None:
        """The status of an order; None if it is unknown."""
        order = self.orders.get(order_id or "")
        return None if order is None else order.status

    def amount(self, order_id: str | None) -> int:
        """The cents that an order is about; 0 if it is unknown."""
        order = self.orders.get(order_id or "")
        return 0 if order is None else order.amount_cents


def line_of(entry: JournalEntry) -> str:
    """A request in one line."""
    return f"{timestamp(entry.at)}  {entry.method} {entry.path} -> {entry.status}"


def line_of_attempt(attempt: WebhookAttempt) -> str:
    """An attempt to deliver a webhook in one line."""
    return f"{timestamp(attempt.at)}  webhook {attempt.number}"


def began(entry: JournalEntry) -> datetime:
    """When a request came in, in real time."""
    return entry.real_at or entry.at


def ended(entry: JournalEntry) -> datetime:
    """When a request was answered, in real time."""
    return entry.answered_at or began(entry)


def is_own(attempt: WebhookAttempt) -> bool:
    """Whether the merchant answered, and not a fault on their behalf."""
    return not attempt.is_withheld


def is_answer_lost(entry: JournalEntry) -> bool:
    """Whether a fault kept the response from the shop, although the request was carried out."""
    return entry.fault is not None and entry.fault.loses_response


def as_object(body: bytes) -> dict[str, Any]:
    """A body as an object; empty if it is none, or truncated by the journal."""
    try:
        data = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return data if isinstance(data, dict) else {}


def order_in(entry: JournalEntry) -> str | None:
    """The id of the order that a request's path names; None for a creation and for other collections."""
    _, collection, *place = [*entry.path.strip("/").split("/"), "", ""]
    return place[0] or None if collection == ORDERS else None


def is_read(entry: JournalEntry) -> bool:
    """Whether a request asked for an order that exists."""
    return bool(entry.method == "GET" and entry.order_id and entry.path.rstrip("/").endswith(entry.order_id))


Entries = defaultdict[str, list[JournalEntry]]
"""Requests by the order that they are about; none of an order without any."""


def _by_order(entries: Iterable[JournalEntry]) -> Entries:
    of_orders: Entries = defaultdict(list)
    for entry in entries:
        of_orders[entry.order_id or ""].append(entry)
    return of_orders


def whole_number(value: object) -> int | None:
    """A value of a body if it is a whole number."""
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def counted(number: int, one: str, many: str) -> str:
    """A number of things in words."""
    return one if number == 1 else f"{number} {many}"


def times(number: int) -> str:
    """How often something happened."""
    return {1: "once", 2: "twice"}.get(number, f"{in_words(number)} times")


def in_words(number: int) -> str:
    """A small number as a word."""
    return NUMBERS[number] if number < len(NUMBERS) else str(number)
