"""Money that moved twice: for one event, after a lost response, or by two calls at once."""

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from itertools import chain
from typing import Final, NamedTuple

from payment_sandbox.operations.review.evidence import (
    Finding,
    Reviewed,
    as_object,
    began,
    ended,
    in_words,
    is_answer_lost,
    is_own,
    line_of,
    order_in,
    times,
    whole_number,
)
from payment_sandbox.operations.review.lessons import ONCE, OWED, TWICE, WORDS
from payment_sandbox.orders.amounts import euros
from payment_sandbox.orders.order import Order
from payment_sandbox.orders.refunds import refundable_cents
from payment_sandbox.orders.statuses import OrderStatus
from payment_sandbox.orders.webhooks import Delivery
from payment_sandbox.projects.journal import JournalEntry

ACCEPTED: Final = (200, 201)
CONFLICT: Final = 409
CHARGES: Final = "charges"
VAULT_TOKEN: Final = b'"vault_token"'
CALL: Final = re.compile(rf"/({'|'.join(WORDS)})(?:/|$)")
SHORTLY: Final = timedelta(seconds=0.3)
"""How long after its answer to a webhook a shop still works on it."""
AT_ONCE: Final = 50
"""How many webhooks are looked at for what caused a charge, which names no order."""
A_DAY: Final = timedelta(days=1)
PAID: Final = (OrderStatus.COMPLETED, OrderStatus.ACCEPTED)


CallKind = tuple[str, str, str, bytes]
"""What makes two calls the same: what they do, with which order, where, and with which body."""


class MoneyCall(NamedTuple):
    """A call of the shop that moves money: what it does, with which order, and exactly what it asks for."""

    entry: JournalEntry
    verb: str
    order_id: str
    asked: bytes

    @property
    def kind(self) -> CallKind:
        """What it has in common with the same call made again."""
        return self.verb, self.order_id, self.entry.path.rstrip("/"), self.asked

    def is_accepted(self) -> bool:
        """Whether the service carried it out."""
        fault = self.entry.fault
        is_lost = fault is not None and fault.is_after and fault.loses_response
        return self.entry.status in ACCEPTED or (is_lost and self.entry.order_id is not None)


class Handling(NamedTuple):
    """The real time in which a shop works on one attempt to deliver a webhook."""

    delivery_id: str
    order_id: str
    begins: datetime
    ends: datetime

    def spans(self, entry: JournalEntry) -> bool:
        """Whether a call was made meanwhile."""
        return self.begins <= began(entry) <= self.ends


def money_calls(requests: Iterable[JournalEntry]) -> list[MoneyCall]:
    """The calls that move money: captures, voids, refunds, and charges of stored cards."""
    return [call for entry in requests if entry.method == "POST" for call in _money_call(entry)]


def _money_call(entry: JournalEntry) -> Iterator[MoneyCall]:
    found = CALL.search(entry.path)
    order_id = order_in(entry)
    if found is not None and order_id is not None:
        yield MoneyCall(entry, found[1], order_id, entry.request)
    elif order_id is None and VAULT_TOKEN in entry.request and b"recurring" in entry.request:
        yield MoneyCall(entry, CHARGES, "", entry.request)


def _handlings(webhooks: Iterable[Delivery]) -> dict[str, list[Handling]]:
    """When the shop worked on webhooks, by order, in the order in which they came."""
    handlings: dict[str, list[Handling]] = defaultdict(list)
    for webhook in webhooks:
        for attempt in filter(is_own, webhook.attempts):
            ends = attempt.real_at + timedelta(milliseconds=attempt.reply.duration_ms)
            handlings[webhook.order_id].append(Handling(webhook.id, webhook.order_id, attempt.real_at, ends))
    return {order_id: _lengthened(found) for order_id, found in handlings.items()}


def _lengthened(handlings: list[Handling]) -> list[Handling]:
    """Handlings with the moment after the answer, which ends when the next webhook comes."""
    ordered = sorted(handlings, key=lambda each: each.begins)
    nexts = [*(each.begins for each in ordered[1:]), ordered[-1].ends + SHORTLY]
    return [
        each._replace(ends=max(each.ends, min(each.ends + SHORTLY, after)))
        for each, after in zip(ordered, nexts, strict=True)
    ]


