"""Checks on requests: duplicate orders, late captures, blind retries, and ignored keys."""

import json
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Final

from payment_sandbox.operations.review.evidence import (
    HINT,
    MISTAKE,
    Finding,
    ReviewedHistory,
    advise_on_loss,
    format_request,
    is_answer_lost,
    number_in_words,
    order_in,
    parse_object,
    start_of,
    whole_number,
)
from payment_sandbox.operations.review.lessons import CALL_VERBS
from payment_sandbox.orders.amounts import euros
from payment_sandbox.orders.refunds import REFUND_WITHOUT_AMOUNT
from payment_sandbox.orders.statuses import OrderStatus
from payment_sandbox.projects.journal import LoggedRequest

CREATION_PATH: Final = "/v1/orders"
UNPAYABLE_STATUSES: Final = ("cancelled", "expired", "error")
"""The statuses of orders that can no longer be paid."""
WHOLE_CALL: Final = re.compile(r"/(captures|voids)/?$")
PARTIAL_CALL: Final = re.compile(r"/(captures|voids)/(amount|orderlines)/?$")
PARTIAL_CALL_KEYS: Final = {"amount": "amount", "order_lines": "orderlines"}
"""The path segment of partial captures and voids, by the key of the amount or the lines."""
FREE_FIELD: Final = "extra"
CHECK_FIRST: Final = "After a lost response, first check whether the order exists: its webhooks show it."


def is_creation(entry: LoggedRequest) -> bool:
    """Whether the shop creates an order by a request, which its HTTP client has not sent again."""
    return entry.resent_of is None and is_creation_request(entry)


def is_creation_request(entry: LoggedRequest) -> bool:
    """Whether a request creates an order."""
    return (entry.method, entry.path.rstrip("/")) == ("POST", CREATION_PATH)


def find_duplicate_orders(history: ReviewedHistory) -> Iterator[Finding]:
    """Find baskets with two orders, the first of which was still payable when the second was created."""
    by_number: dict[str, list[LoggedRequest]] = defaultdict(list)
    repeated = {finding.shown_by[-1] for finding in find_blind_retries(history)}  # told there
    for entry in history.requests:
        is_counted = is_creation(entry) and entry.id not in repeated
        number = parse_object(entry.request).get("merchant_order_id") if is_counted else None
        if isinstance(number, str) and entry.order_id is not None:
            by_number[number].append(entry)
    for number, entries in by_number.items():
        payable = [
            entry
            for index, entry in enumerate(entries)
            if _was_payable(history, entry, entries[index + 1 : index + 2])
        ]
        if payable and len(entries) > 1:
            yield _report_duplicate_orders(history, number, [*payable, entries[-1]])


def _report_duplicate_orders(
    history: ReviewedHistory, number: str, entries: Sequence[LoggedRequest]
) -> Finding:
    ids = {entry.order_id for entry in entries}
    cancelled = {
        entry.order_id for entry in history.requests if entry.method == "DELETE" and entry.status == 200
    }
    return Finding(
        "ORD-07",
        f"{number_in_words(len(ids)).capitalize()} orders have the number {number!r}, "
        "and a customer could pay more than one",
        "Store the id of each new order, and cancel the order before you create another one.",
        entries[-1].order_id,
        tuple(map(format_request, entries)),
        amount=_surplus_amount(history, entries),
        healed="your shop has cancelled the other orders" if len(ids - cancelled) == 1 else "",
        shown_by=tuple(entry.id for entry in entries),
    )


def _surplus_amount(history: ReviewedHistory, entries: Sequence[LoggedRequest]) -> int:
    """Return the amount of all orders of a basket except the first."""
    return sum(history.amount(each.order_id) for each in entries[1:])


def _was_payable(
    history: ReviewedHistory, creation: LoggedRequest, following: Sequence[LoggedRequest]
) -> bool:
    """Whether an order could still be paid, or was paid, when the next order was created."""
    if not following:
        return False
    at = start_of(following[0])
    return _status_at(history, creation.order_id, at) not in UNPAYABLE_STATUSES


def _status_at(history: ReviewedHistory, order_id: str | None, at: datetime) -> str | None:
    """Return the status of an order at a real time, or its current status if the journal is too short."""
    own_statuses = [
        each for each in history.reached if each.order_id == order_id and each.payment_method is None
    ]
    if not own_statuses or own_statuses[0].status != OrderStatus.NEW:
        return history.status(order_id)
    return next(
        (each.status for each in reversed(own_statuses) if each.real_at <= at), own_statuses[0].status
    )


def find_late_captures(history: ReviewedHistory) -> Iterator[Finding]:
    """Find captures after the expiry of the authorization."""
    for entry in history.requests:
        if entry.rule == "CAP-04" and "/captures" in entry.path:
            yield Finding(
                "CAP-04",
                "Your shop captured after the authorization had expired",
                "Request an expiration_period that covers your shipping time, and capture before it ends.",
                entry.order_id,
                (format_request(entry),),
                amount=history.amount(entry.order_id),
                shown_by=(entry.id,),
            )


