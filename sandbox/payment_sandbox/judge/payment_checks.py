"""Checks on payments: unused authorizations, declined series, and refused calls."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple

from payment_sandbox.judge.evidence import (
    CHARGES_VERB,
    HINT,
    Finding,
    MoneyCall,
    ReviewedHistory,
    format_request,
    money_calls,
    parse_object,
)
from payment_sandbox.judge.lessons import ERRORS_PAGE, RULES_PAGE
from payment_sandbox.orders.cards import RECURRING
from payment_sandbox.orders.commands import ExpireAuthorization
from payment_sandbox.orders.statuses import OrderStatus
from payment_sandbox.projects.journal import AgendaEvent, LoggedRequest

CREATED_STATUS: Final = 201
REFUSAL_STATUSES: Final = (400, 404, 405, 409, 412, 413, 415)
CONFLICT_STATUSES: Final = (409, 412)
READ_ORDER_FIRST: Final = (
    "Read the order before you act; error.allowed and Sandbox-Explain list the possible calls."
)
CORRECT_REQUEST: Final = "Correct the request: its response lists all violations."
LATE_CAPTURE_RULE: Final = "CAP-04"  # reported by ``find_late_captures``


def find_lapsed_authorizations(history: ReviewedHistory) -> Iterator[Finding]:
    """Find expired authorizations without captures."""
    late = {entry.order_id for entry in history.requests if entry.rule == LATE_CAPTURE_RULE}
    expired = [each.order_id for each in history.of(AgendaEvent) if each.kind == ExpireAuthorization.kind]
    for order in filter(None, map(history.orders.get, expired)):
        if order.status == OrderStatus.EXPIRED and order.id not in late:
            yield Finding(
                "CAP-03",
                "The authorization expired: the customer agreed to pay, and your shop captured nothing",
                "Capture when you ship; void the rest, so that the customer can use the money.",
                order.id,
                (),
                amount=order.amount_cents,
            )


class Charge(NamedTuple):
    """A charge to a stored card, the token of its recurring series, and whether the payment failed."""

    call: MoneyCall
    token: str | None
    is_declined: bool
    amount: int


def charges_in(history: ReviewedHistory) -> Iterator[Charge]:
    """Yield the charges to stored cards."""
    for call in money_calls(history.requests):
        if call.verb == CHARGES_VERB:
            order = history.orders.get(call.entry.order_id or "")
            is_declined = order is not None and order.status == OrderStatus.ERROR
            amount = history.amount(call.entry.order_id)
            yield Charge(call, _recurring_token(call.entry), is_declined, amount)


def find_charges_after_decline(charges: Iterable[Charge]) -> Iterator[Finding]:
    """Find charges in a recurring series after a failed payment."""
    declined: dict[str, LoggedRequest] = {}  # by vault token
    for charge in charges:
        entry, token = charge.call.entry, charge.token
        if token is None:
            continue
        if token in declined:
            yield Finding(
                "FLOW-09",
                "Your shop charged a recurring series again after one of its payments had failed",
                "Stop the series when a payment fails, and ask the customer for another card.",
                entry.order_id,
                (format_request(declined[token]), format_request(entry)),
                amount=charge.amount,
                shown_by=(declined[token].id, entry.id),
            )
        if charge.is_declined:
            declined[token] = entry


def _recurring_token(entry: LoggedRequest) -> str | None:
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


class Refusal(NamedTuple):
    """A refused call that no mistake explains, and its error."""

    entry: LoggedRequest
    error: str | None

    @property
    def kind(self) -> tuple[int, str, str | None]:
        """The status, the type of the error and the rule."""
        return self.entry.status or 0, (self.error or "").partition(":")[0], self.entry.rule


def refusals_in(history: ReviewedHistory) -> Iterator[Refusal]:
    """Yield the calls that the service refused, rather than a fault."""
    for entry in history.requests:
        if entry.status in REFUSAL_STATUSES and not entry.fault and entry.rule != LATE_CAPTURE_RULE:
            yield Refusal(entry, entry.error())


def find_refused_calls(refusals: Iterable[Refusal]) -> Iterator[Finding]:
    """Add a hint for each kind of refused call; a test may intend a refusal."""
    groups: dict[tuple[int, str, str | None], list[Refusal]] = defaultdict(list)
    for refusal in refusals:
        groups[refusal.kind].append(refusal)
    for (status, kind, rule), alike in groups.items():
        first, calls = alike[0], "a call" if len(alike) == 1 else f"{len(alike)} calls"
        lead = ", the first with" if len({each.error for each in alike}) > 1 else ":"
        yield Finding(
            rule or "SET-03",
            f"The service refused {calls}{lead} {status} {first.error or kind}",
            READ_ORDER_FIRST if status in CONFLICT_STATUSES else CORRECT_REQUEST,
            first.entry.order_id if len(alike) == 1 else None,
            tuple(format_request(each.entry) for each in alike),
            HINT,
            page=f"{RULES_PAGE}#{rule.lower()}" if rule is not None else ERRORS_PAGE,
            shown_by=tuple(each.entry.id for each in alike),
        )
