"""Checks on money: moved twice, also by an HTTP client alone, lapsed, not returned, or not noticed."""

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from itertools import chain
from typing import Any, Final, NamedTuple

from payment_sandbox.judge.call_checks import Creation, is_creation_request
from payment_sandbox.judge.evidence import (
    CHARGES_VERB,
    FAULT_RULE,
    READ_WITHIN,
    CallKind,
    Finding,
    MoneyCall,
    ReviewedHistory,
    advise_on_loss,
    describe_late,
    end_of,
    format_request,
    format_times,
    is_answer_lost,
    is_from_shop,
    is_late,
    money_call,
    money_calls,
    number_in_words,
    order_in,
    parse_object,
    start_of,
    whole_number,
)
from payment_sandbox.judge.lessons import (
    ACT_ONCE,
    CALL_VERBS,
    LOST_RESPONSE,
    REPETITION_RISKS,
    RETURN_MONEY,
    SENT_AGAIN,
)
from payment_sandbox.kernel.times import longest_unit
from payment_sandbox.orders.amounts import euros
from payment_sandbox.orders.cards import RECURRING
from payment_sandbox.orders.commands import ExpireAuthorization
from payment_sandbox.orders.order import Order
from payment_sandbox.orders.refunds import refundable_cents
from payment_sandbox.orders.statuses import OrderStatus
from payment_sandbox.orders.transaction import Transaction
from payment_sandbox.orders.webhooks import Delivery
from payment_sandbox.projects.http_clients import client_of
from payment_sandbox.projects.journal import AgendaEvent, LoggedRequest
from payment_sandbox.scenarios.risks import DOUBLE_PAYMENT

CONFLICT_STATUS: Final = 409
GRACE_PERIOD: Final = timedelta(seconds=0.3)
"""The time after the answer to a webhook during which a shop may still process the event."""
CANDIDATES_MAX: Final = 50
"""The maximum number of webhooks considered as causes of a charge, because charges name no order."""
NOTICE_PERIOD: Final = timedelta(days=1)
MISTAKEN_FAILURE: Final = "your shop takes the refusal for a failure of a call that worked"
WAITING: Final = "a customer waited for money"
PAID_STATUSES: Final = (OrderStatus.COMPLETED, OrderStatus.ACCEPTED)


class DatedFinding(NamedTuple):
    """A mistake from a sandbox time on, unless the log of the order changes before."""

    since: datetime
    finding: Finding


class HandlerRun(NamedTuple):
    """A run of the shop's webhook handler, in real time; ``at`` is its start in sandbox time."""

    delivery_id: str
    order_id: str
    at: datetime
    starts_at: datetime
    ends_at: datetime

    def contains(self, entry: LoggedRequest) -> bool:
        """Whether the shop made a call during the run, before the clock was moved."""
        is_clock_moved = entry.at - self.at > end_of(entry) - self.starts_at + GRACE_PERIOD
        return self.starts_at <= start_of(entry) <= self.ends_at and not is_clock_moved


def _handler_runs(webhooks: Iterable[Delivery]) -> dict[str, list[HandlerRun]]:
    runs: dict[str, list[HandlerRun]] = defaultdict(list)
    for webhook in webhooks:
        for attempt in filter(is_from_shop, webhook.attempts):
            ends_at = attempt.real_at + timedelta(milliseconds=attempt.reply.duration_ms)
            runs[webhook.order_id].append(
                HandlerRun(webhook.id, webhook.order_id, attempt.at, attempt.real_at, ends_at)
            )
    return {order_id: _extend_runs(own) for order_id, own in runs.items()}


def _extend_runs(runs: list[HandlerRun]) -> list[HandlerRun]:
    """Extend runs by the grace period, at most until the next webhook."""
    by_start = sorted(runs, key=lambda each: each.starts_at)
    following = [*(each.starts_at for each in by_start[1:]), by_start[-1].ends_at + GRACE_PERIOD]
    return [
        each._replace(ends_at=max(each.ends_at, min(each.ends_at + GRACE_PERIOD, after)))
        for each, after in zip(by_start, following, strict=True)
    ]


