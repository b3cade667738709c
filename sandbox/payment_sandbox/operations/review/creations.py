"""Mistakes with requests: duplicate orders, late captures, blind retries, and ignored keys."""

import json
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Final

from payment_sandbox.operations.review.evidence import (
    Finding,
    Reviewed,
    as_object,
    began,
    in_words,
    is_answer_lost,
    line_of,
    order_in,
    whole_number,
)
from payment_sandbox.operations.review.lessons import WORDS
from payment_sandbox.orders.amounts import euros
from payment_sandbox.orders.statuses import OrderStatus
from payment_sandbox.projects.journal import JournalEntry

CREATION: Final = "/v1/orders"
OVER: Final = ("cancelled", "expired", "error")
"""The statuses of orders that can no longer be paid."""
WHOLE: Final = re.compile(r"/(captures|voids)/?$")
PART: Final = re.compile(r"/(captures|voids)/(amount|orderlines)/?$")
PARTS: Final = {"amount": "amount", "order_lines": "orderlines"}
"""The path of a partial capture or void, by the key with the amount or the lines."""
FREE: Final = "extra"


def is_creation(entry: JournalEntry) -> bool:
    """Whether a request creates an order."""
    return (entry.method, entry.path.rstrip("/")) == ("POST", CREATION)


def created_twice(reviewed: Reviewed) -> Iterator[Finding]:
    """Find baskets with two orders, the first of which could still be paid when the second was created."""
    by_number: dict[str, list[JournalEntry]] = defaultdict(list)
    for entry in reviewed.requests:
        number = as_object(entry.request).get("merchant_order_id") if is_creation(entry) else None
        if isinstance(number, str) and entry.order_id is not None:
            by_number[number].append(entry)
    for number, entries in by_number.items():
        payable = [
            entry
            for place, entry in enumerate(entries)
            if _was_payable(reviewed, entry, entries[place + 1 : place + 2])
        ]
        if payable and len(entries) > 1:
            yield _twice(reviewed, number, [*payable, entries[-1]])


def _twice(reviewed: Reviewed, number: str, entries: Sequence[JournalEntry]) -> Finding:
    ids = {entry.order_id for entry in entries}
    cancelled = {
        entry.order_id for entry in reviewed.requests if entry.method == "DELETE" and entry.status == 200
    }
    return Finding(
        "ORD-07",
        f"There are {in_words(len(ids))} orders with the number {number!r}, and a customer could pay both",
        "Keep the id of the order that you created, and cancel it before you create another one.",
        entries[-1].order_id,
        tuple(map(line_of, entries)),
        amount=_paid_too_often(reviewed, entries),
        healed="your shop has cancelled the other orders" if len(ids - cancelled) == 1 else "",
        shown_by=tuple(entry.id for entry in entries),
    )


def _paid_too_often(reviewed: Reviewed, entries: Sequence[JournalEntry]) -> int:
    """Return the amount of all orders of a basket except the first."""
    return sum(reviewed.amount(each.order_id) for each in entries[1:])


def _was_payable(reviewed: Reviewed, creation: JournalEntry, following: Sequence[JournalEntry]) -> bool:
    """Whether an order could still be paid, or was paid, when the next order was created."""
    if not following:
        return False
    at = began(following[0])
    return _status_at(reviewed, creation.order_id, at) not in OVER


def _status_at(reviewed: Reviewed, order_id: str | None, at: datetime) -> str | None:
    """Return the status of an order at a real time; the current status if the journal does not reach back."""
    own = [each for each in reviewed.reached if each.order_id == order_id and each.payment_method is None]
    if not own or own[0].status != OrderStatus.NEW:
        return reviewed.status(order_id)
    return next((each.status for each in reversed(own) if each.real_at <= at), own[0].status)


def captured_late(reviewed: Reviewed) -> Iterator[Finding]:
    """Find captures after the expiry of the authorization."""
    for entry in reviewed.requests:
        if entry.rule == "CAP-04" and "/captures" in entry.path:
            yield Finding(
                "CAP-04",
                "Your shop captured after the authorization had expired",
                "Request an expiration_period that covers your shipping, and capture before it ends.",
                entry.order_id,
                (line_of(entry),),
                amount=reviewed.amount(entry.order_id),
                shown_by=(entry.id,),
            )


