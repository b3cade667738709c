"""Mistakes with orders: created twice, captured too late, or sent again without a look."""

import json
from collections import defaultdict
from collections.abc import Iterator
from typing import Final

from payment_sandbox.operations.review.evidence import Finding, Reviewed, as_object, line_of
from payment_sandbox.projects.journal import JournalEntry

CREATION: Final = "/v1/orders"
GIVEN_UP: Final = ("cancelled", "expired", "error")


def is_creation(entry: JournalEntry) -> bool:
    """Whether a request asked for an order."""
    return (entry.method, entry.path.rstrip("/")) == ("POST", CREATION)


def created_twice(reviewed: Reviewed) -> Iterator[Finding]:
    """One basket has two orders that can both be paid."""
    by_number: dict[str, list[JournalEntry]] = defaultdict(list)
    for entry in reviewed.requests:
        if is_creation(entry):
            number = as_object(entry.request).get("merchant_order_id")
            if isinstance(number, str):
                by_number[number].append(entry)
    for number, entries in by_number.items():
        alive = [entry for entry in entries if _is_alive(reviewed, entry)]
        if len(alive) > 1:
            yield Finding(
                "ORD-07",
                f"merchant_order_id {number!r} was created {len(alive)} times",
                "Keep the id of the order that you created, and cancel it before you create another.",
                alive[-1].order_id,
                tuple(map(line_of, alive)),
            )


def captured_late(reviewed: Reviewed) -> Iterator[Finding]:
    """A capture was sent after the authorization had expired."""
    for entry in reviewed.requests:
        if entry.rule == "CAP-04" and "/captures" in entry.path:
            yield Finding(
                "CAP-04",
                "a capture came after the authorization had expired",
                "Request an expiration_period that covers your shipping, and capture before it ends.",
                entry.order_id,
                (line_of(entry),),
            )


def retried_blindly(reviewed: Reviewed) -> Iterator[Finding]:
    """The response to a creation was lost, and it was sent again although the order existed."""
    if not any(map(_is_answer_lost, reviewed.requests)):
        return
    last_lost: dict[str, JournalEntry] = {}  # by what was asked
    for entry in filter(is_creation, reviewed.requests):
        asked = json.dumps(as_object(entry.request), sort_keys=True)
        first = last_lost.pop(asked, None) if _is_alive(reviewed, entry) else None
        if first is not None:
            yield Finding(
                "CTL-23",
                "a creation was sent again after its response was lost, and now there are two orders",
                "After a lost response, check first whether the order exists: its webhooks show it.",
                first.order_id,
                (line_of(first), line_of(entry)),
            )
        if _is_answer_lost(entry) and _is_alive(reviewed, entry):
            last_lost[asked] = entry


def _is_answer_lost(entry: JournalEntry) -> bool:
    return entry.fault is not None and entry.fault.loses_response


def _is_alive(reviewed: Reviewed, creation: JournalEntry) -> bool:
    """Whether it created an order that is not abandoned."""
    return creation.order_id is not None and reviewed.statuses.get(creation.order_id) not in GIVEN_UP


def ignored(reviewed: Reviewed) -> Iterator[Finding]:
    """Requests have keys that the service does not know, so it drops them."""
    entries_of: dict[tuple[str, str | None], list[JournalEntry]] = defaultdict(list)
    for entry in reviewed.requests:
        for unknown in entry.unknown:
            entries_of[unknown].append(entry)
    for (path, nearest), entries in entries_of.items():
        meant = f"; did you mean {nearest!r}?" if nearest is not None else ""
        yield Finding(
            "SET-12",
            f"the key {path!r} is not known, so it was ignored{meant}",
            f"Send {nearest!r} instead." if nearest is not None else "Leave it out, or put it into extra.",
            entries[0].order_id if len(entries) == 1 else None,
            tuple(map(line_of, entries)),
        )


def warned(reviewed: Reviewed) -> Iterator[Finding]:
    """Requests were accepted with a warning."""
    for entry in reviewed.requests:
        for warning in entry.warnings:
            yield Finding(
                "SET-31",
                f"a request was accepted with a warning: {warning}",
                "Send amounts that agree: other services of this family refuse what this one warns of.",
                entry.order_id,
                (line_of(entry),),
            )