def find_moves_per_webhook(history: ReviewedHistory) -> Iterator[Finding]:
    """Find repeated money movements after duplicate or repetitive webhooks."""
    if not history.moves:
        return
    runs = _handler_runs(history.webhooks)
    all_runs = sorted(chain.from_iterable(runs.values()), key=lambda each: each.starts_at)
    equal_calls: dict[CallKind, list[MoneyCall]] = defaultdict(list)
    for call in filter(MoneyCall.is_accepted, history.moves):
        equal_calls[call.kind].append(call)
    for calls in equal_calls.values():
        orders = {calls[0].order_id} if calls[0].order_id else _find_causing_orders(calls, all_runs)
        matched = [_pair_calls(calls, runs.get(order_id, ())) for order_id in sorted(orders)]
        pairs = max(matched, key=len, default=[])
        events = {_event_of_call(history, call, run) for call, run in pairs}
        if min(len(events), len({run.delivery_id for _, run in pairs})) < len(pairs):
            yield _report_move_per_webhook(history, pairs)


def orders_in_progress(webhooks: Iterable[Delivery], calls: Iterable[MoneyCall]) -> set[str]:
    """Return the orders whose webhooks were in progress when the shop made some calls."""
    starts_at = sorted(start_of(call.entry) for call in calls)
    orders: set[str] = set()
    for webhook in webhooks:
        for attempt in webhook.attempts:
            ends_at = attempt.real_at + timedelta(milliseconds=attempt.reply.duration_ms) + GRACE_PERIOD
            first = bisect_left(starts_at, attempt.real_at)
            if first < len(starts_at) and starts_at[first] <= ends_at:
                orders.add(webhook.order_id)
    return orders


def _find_causing_orders(calls: Iterable[MoneyCall], runs: Sequence[HandlerRun]) -> set[str]:
    """Return the orders with webhooks in progress during these charges."""
    starts_at = [each.starts_at for each in runs]
    orders: set[str] = set()
    for call in calls:
        newest = bisect_right(starts_at, start_of(call.entry))
        around = runs[max(0, newest - CANDIDATES_MAX) : newest]
        orders |= {each.order_id for each in around if each.contains(call.entry)}
    return orders


def _event_of_call(history: ReviewedHistory, call: MoneyCall, run: HandlerRun) -> str:
    """Return the event behind a call: the last status that the shop read, or if it read none, the webhook."""
    reads = history.reads[run.order_id]
    seen = [read for read in reads if run.starts_at <= start_of(read) <= start_of(call.entry)]
    status = history.statuses[seen[-1].id] if seen else None
    return status or run.delivery_id


def _pair_calls(calls: Iterable[MoneyCall], runs: Sequence[HandlerRun]) -> list[tuple[MoneyCall, HandlerRun]]:
    """Pair each call with the run of the webhook handler that made it; one call per run."""
    pairs: list[tuple[MoneyCall, HandlerRun]] = []
    unpaired_runs = sorted(runs, key=lambda each: each.ends_at)
    for call in calls:
        first = next((each for each in unpaired_runs if each.contains(call.entry)), None)
        if first is not None:
            unpaired_runs.remove(first)
            pairs.append((call, first))
    return pairs


def _report_move_per_webhook(
    history: ReviewedHistory, pairs: Sequence[tuple[MoneyCall, HandlerRun]]
) -> Finding:
    calls = [call for call, _ in pairs]
    cents, changes = _moved_cents(history, calls[0]), len({run.delivery_id for _, run in pairs})
    events = "one status change" if changes == 1 else f"{number_in_words(changes)} status changes"
    return _report_repeated_move(
        pairs[0][1].order_id,
        calls,
        "HOOK-10",
        f"{_describe_call(calls[0], cents)} {format_times(len(calls))} for {events}",
        "Webhooks can arrive more than once: record each action per order before you take it, and skip "
        "actions that are already recorded.",
        cents,
    )


def find_blind_repeats(history: ReviewedHistory) -> Iterator[Finding]:
    """Find money movements retried after a lost response without reading the order."""
    lost: dict[CallKind, MoneyCall] = {}
    for call in history.moves:
        first = lost.pop(call.kind, None) if call.is_accepted() else None
        start = start_of(call.entry)
        if first is not None and not any(
            start_of(first.entry) <= start_of(read) <= start for read in history.reads[call.order_id]
        ):
            cents = _moved_cents(history, call)
            yield _report_repeated_move(
                call.order_id or call.entry.order_id,
                [first, call],
                FAULT_RULE,
                f"{_describe_call(call, cents)} twice: the first response was lost, "
                "and the call was sent again",
                advise_on_loss(
                    first.entry,
                    "After a lost response, first read the order: it shows whether the call was executed.",
                ),
                cents,
            )._replace(page=LOST_RESPONSE.path)
        if is_answer_lost(call.entry) and call.is_accepted():
            lost[call.kind] = call