def retried_blindly(reviewed: Reviewed) -> Iterator[Finding]:
    """Find creations that were retried after a lost response, although the order existed."""
    if not any(map(is_answer_lost, reviewed.requests)):
        return
    last_lost: dict[str, JournalEntry] = {}  # by request body
    for entry in filter(is_creation, reviewed.requests):
        body = json.dumps(as_object(entry.request), sort_keys=True)
        first = last_lost.pop(body, None) if entry.order_id is not None else None
        if first is not None and _was_payable(reviewed, first, [entry]):
            yield Finding(
                "CTL-23",
                "Your shop created the order again after its response was lost, and now there are two orders",
                "After a lost response, check first whether the order exists: its webhooks show it.",
                first.order_id,
                (line_of(first), line_of(entry)),
                amount=_paid_too_often(reviewed, [first, entry]),
                shown_by=(first.id, entry.id),
            )
        if is_answer_lost(entry) and entry.order_id is not None:
            last_lost[body] = entry


def ignored(reviewed: Reviewed) -> Iterator[Finding]:
    """Find keys of requests that the service does not know and ignores."""
    entries_of: dict[tuple[str, str | None, str], list[JournalEntry]] = defaultdict(list)
    for entry in reviewed.requests:
        for name, nearest in entry.unknown:
            entries_of[name, nearest, _other_call(entry, name)].append(entry)
    for (name, nearest, other), entries in entries_of.items():
        if other:
            yield from (_ignored_part(reviewed, entry, name, other) for entry in entries)
        else:
            yield _ignored(name, nearest, entries)


def _ignored(name: str, nearest: str | None, entries: Sequence[JournalEntry]) -> Finding:
    what = f"query parameter {name[1:]!r}" if name.startswith("?") else f"key {name!r}"
    meant = f"; did you mean {nearest!r}?" if nearest is not None else ""
    return Finding(
        "SET-12",
        f"The service does not know the {what} and ignored it{meant}",
        f"Send {nearest!r} instead." if nearest is not None else _without(name, entries),
        entries[0].order_id if len(entries) == 1 else None,
        tuple(map(line_of, entries)),
        shown_by=tuple(entry.id for entry in entries),
    )


def _without(name: str, entries: Sequence[JournalEntry]) -> str:
    """Return the advice about an unknown key; only orders can store the shop's own values."""
    has_place = not name.startswith("?") and all(map(is_creation, entries))
    return f"Leave it out, or put it into {FREE}." if has_place else "Leave it out."


def _other_call(entry: JournalEntry, name: str) -> str:
    """Return the call for this key of a capture or void; empty if no call has the key."""
    if name not in PARTS:
        return ""
    matched = WHOLE.search(entry.path) or PART.search(entry.path)
    return f"{matched[1]}/{PARTS[name]}/" if matched is not None else ""


def _ignored_part(reviewed: Reviewed, entry: JournalEntry, name: str, other: str) -> Finding:
    """Report a call that took everything although the request named a part."""
    amount = whole_number(as_object(entry.request).get("amount")) if name == "amount" else None
    verb, past = WORDS[other.partition("/")[0]]
    meant = euros(amount) if amount is not None else f"a part of its {name}"
    is_whole = WHOLE.search(entry.path) is not None
    did = f"and {past} everything" if is_whole else "and this call ignored that"
    surplus = reviewed.amount(order_in(entry)) - amount if amount is not None and is_whole else 0
    return Finding(
        "SET-12",
        f"Your shop asked to {verb} {meant} {did}: this call has no {name!r}",
        f"Send {name!r} to {other}.",
        order_in(entry),
        (line_of(entry),),
        amount=max(0, surplus),
        risk="the customer pays for goods that do not ship" if verb == "capture" else "goods ship unpaid",
        shown_by=(entry.id,),
    )


def warned(reviewed: Reviewed) -> Iterator[Finding]:
    """Find requests that were accepted with a warning."""
    for entry in reviewed.requests:
        for warning in entry.warnings:
            yield Finding(
                "SET-31",
                f"The service accepted a request with a warning: {warning}",
                "Send amounts that agree: other services of this family refuse such requests.",
                entry.order_id,
                (line_of(entry),),
                shown_by=(entry.id,),
            )