def moved_for_each_webhook(reviewed: Reviewed) -> Iterator[Finding]:
    """The shop moved the same money again when a webhook was delivered again, or told the same again."""
    handlings = _handlings(reviewed.webhooks)
    everything = sorted(chain.from_iterable(handlings.values()), key=lambda each: each.begins)
    same: dict[CallKind, list[MoneyCall]] = defaultdict(list)
    for call in filter(MoneyCall.is_accepted, money_calls(reviewed.requests)):
        same[call.kind].append(call)
    for calls in same.values():
        orders = {calls[0].order_id} if calls[0].order_id else _orders_behind(calls, everything)
        matched = [_caused(calls, handlings.get(order_id, ())) for order_id in sorted(orders)]
        pairs = max(matched, key=len, default=[])
        events = {_event(reviewed, call, handling) for call, handling in pairs}
        if min(len(events), len({handling.delivery_id for _, handling in pairs})) < len(pairs):
            yield _for_each(reviewed, pairs)


def _orders_behind(calls: Iterable[MoneyCall], handlings: Sequence[Handling]) -> set[str]:
    """The orders whose webhooks a shop was handling when it charged a stored card."""
    begins = [each.begins for each in handlings]
    orders: set[str] = set()
    for call in calls:
        newest = bisect_right(begins, began(call.entry))
        around = handlings[max(0, newest - AT_ONCE) : newest]
        orders |= {each.order_id for each in around if each.spans(call.entry)}
    return orders


def charges_during(webhooks: Iterable[Delivery], requests: Iterable[JournalEntry]) -> set[str]:
    """The ids of the requests that charged a stored card while a shop handled one of the webhooks."""
    charges = money_calls(entry for entry in requests if VAULT_TOKEN in entry.request)
    return calls_during(webhooks, (call.entry for call in charges))


def calls_during(webhooks: Iterable[Delivery], requests: Iterable[JournalEntry]) -> set[str]:
    """The ids of the requests that a shop made while it handled one of the webhooks."""
    handlings = list(chain.from_iterable(_handlings(webhooks).values()))
    return {entry.id for entry in requests if any(each.spans(entry) for each in handlings)}


def _event(reviewed: Reviewed, call: MoneyCall, handling: Handling) -> str:
    """What the shop reacted to: the status that it had read last, or the webhook if it had read none."""
    reads = reviewed.reads[handling.order_id]
    seen = [read for read in reads if handling.begins <= began(read) <= began(call.entry)]
    status = reviewed.statuses[seen[-1].id] if seen else None
    return status or handling.delivery_id


def _caused(calls: Iterable[MoneyCall], handlings: Sequence[Handling]) -> list[tuple[MoneyCall, Handling]]:
    """The calls that were made while a webhook was handled, each with a handling of its own."""
    pairs: list[tuple[MoneyCall, Handling]] = []
    free = sorted(handlings, key=lambda each: each.ends)
    for call in calls:
        first = next((each for each in free if each.spans(call.entry)), None)
        if first is not None:
            free.remove(first)
            pairs.append((call, first))
    return pairs


def _for_each(reviewed: Reviewed, pairs: Sequence[tuple[MoneyCall, Handling]]) -> Finding:
    calls = [call for call, _ in pairs]
    cents, changes = _cents(reviewed, calls[0]), len({handling.delivery_id for _, handling in pairs})
    told = "one status change" if changes == 1 else f"{in_words(changes)} status changes"
    return _moved_again(
        pairs[0][1].order_id,
        calls,
        "HOOK-10",
        f"{_did(calls[0], cents)} {times(len(calls))} for {told}",
        "Webhooks can arrive more than once: record each action per order before you take it, and skip it "
        "if it is already recorded.",
        cents,
    )


