"""What a review looks at, and what it finds."""

import json
from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any, Final, NamedTuple

from payment_sandbox.kernel.descriptions import OneOf
from payment_sandbox.kernel.times import timestamp
from payment_sandbox.orders.webhooks import Delivery, WebhookAttempt
from payment_sandbox.projects.journal import JournalEntry, PerformedAction

LOOKED: Final = (200, 304)


MISTAKE: Final = "mistake"
HINT: Final = "hint"
KINDS: Final = (MISTAKE, HINT)


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
    page: Annotated[str, "Where the documentation shows wrong and right code; empty for hints."] = ""

    def __str__(self) -> str:
        lesson = f"\n  Risk: {self.risk}. See {self.page}" if self.risk else ""
        shown = "".join(f"\n    {request}" for request in self.requests)
        of = f" (order {self.order_id})" if self.order_id is not None else ""
        return f"{self.rule}: {self.problem}{of}\n  {self.advice}{lesson}{shown}"


class Reviewed(NamedTuple):
    """The history of a project: requests, returns to the shop, webhooks, order statuses, and its set-up."""

    requests: Sequence[JournalEntry]
    returns: Sequence[PerformedAction]
    webhooks: Sequence[Delivery]
    statuses: dict[str, str]
    untold: int = 0  # changes of statuses that no webhook told, because it had no address
    unmatched: Sequence[str] = ()  # the rules of the scenario that decided nothing
    scenario: str = ""
    lapsed: Sequence[str] = ()  # orders whose authorization expired with nothing captured


def line_of(entry: JournalEntry) -> str:
    """A request in one line."""
    return f"{timestamp(entry.at)}  {entry.method} {entry.path} -> {entry.status}"


def line_of_attempt(attempt: WebhookAttempt) -> str:
    """An attempt to deliver a webhook in one line."""
    return f"{timestamp(attempt.at)}  webhook {attempt.number}"


def began(entry: JournalEntry) -> datetime:
    """When a request came in, in real time."""
    return entry.real_at or entry.at


def as_object(body: bytes) -> dict[str, Any]:
    """A body as an object; empty if it is none, or truncated by the journal."""
    try:
        data = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return data if isinstance(data, dict) else {}


def status_told(entry: JournalEntry) -> str | None:
    """The order's status in a response; None if the journal truncated the response."""
    return as_object(entry.response).get("status")


def reads_of(reviewed: Reviewed, *, and_tries: bool = False) -> dict[str, list[JournalEntry]]:
    """The successful reads, by order; with ``and_tries`` also those that a fault of the sandbox prevented."""
    reads: dict[str, list[JournalEntry]] = defaultdict(list)
    for entry in reviewed.requests:
        is_read = entry.method == "GET" and entry.order_id and entry.path.rstrip("/").endswith(entry.order_id)
        if is_read and (entry.status in LOOKED or (and_tries and entry.fault is not None)):
            reads[entry.order_id or ""].append(entry)
    return reads


def counted(number: int, one: str, many: str) -> str:
    """A number of things in words."""
    return one if number == 1 else f"{number} {many}"