def find_blind_retries(history: ReviewedHistory) -> Iterator[Finding]:
    """Find create calls retried after a lost response although the order existed."""
    if not any(map(is_answer_lost, history.requests)):
        return
    last_lost: dict[str, LoggedRequest] = {}  # by request body
    for entry in filter(is_creation, history.requests):
        body = json.dumps(parse_object(entry.request), sort_keys=True)
        first = last_lost.pop(body, None) if entry.order_id is not None else None
        if first is not None and _was_payable(history, first, [entry]):
            yield Finding(
                "CTL-23",
                "Your shop created the order again after its response was lost, and now there are two orders",
                advise_on_loss(
                    first,
                    "After a lost response, first check whether the order exists: its webhooks show it.",
                ),
                first.order_id,
                (format_request(first), format_request(entry)),
                amount=_surplus_amount(history, [first, entry]),
                shown_by=(first.id, entry.id),
            )
        if is_answer_lost(entry) and entry.order_id is not None:
            last_lost[body] = entry


def find_ignored_keys(history: ReviewedHistory) -> Iterator[Finding]:
    """Find unknown keys in requests, which the service ignores."""
    entries_by_key: dict[tuple[str, str | None, str], list[LoggedRequest]] = defaultdict(list)
    for entry in history.requests:
        for name, nearest in entry.unknown:
            entries_by_key[name, nearest, _call_for_key(entry, name)].append(entry)
    for (name, nearest, other), entries in entries_by_key.items():
        if other:
            yield from (_report_ignored_part(history, entry, name, other) for entry in entries)
        else:
            yield _report_ignored_key(name, nearest, entries)


def _report_ignored_key(name: str, nearest: str | None, entries: Sequence[LoggedRequest]) -> Finding:
    subject = f"query parameter {name[1:]!r}" if name.startswith("?") else f"key {name!r}"
    meant = f"; did you mean {nearest!r}?" if nearest is not None else ""
    return Finding(
        "SET-12",
        f"The service does not know the {subject} and ignored it{meant}",
        f"Send {nearest!r} instead." if nearest is not None else _advice_on_key(name, entries),
        entries[0].order_id if len(entries) == 1 else None,
        tuple(map(format_request, entries)),
        shown_by=tuple(entry.id for entry in entries),
    )


def _advice_on_key(name: str, entries: Sequence[LoggedRequest]) -> str:
    """Return the advice about an unknown key; only orders have a field for the shop's own values."""
    has_place = not name.startswith("?") and all(map(is_creation, entries))
    return f"Leave it out, or put it into {FREE_FIELD}." if has_place else "Leave it out."


def _call_for_key(entry: LoggedRequest, name: str) -> str:
    """Return the partial capture or void that accepts the key; empty if no call accepts it."""
    if name not in PARTIAL_CALL_KEYS:
        return ""
    matched = WHOLE_CALL.search(entry.path) or PARTIAL_CALL.search(entry.path)
    return f"{matched[1]}/{PARTIAL_CALL_KEYS[name]}/" if matched is not None else ""


def _report_ignored_part(history: ReviewedHistory, entry: LoggedRequest, name: str, other: str) -> Finding:
    """Report a capture or void of everything although the request named a part."""
    amount = whole_number(parse_object(entry.request).get("amount")) if name == "amount" else None
    verb, past = CALL_VERBS[other.partition("/")[0]]
    meant = euros(amount) if amount is not None else f"a part of its {name}"
    is_whole = WHOLE_CALL.search(entry.path) is not None
    did = f"and {past} everything" if is_whole else "but the key was ignored"
    surplus = history.amount(order_in(entry)) - amount if amount is not None and is_whole else 0
    return Finding(
        "SET-12",
        f"Your shop asked to {verb} {meant} {did}: this call takes no {name!r}",
        f"Send {name!r} to {other}.",
        order_in(entry),
        (format_request(entry),),
        amount=max(0, surplus),
        risk="the customer pays for goods that do not ship" if verb == "capture" else "goods ship unpaid",
        shown_by=(entry.id,),
    )


def find_warnings(history: ReviewedHistory) -> Iterator[Finding]:
    """Find requests accepted with a warning; what the specification allows is a hint."""
    for entry in history.requests:
        for warning in entry.warnings:
            yield Finding(
                "SET-31",
                f"The service accepted a request with a warning: {warning}",
                "Send what the warning asks for: other services of this family may refuse such requests.",
                entry.order_id,
                (format_request(entry),),
                kind=HINT if warning == REFUND_WITHOUT_AMOUNT else MISTAKE,
                shown_by=(entry.id,),
            )