def moved_after_lost_response(reviewed: Reviewed) -> Iterator[Finding]:
    """The response to a call that moves money was lost, and the shop sent it again without a look."""
    lost: dict[CallKind, MoneyCall] = {}
    for call in money_calls(reviewed.requests):
        first = lost.pop(call.kind, None) if call.is_accepted() else None
        if first is not None and not _were_between(reviewed.reads[call.order_id], first.entry, call.entry):
            cents = _cents(reviewed, call)
            yield _moved_again(
                call.order_id or call.entry.order_id,
                [first, call],
                "CTL-23",
                f"{_did(call, cents)} twice: the first response was lost, and the call was sent again",
                "After a lost response, read the order first: it shows what was carried out.",
                cents,
            )._replace(page=TWICE.page)
        if is_answer_lost(call.entry) and call.is_accepted():
            lost[call.kind] = call


def _were_between(reads: Iterable[JournalEntry], first: JournalEntry, second: JournalEntry) -> bool:
    return any(began(first) <= began(read) <= began(second) for read in reads)


def moved_at_once(reviewed: Reviewed) -> Iterator[Finding]:
    """Two equal calls moved money at the same moment, as after a double click."""
    newest: dict[CallKind, MoneyCall] = {}
    for call in money_calls(reviewed.requests):
        if not call.is_accepted() or call.verb == CHARGES:
            continue
        first = newest.get(call.kind)
        if first is not None and began(call.entry) < ended(first.entry):
            cents = _cents(reviewed, call)
            yield _moved_again(
                call.order_id,
                [first, call],
                "SET-03",
                f"{_did(call, cents)} twice at the same moment",
                "Let one of two clicks win: lock the order in your database before you call.",
                cents,
            )
        newest[call.kind] = call


def repeated(reviewed: Reviewed) -> Iterator[Finding]:
    """The shop sent a call again that had been carried out, and the service refused it."""
    done: dict[CallKind, MoneyCall] = {}
    refused: dict[CallKind, list[MoneyCall]] = defaultdict(list)
    for call in money_calls(reviewed.requests):
        if call.is_accepted():
            done[call.kind] = call
        elif call.kind in done and is_conflict(call.entry) and not is_answer_lost(done[call.kind].entry):
            refused[call.kind].append(call)
    for kind, again in refused.items():
        yield _repeated(reviewed, done[kind], again)


def _repeated(reviewed: Reviewed, first: MoneyCall, again: Sequence[MoneyCall]) -> Finding:
    cents, (verb, past) = _cents(reviewed, first), WORDS[first.verb]
    how_many = f"{in_words(len(again))} were" if len(again) > 1 else "the second was"
    return Finding(
        "SET-47",
        f"Your shop {past} {times(len(again) + 1)}: the first call took "
        f"{euros(cents) if cents is not None else 'everything'}, and {how_many} refused",
        f"Record that you {past} the order before you call, and do not call again.",
        first.order_id,
        tuple(line_of(call.entry) for call in [first, *again]),
        risk=f"a part is not refused: your shop would {verb} it twice",
        shown_by=tuple(call.entry.id for call in again),
    )


def is_conflict(entry: JournalEntry) -> bool:
    """Whether the service refused a call because of the state of the order, and no fault did."""
    return entry.status == CONFLICT and entry.fault is None


def _moved_again(
    order_id: str | None,
    calls: Sequence[MoneyCall],
    rule: str,
    problem: str,
    advice: str,
    cents: int | None,
) -> Finding:
    return Finding(
        rule,
        problem,
        advice,
        order_id,
        tuple(line_of(call.entry) for call in calls),
        risk=ONCE.risk,
        page=ONCE.page,
        amount=(cents or 0) * (len(calls) - 1),
        shown_by=tuple(call.entry.id for call in calls[1:]),
    )


def _did(call: MoneyCall, cents: int | None) -> str:
    past = WORDS[call.verb][1]
    return f"Your shop {past} {euros(cents)}" if cents is not None else f"Your shop {past}"


def _cents(reviewed: Reviewed, call: MoneyCall) -> int | None:
    """What a call moved, in cents: what it asked for, or what the service made of it."""
    for told in (as_object(call.asked), as_object(call.entry.response)):
        amount = whole_number(told.get("amount"))
        if amount is not None:
            return amount
    order = reviewed.orders.get(call.order_id)
    return order.amount_cents if order is not None and b"order_lines" not in call.asked else None