def find_concurrent_moves(history: ReviewedHistory) -> Iterator[Finding]:
    """Find equal concurrent calls that moved money twice, as after a double click."""
    newest: dict[CallKind, MoneyCall] = {}
    for call in history.moves:
        if not call.is_accepted() or call.verb == CHARGES_VERB:
            continue
        first = newest.get(call.kind)
        if first is not None and start_of(call.entry) < end_of(first.entry):
            cents = _moved_cents(history, call)
            yield _report_repeated_move(
                call.order_id,
                [first, call],
                "SET-03",
                f"{_describe_call(call, cents)} twice at the same moment",
                "Accept only one of two clicks: lock the order in your database before you call.",
                cents,
            )
        newest[call.kind] = call


def find_refused_repeats(history: ReviewedHistory) -> Iterator[Finding]:
    """Find refused repetitions of executed calls."""
    executed: dict[CallKind, MoneyCall] = {}
    refused: dict[CallKind, list[MoneyCall]] = defaultdict(list)
    for call in history.moves:
        first = executed.get(call.kind)
        if call.is_accepted():
            executed[call.kind] = call
        elif first is not None and is_conflict(call.entry) and not is_answer_lost(first.entry):
            refused[call.kind].append(call)
    for kind, repeats in refused.items():
        first = executed[kind]
        cents, (verb, past) = _moved_cents(history, first), CALL_VERBS[first.verb]
        number = f"{number_in_words(len(repeats))} calls were" if len(repeats) > 1 else "the call was"
        yield Finding(
            "SET-47",
            f"Your shop had {past} {euros(cents) if cents is not None else 'everything'}, and tried again: "
            f"{number} refused",
            f"Record that you {past} the order before you call, and do not call again.",
            first.order_id,
            tuple(format_request(call.entry) for call in [first, *repeats]),
            risk=f"the service accepts repeated parts: your shop would {verb} a part twice",
            shown_by=tuple(call.entry.id for call in repeats),
            preceded_by=(first.entry.id,),
        )


def is_conflict(entry: LoggedRequest) -> bool:
    """Whether the service itself, not a fault, refused a call because of the order's state."""
    return entry.status == CONFLICT_STATUS and entry.fault is None


def _report_repeated_move(
    order_id: str | None, calls: Sequence[MoneyCall], rule: str, problem: str, advice: str, cents: int | None
) -> Finding:
    return Finding(
        rule,
        problem,
        advice,
        order_id,
        tuple(format_request(call.entry) for call in calls),
        risk=REPETITION_RISKS[calls[0].verb],
        page=ACT_ONCE.path,
        amount=(cents or 0) * (len(calls) - 1),
        shown_by=tuple(call.entry.id for call in calls[1:]),
        preceded_by=(calls[0].entry.id,),
    )


def _describe_call(call: MoneyCall, cents: int | None) -> str:
    past = CALL_VERBS[call.verb][1]
    return f"Your shop {past} {euros(cents)}" if cents is not None else f"Your shop {past}"


def _moved_cents(history: ReviewedHistory, call: MoneyCall) -> int | None:
    """Return the amount moved by a call, according to the request or the response."""
    for data in (parse_object(call.body), parse_object(call.entry.response)):
        amount = whole_number(data.get("amount"))
        if amount is not None:
            return amount
    order = history.orders.get(call.order_id)
    return order.amount_cents if order is not None and b"order_lines" not in call.body else None


def find_lapsed_authorizations(history: ReviewedHistory) -> Iterator[Finding]:
    """Find expired authorizations without captures."""
    late = {entry.order_id for entry in history.requests if entry.rule == "CAP-04"}
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
    if entry.method != "POST" or entry.status != 201 or b"recurring" not in entry.request:
        return None
    transactions = parse_object(entry.request).get("transactions") or [{}]
    attempt: Any = transactions[0] if isinstance(transactions, list) else {}
    details = attempt.get("payment_method_details") if isinstance(attempt, dict) else None
    if not isinstance(details, dict) or details.get("recurring_type") != RECURRING:
        return None
    token = details.get("vault_token")
    return token if isinstance(token, str) else None


