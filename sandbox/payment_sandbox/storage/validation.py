"""Whether a snapshot's books are right: types can be, and what they say still not hold together."""

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from payment_sandbox.kernel.periods import Period, PeriodError
from payment_sandbox.methods import NAMES
from payment_sandbox.orders.amounts import CURRENCY
from payment_sandbox.orders.order import Order
from payment_sandbox.orders.refusals import Invalid, Violation
from payment_sandbox.orders.statuses import ORDER_TRANSITIONS, TRANSACTION_TRANSITIONS
from payment_sandbox.orders.transaction import Transaction
from payment_sandbox.projects.clock import FROZEN, RATE_MAX, RUNNING

if TYPE_CHECKING:
    from payment_sandbox.storage.snapshot import Snapshot


def refuse_inconsistent(snapshot: "Snapshot", rules: int) -> None:
    """Refuse a snapshot that no project could have given; ``rules`` are those of its scenario.

    Raises:
        Invalid: lists all that does not hold together.
    """
    found = [*_clock(snapshot), *_agenda(snapshot), *_counters(snapshot, rules), *_identities(snapshot)]
    known = {order.id for order in snapshot.orders}
    for index, order in enumerate(snapshot.orders):
        found += [
            Violation(f"state.orders[{index}].{part}", problem) for part, problem in _order(order, known)
        ]
    for index, delivery in enumerate(snapshot.deliveries):
        if delivery.order_id not in known:
            found.append(Violation(f"state.deliveries[{index}].order_id", "is of no order here"))
        if urlsplit(delivery.url).scheme not in ("http", "https"):
            found.append(Violation(f"state.deliveries[{index}].url", "is no http or https address"))
    if found:
        raise Invalid(found)


def _clock(snapshot: "Snapshot") -> Iterator[Violation]:
    if snapshot.clock_mode not in (RUNNING, FROZEN) or not 0 < snapshot.clock_rate <= RATE_MAX:
        yield Violation("state.clock_mode", "is no clock's mode and rate", [RUNNING, FROZEN])


def _agenda(snapshot: "Snapshot") -> Iterator[Violation]:
    known = {order.id for order in snapshot.orders}
    seen: set[int] = set()
    for index, entry in enumerate(snapshot.agenda):
        path = f"state.agenda[{index}]"
        if entry.sequence in seen or not 0 < entry.sequence <= snapshot.sequence:
            yield Violation(f"{path}.sequence", "is taken twice, or beyond state.sequence")
        seen.add(entry.sequence)
        if entry.command.order_id not in known:
            yield Violation(f"{path}.command.order_id", "is of no order here")


def _counters(snapshot: "Snapshot", rules: int) -> Iterator[Violation]:
    if any(not 0 <= index < rules or used < 0 for index, used in snapshot.rule_uses):
        yield Violation("state.rule_uses", "names a rule that the scenario does not have")
    if min(snapshot.epoch, snapshot.id_series, snapshot.deliveries_dropped) < 0:
        yield Violation("state.epoch", "must not be negative")
    attempts = [attempt for order in snapshot.orders for attempt in order.transactions]
    given = {
        "order": len(snapshot.orders),
        "transaction": len(attempts),
        "event": sum(len(attempt.events) for attempt in attempts),
        "delivery": len(snapshot.deliveries),
        "vault": len(snapshot.credentials),
        "qr": len(snapshot.qr_requests),
    }
    counts = snapshot.id_counts
    if min(counts.values(), default=0) < 0 or any(counts.get(kind, 0) < n for kind, n in given.items()):
        yield Violation("state.id_counts", "would give the identifiers of orders that there are")


def _identities(snapshot: "Snapshot") -> Iterator[Violation]:
    lists: dict[str, Iterable[Any]] = {
        "orders": [order.id for order in snapshot.orders],
        "transactions": [attempt.id for order in snapshot.orders for attempt in order.transactions],
        "deliveries": [delivery.id for delivery in snapshot.deliveries],
        "credentials": [credential.vault_token for credential in snapshot.credentials],
        "qr_requests": [request.id for request in snapshot.qr_requests],
    }
    for name, ids in lists.items():
        listed = list(ids)
        if len(set(listed)) != len(listed):
            yield Violation(f"state.{name}", "holds one twice")


def _order(order: Order, known: set[str]) -> Iterator[tuple[str, str]]:
    if order.status not in ORDER_TRANSITIONS:
        yield "status", f"{order.status!r} is no status of an order"
    if order.amount_cents < 1 or order.currency != CURRENCY:
        yield "amount_cents", f"must be at least 1, in {CURRENCY}"
    if order.refund_of_order_id is not None and order.refund_of_order_id not in known:
        yield "refund_of_order_id", "is of no order here"
    periods = [order.expiration_period] if order.expiration_period is not None else []
    if not _are_periods(periods):
        yield "expiration_period", "is no duration"
    for index, attempt in enumerate(order.transactions):
        problem = _attempt(attempt)
        if problem is not None:
            yield f"transactions[{index}]", problem


def _attempt(attempt: Transaction) -> str | None:
    if attempt.status not in TRANSACTION_TRANSITIONS:
        return f"{attempt.status!r} is no status of a transaction"
    if attempt.authorization is not None and attempt.authorization.remaining_cents < 0:
        return "more was taken than authorized"
    if attempt.method not in NAMES:
        return f"{attempt.method!r} is no payment method"
    if attempt.amount_cents < 1 or attempt.credited_cents < 0:
        return "its amounts are below what is possible"
    return None if _are_periods([attempt.expiration_period]) else "its expiration_period is no duration"


def _are_periods(texts: Sequence[str]) -> bool:
    try:
        for text in texts:
            Period.parse(text)
    except PeriodError:
        return False
    return True