def cancelled_when_paid(reviewed: Reviewed) -> Iterator[Finding]:
    """The shop wanted to cancel an order, did not know that it was paid, and left it at the refusal."""
    known = _known_as_paid(reviewed)
    for entry in reviewed.requests:
        order = reviewed.orders.get(entry.order_id or "")
        if order is None or order.id in known or not _is_refused_cancellation(entry):
            continue
        kept = refundable_cents(order) if _is_paid(order) else 0
        if kept and not _is_called_after(reviewed, order, ended(entry)):
            yield Finding(
                entry.rule or "SET-03",
                f"Your shop tried to cancel a paid order, was refused, and kept the {euros(kept)}",
                "If a cancellation is refused, read the order, and refund what the customer has paid.",
                order.id,
                (line_of(entry),),
                risk=OWED.risk,
                page=OWED.page,
                amount=kept,
                shown_by=(entry.id,),
            )


def _is_refused_cancellation(entry: JournalEntry) -> bool:
    return entry.method == "DELETE" and is_conflict(entry)


def _is_called_after(reviewed: Reviewed, order: Order, at: datetime) -> bool:
    return any(order.id in entry.path and began(entry) >= at for entry in reviewed.requests)


def _is_paid(order: Order) -> bool:
    """Whether a customer has paid it; a refund is an order that the shop pays."""
    return order.status in PAID and order.refund_of_order_id is None


def kept_surplus(reviewed: Reviewed) -> Iterator[Finding]:
    """A customer transferred too much a day ago, and nobody has given the rest back."""
    for order in _paid_a_day_ago(reviewed):
        kept = min(order.received_cents, refundable_cents(order)) - order.amount_cents
        if kept > 0:
            yield Finding(
                "HOOK-13",
                f"The customer transferred {euros(order.received_cents)} for {euros(order.amount_cents)}, "
                f"and nobody returned {euros(kept)}",
                "Compare what arrived with the order's amount, and refund the rest.",
                order.id,
                (),
                amount=kept,
            )


def never_learned(reviewed: Reviewed) -> Iterator[Finding]:
    """No webhook of a payment arrived, and a day later the shop had still not asked for the order."""
    unknown = _never_told(reviewed)
    paid = {each.order_id: each for each in reversed(reviewed.reached) if each.status in PAID}
    for order in _paid_a_day_ago(reviewed):
        if order.id in unknown and _is_unread(reviewed.tries[order.id], paid[order.id].real_at):
            yield Finding(
                "HOOK-12",
                f"Your shop does not know that the customer paid {euros(order.amount_cents)}: "
                "no webhook arrived, and it did not ask",
                "Webhooks can get lost: read orders that are still open once a day.",
                order.id,
                (),
                amount=order.amount_cents,
                shown_by=(paid[order.id].id,),
            )


def _never_told(reviewed: Reviewed) -> set[str]:
    """The orders of which no webhook has arrived, and no response has said that they are paid."""
    known = _known_as_paid(reviewed)
    arrived = {each.order_id for each in reviewed.webhooks if any(map(is_own, each.attempts))}
    return {each.order_id for each in reviewed.webhooks if each.order_id not in known} - arrived


def _known_as_paid(reviewed: Reviewed) -> set[str | None]:
    """The orders of which a response has told the shop that they are paid."""
    return {
        each.order_id
        for each in reviewed.requests
        if reviewed.statuses[each.id] in PAID and not (each.fault is not None and each.fault.changes_response)
    }


def _is_unread(tried: Iterable[JournalEntry], since: datetime) -> bool:
    return all(began(read) < since for read in tried)


def _paid_a_day_ago(reviewed: Reviewed) -> list[Order]:
    """The orders that customers have paid, and whose newest status was reached a day ago."""
    changed = {each.order_id: each.at for each in reviewed.reached if each.payment_method is None}
    return [
        order
        for order in sorted(reviewed.orders.values(), key=lambda order: order.id)
        if _is_paid(order) and order.id in changed and reviewed.now - changed[order.id] >= A_DAY
    ]