class Debt(NamedTuple):
    """Money that the shop should have returned by a time, and what it returned later."""

    owed_cents: int
    open_cents: int
    late: str  # when it returned some, in words

    @property
    def risk(self) -> str:
        """The cost for the customer."""
        return RETURN_MONEY.risk if self.open_cents else WAITING


def _debt(
    history: ReviewedHistory, order: Order, earned_cents: int, since: datetime, period: timedelta
) -> Debt:
    """Return what the shop owes to a customer beyond the earned money, a period after its reason."""
    refunds = (history.orders.get(refund.refund_id) for refund in order.refunds if not refund.failed)
    late = [each for each in refunds if each is not None and each.created > since + period]
    late_cents = sum(each.amount_cents for each in late)
    open_cents = refundable_cents(order) - earned_cents
    part = f"{euros(late_cents)} " if open_cents > 0 else ""
    words = f" (returned {part}{longest_unit(late[-1].created - since)} later)" if late else ""
    return Debt(open_cents + late_cents, max(0, open_cents), words)


def find_unrefunded_cancellations(history: ReviewedHistory) -> Iterator[Finding]:
    """Find paid orders that the shop tried to cancel, but did not refund after the refusal."""
    for entry in history.requests:
        order = history.orders.get(entry.order_id or "")
        if order is None or not _is_paid(order) or entry.method != "DELETE" or not is_conflict(entry):
            continue
        debt = _debt(history, order, 0, entry.at, READ_WITHIN)
        if debt.owed_cents and not _is_noticed(history, order, entry):
            yield Finding(
                entry.rule or "SET-03",
                "Your shop tried to cancel a paid order, was refused, and kept the "
                f"{euros(debt.owed_cents)}{debt.late}",
                "If a cancellation is refused, read the order, and refund the payment.",
                order.id,
                (format_request(entry),),
                risk=debt.risk,
                page=RETURN_MONEY.path,
                amount=debt.open_cents,
                shown_by=(entry.id,),
            )


def _is_noticed(history: ReviewedHistory, order: Order, refused: LoggedRequest) -> bool:
    """Whether the shop knew the payment before a refused cancellation, or called soon after it."""
    until = refused.at + READ_WITHIN
    return any(at <= until for at in _payment_shown(history, order.id)) or any(
        order.id in entry.path and start_of(entry) >= end_of(refused) and not is_late(entry.at - refused.at)
        for entry in history.requests
    )


def _is_paid(order: Order) -> bool:
    """Whether a customer has paid the order; refunds do not count."""
    return order.status in PAID_STATUSES and order.refund_of_order_id is None


def find_unreturned_surplus(history: ReviewedHistory) -> Iterator[DatedFinding]:
    """Find money beyond an order's amount, or for a cancelled order, that was not refunded within a day."""
    changed = {each.order_id: each.at for each in history.reached}
    for order in history.orders.values():
        is_paid = _is_paid(order)
        if order.id not in changed or not (is_paid or order.status == OrderStatus.CANCELLED):
            continue
        earned_cents, since = order.amount_cents if is_paid else 0, changed[order.id]
        debt = _debt(history, order, earned_cents, since, NOTICE_PERIOD)
        if debt.owed_cents > 0:
            is_twice = debt.owed_cents >= order.amount_cents or len(_payments(order)) > 1
            finding = Finding(
                "A45" if is_paid and is_twice else "HOOK-13",
                f"{_describe_payments(order)}, and your shop did not return "
                f"{euros(debt.owed_cents)}{debt.late}",
                "Compare the received money with the order's amount, and refund the surplus with "
                "POST /v1/orders/<order_id>/refunds/.",
                order.id,
                (),
                risk=debt.risk,
                amount=debt.open_cents,
            )
            yield DatedFinding(since + NOTICE_PERIOD, finding)


def _payments(order: Order) -> list[Transaction]:
    return [attempt for attempt in order.transactions if attempt.received_cents]


def _describe_payments(order: Order) -> str:
    amount, paid = euros(order.amount_cents), _payments(order)
    if order.status == OrderStatus.CANCELLED:
        return f"The customer paid {euros(order.received_cents)} for an order that was cancelled"
    if len(paid) == 1:
        return f"The customer transferred {euros(order.received_cents)} for {amount}"
    payments = (f"{euros(each.received_cents)} by {each.payment_method} ({each.id})" for each in paid)
    return f"The customer paid an order of {amount} twice: {' and '.join(payments)}"


