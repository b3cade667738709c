"""Checks on payments: unused authorizations, declined series, and refused calls."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, Final

from payment_sandbox.operations.review.evidence import (
    HINT,
    Finding,
    ReviewedHistory,
    count_in_words,
    format_request,
    parse_object,
)
from payment_sandbox.operations.review.lessons import page_of_rule
from payment_sandbox.orders.cards import RECURRING
from payment_sandbox.orders.commands import ExpireAuthorization
from payment_sandbox.orders.order import Order
from payment_sandbox.orders.statuses import OrderStatus
from payment_sandbox.projects.epoch import Epoch
from payment_sandbox.projects.journal import AgendaEvent, LoggedRequest

CREATED_STATUS: Final = 201
REFUSAL_STATUSES: Final = (400, 404, 405, 409, 412, 413, 415)
CONFLICT_STATUSES: Final = (409, 412)
READ_ORDER_FIRST: Final = (
    "Read the order before you act; error.allowed and Sandbox-Explain list the possible calls."
)
CORRECT_REQUEST: Final = "Correct the request: its response lists all violations."
LATE_CAPTURE_RULE: Final = "CAP-04"  # reported by ``captured_late``


def lapsed_authorizations(epoch: Epoch, orders: Mapping[str, Order]) -> tuple[str, ...]:
    """Return the orders with an expired authorization and no captures."""
    events = epoch.journal.of(AgendaEvent)
    expired = [item.order_id for item in events if item.kind == ExpireAuthorization.kind]
    return tuple(
        order_id
        for order_id in expired
        if order_id in orders and orders[order_id].status == OrderStatus.EXPIRED
    )


def find_lapsed_authorizations(history: ReviewedHistory) -> Iterator[Finding]:
    """Find expired authorizations without captures."""
    late = {entry.order_id for entry in history.requests if entry.rule == LATE_CAPTURE_RULE}
    for order_id in history.lapsed:
        if order_id not in late:
            yield Finding(
                "CAP-03",
                "The authorization expired: the customer agreed to pay, and your shop captured nothing",
                "Capture when you ship; void the rest, so that the customer can use the money.",
                order_id,
                (),
                amount=history.amount(order_id),
            )


def find_charges_after_decline(history: ReviewedHistory) -> Iterator[Finding]:
    """Find charges in a recurring series after a failed payment."""
    declined: dict[str, LoggedRequest] = {}  # by vault token
    for entry in history.requests:
        token = recurring_token(entry)
        if token is None:
            continue
        if token in declined:
            yield Finding(
                "FLOW-09",
                "Your shop charged a recurring series again after one of its payments had failed",
                "Stop the series when a payment fails, and ask the customer for another card.",
                entry.order_id,
                (format_request(declined[token]), format_request(entry)),
                amount=history.amount(entry.order_id),
                shown_by=(declined[token].id, entry.id),
            )
        if history.status(entry.order_id) == OrderStatus.ERROR:
            declined[token] = entry


def series_of(own: Iterable[LoggedRequest], requests: Iterable[LoggedRequest]) -> set[str]:
    """Return the ids of requests that charge the same recurring series as an order's requests."""
    tokens = set(map(recurring_token, own)) - {None}
    return {entry.id for entry in requests if recurring_token(entry) in tokens} if tokens else set()


def recurring_token(entry: LoggedRequest) -> str | None:
    """Return the vault token of a creation that charges a recurring series; None for other requests."""
    if entry.method != "POST" or entry.status != CREATED_STATUS or b"recurring" not in entry.request:
        return None
    transactions = parse_object(entry.request).get("transactions") or [{}]
    attempt: Any = transactions[0] if isinstance(transactions, list) else {}
    details = attempt.get("payment_method_details") if isinstance(attempt, dict) else None
    if not isinstance(details, dict) or details.get("recurring_type") != RECURRING:
        return None
    token = details.get("vault_token")
    return token if isinstance(token, str) else None


def _is_refused(entry: LoggedRequest) -> bool:
    """Whether the service, not a fault, refused the call."""
    return entry.status in REFUSAL_STATUSES and not entry.fault and entry.rule != LATE_CAPTURE_RULE


def _other_refusals(history: ReviewedHistory, mistakes: Iterable[Finding]) -> list[LoggedRequest]:
    """Return the refused requests that no mistake explains."""
    explained = set(chain.from_iterable(mistake.shown_by for mistake in mistakes))
    return [entry for entry in filter(_is_refused, history.requests) if entry.id not in explained]


def _count_calls(entries: Sequence[LoggedRequest]) -> str:
    """Count refused calls in words that lead to the error of the first."""
    calls = count_in_words(len(entries), "a call", "calls")
    return f"{calls}, the first with" if len({entry.error() for entry in entries}) > 1 else f"{calls}:"


def find_refused_calls(history: ReviewedHistory, mistakes: Iterable[Finding]) -> Iterator[Finding]:
    """Add a hint for each kind of refused call that no mistake explains; a test may intend a refusal."""
    groups: dict[tuple[int, str, str | None], list[LoggedRequest]] = defaultdict(list)
    for entry in _other_refusals(history, mistakes):
        groups[entry.status or 0, (entry.error() or "").partition(":")[0], entry.rule].append(entry)
    for (status, kind, _), entries in groups.items():
        first = entries[0]
        yield Finding(
            first.rule or "SET-03",
            f"The service refused {_count_calls(entries)} {status} {first.error() or kind}",
            READ_ORDER_FIRST if status in CONFLICT_STATUSES else CORRECT_REQUEST,
            first.order_id if len(entries) == 1 else None,
            tuple(map(format_request, entries)),
            HINT,
            page=page_of_rule(first.rule),
            shown_by=tuple(entry.id for entry in entries),
        )