def find_unnoticed_payments(history: ReviewedHistory) -> Iterator[DatedFinding]:
    """Find payments that sent no webhook and that the shop did not notice for a day."""
    paid = {each.order_id: each for each in reversed(history.reached) if each.status in PAID_STATUSES}
    for order_id, own in history.webhooks_of.items():
        order, reached = history.orders.get(order_id), paid.get(order_id)
        if order is None or reached is None or not _is_paid(order):
            continue
        reads = [each.at for each in history.attempted_reads[order_id] if start_of(each) >= reached.real_at]
        until = reached.at + NOTICE_PERIOD
        known = chain(reads, _arrivals(own), _payment_shown(history, order_id))
        if not any(at <= until for at in known):
            late = describe_late([min(reads) - reached.at] if reads else [None])
            finding = Finding(
                "HOOK-12",
                f"Your shop does not know that the customer paid {euros(order.received_cents)}: "
                f"no webhook about it arrived, and it did not read the order{late}",
                "Webhooks can get lost: read orders that are still open once a day.",
                order_id,
                (),
                amount=order.received_cents,
                shown_by=(reached.id,),
            )
            yield DatedFinding(until, finding)


def _arrivals(webhooks: Iterable[Delivery]) -> Iterator[datetime]:
    """Yield the times at which webhooks about a payment reached the shop."""
    for webhook in webhooks:
        if webhook.status in PAID_STATUSES:
            yield from (attempt.at for attempt in filter(is_from_shop, webhook.attempts))


def _payment_shown(history: ReviewedHistory, order_id: str) -> Iterator[datetime]:
    """Yield the times at which a response has shown the order to the shop as paid."""
    for entry in history.requests_of[order_id]:
        is_changed = entry.fault is not None and entry.fault.changes_response
        if not is_changed and history.statuses[entry.id] in PAID_STATUSES:
            yield entry.at


def find_client_resends(history: ReviewedHistory) -> Iterator[Finding]:
    """Find calls that were executed, then sent again by the HTTP client and executed or refused."""
    for first, second in _resends(history.requests):
        if is_creation_request(second):
            continue
        moved = [call for call in (money_call(first), money_call(second)) if call and call.is_accepted()]
        if len(moved) == len((first, second)):
            cents, past = _moved_cents(history, moved[0]), CALL_VERBS[moved[0].verb][1]
            words = f"{past} {euros(cents)} again" if cents is not None else f"{past} again"
            yield _report_second(first, second, words, cents or 0, REPETITION_RISKS[moved[0].verb])
        elif is_conflict(second):
            words = "was refused, although the call had worked"
            yield _report_second(first, second, words, 0, MISTAKEN_FAILURE)


def find_resent_creations(basket: Sequence[Creation]) -> Iterator[Finding]:
    """Find create calls that the HTTP client sent again, and that created another order."""
    created = {each.entry.id: each for each in basket}
    for first, second in _resends([each.entry for each in basket]):
        order = created[second.id].order
        if first.order_id != order.id:
            words = "created the order again, and now there are two"
            yield _report_second(first, second, words, order.amount_cents, DOUBLE_PAYMENT)


def _resends(requests: Sequence[LoggedRequest]) -> Iterator[tuple[LoggedRequest, LoggedRequest]]:
    """Yield the calls that the shop made, each with the copy that its HTTP client may have sent."""
    by_id = {entry.id: entry for entry in requests}
    for second in requests:
        first = by_id.get(second.resent_of or "")
        if first is not None and first.fault is not None and first.fault.is_after:
            while first.resent_of in by_id:
                first = by_id[first.resent_of]
            yield first, second


def _report_second(first: LoggedRequest, second: LoggedRequest, words: str, cents: int, risk: str) -> Finding:
    client = client_of(second)
    name, remedy = (client.name, client.remedy) if client is not None else ("an HTTP client", "")
    advice = f"If your shop uses {name}: {remedy}. " if remedy else ""
    return Finding(
        FAULT_RULE,
        f"The HTTP client, perhaps {name}, may have sent a request again by itself after its response was "
        f"lost; your shop's code was not told, and the second request {words}",
        f"{advice}If your own code sent it again: read the order first.",
        first.order_id or order_in(first),
        (format_request(first), format_request(second)),
        risk=risk,
        page=SENT_AGAIN.path,
        amount=cents,
        shown_by=(second.id,),
        preceded_by=(first.id,),
    )
