"""Mistakes with money: moved twice, not returned, or not noticed."""

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
    is_from_shop,
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
"""The time after the answer to a webhook in which a shop may still work on the event."""
CANDIDATES_MAX: Final = 50
"""The maximum number of webhooks considered as the cause of a charge, since charges name no order."""
A_DAY: Final = timedelta(days=1)
PAID: Final = (OrderStatus.COMPLETED, OrderStatus.ACCEPTED)


CallKind = tuple[str, str, str, bytes]
"""The identity of a call: verb, order, path and body."""


class MoneyCall(NamedTuple):
    """A call of the shop that moves money: its verb, order and body."""

    entry: JournalEntry
    verb: str
    order_id: str
    body: bytes

    @property
    def kind(self) -> CallKind:
        """The identity of the call, which a retry shares."""
        return self.verb, self.order_id, self.entry.path.rstrip("/"), self.body

    def is_accepted(self) -> bool:
        """Whether the service executed the call."""
        fault = self.entry.fault
        is_lost = fault is not None and fault.is_after and fault.loses_response
        return self.entry.status in ACCEPTED or (is_lost and self.entry.order_id is not None)


class Handling(NamedTuple):
    """The real time in which a shop handles a webhook attempt."""

    delivery_id: str
    order_id: str
    begins: datetime
    ends: datetime

    def spans(self, entry: JournalEntry) -> bool:
        """Whether a call was made during the handling."""
        return self.begins <= began(entry) <= self.ends


def money_calls(requests: Iterable[JournalEntry]) -> list[MoneyCall]:
    """Return the calls that move money: captures, voids, refunds, and charges of stored cards."""
    return [call for entry in requests if entry.method == "POST" for call in _money_call(entry)]


def _money_call(entry: JournalEntry) -> Iterator[MoneyCall]:
    match = CALL.search(entry.path)
    order_id = order_in(entry)
    if match is not None and order_id is not None:
        yield MoneyCall(entry, match[1], order_id, entry.request)
    elif order_id is None and VAULT_TOKEN in entry.request and b"recurring" in entry.request:
        yield MoneyCall(entry, CHARGES, "", entry.request)


def _handlings(webhooks: Iterable[Delivery]) -> dict[str, list[Handling]]:
    """Return the runs of the webhook handler by order, oldest first."""
    handlings: dict[str, list[Handling]] = defaultdict(list)
    for webhook in webhooks:
        for attempt in filter(is_from_shop, webhook.attempts):
            ends = attempt.real_at + timedelta(milliseconds=attempt.reply.duration_ms)
            handlings[webhook.order_id].append(Handling(webhook.id, webhook.order_id, attempt.real_at, ends))
    return {order_id: _lengthened(own) for order_id, own in handlings.items()}


def _lengthened(handlings: list[Handling]) -> list[Handling]:
    """Extend handlings by a moment after the answer, up to the next webhook."""
    ordered = sorted(handlings, key=lambda each: each.begins)
    nexts = [*(each.begins for each in ordered[1:]), ordered[-1].ends + SHORTLY]
    return [
        each._replace(ends=max(each.ends, min(each.ends + SHORTLY, after)))
        for each, after in zip(ordered, nexts, strict=True)
    ]


def moved_for_each_webhook(reviewed: Reviewed) -> Iterator[Finding]:
    """Find money that the shop moved again for a duplicate or repetitive webhook."""
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
    """Return the orders whose webhooks the shop handled during these charges."""
    begins = [each.begins for each in handlings]
    orders: set[str] = set()
    for call in calls:
        newest = bisect_right(begins, began(call.entry))
        around = handlings[max(0, newest - CANDIDATES_MAX) : newest]
        orders |= {each.order_id for each in around if each.spans(call.entry)}
    return orders


def charges_during(webhooks: Iterable[Delivery], requests: Iterable[JournalEntry]) -> set[str]:
    """Return the ids of requests that charged a stored card during the handling of a webhook."""
    charges = money_calls(entry for entry in requests if VAULT_TOKEN in entry.request)
    return calls_during(webhooks, (call.entry for call in charges))


def calls_during(webhooks: Iterable[Delivery], requests: Iterable[JournalEntry]) -> set[str]:
    """Return the ids of requests that the shop made during the handling of a webhook."""
    handlings = list(chain.from_iterable(_handlings(webhooks).values()))
    return {entry.id for entry in requests if any(each.spans(entry) for each in handlings)}


def _event(reviewed: Reviewed, call: MoneyCall, handling: Handling) -> str:
    """Return the event behind a call: the status that the shop read last, or else the webhook."""
    reads = reviewed.reads[handling.order_id]
    seen = [read for read in reads if handling.begins <= began(read) <= began(call.entry)]
    status = reviewed.statuses[seen[-1].id] if seen else None
    return status or handling.delivery_id


def _caused(calls: Iterable[MoneyCall], handlings: Sequence[Handling]) -> list[tuple[MoneyCall, Handling]]:
    """Pair each call with the run of the webhook handler that made it; one call per run."""
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
    events = "one status change" if changes == 1 else f"{in_words(changes)} status changes"
    return _moved_again(
        pairs[0][1].order_id,
        calls,
        "HOOK-10",
        f"{_sentence(calls[0], cents)} {times(len(calls))} for {events}",
        "Webhooks can arrive more than once: record each action per order before you take it, and skip it "
        "if it is already recorded.",
        cents,
    )


def moved_after_lost_response(reviewed: Reviewed) -> Iterator[Finding]:
    """Find calls that moved money and were retried after a lost response without a read."""
    lost: dict[CallKind, MoneyCall] = {}
    for call in money_calls(reviewed.requests):
        first = lost.pop(call.kind, None) if call.is_accepted() else None
        if first is not None and not _were_between(reviewed.reads[call.order_id], first.entry, call.entry):
            cents = _cents(reviewed, call)
            yield _moved_again(
                call.order_id or call.entry.order_id,
                [first, call],
                "CTL-23",
                f"{_sentence(call, cents)} twice: the first response was lost, and the call was sent again",
                "After a lost response, read the order first: it shows what was carried out.",
                cents,
            )._replace(page=TWICE.page)
        if is_answer_lost(call.entry) and call.is_accepted():
            lost[call.kind] = call


def _were_between(reads: Iterable[JournalEntry], first: JournalEntry, second: JournalEntry) -> bool:
    return any(began(first) <= began(read) <= began(second) for read in reads)


def moved_at_once(reviewed: Reviewed) -> Iterator[Finding]:
    """Find equal concurrent calls that moved money twice, as after a double click."""
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
                f"{_sentence(call, cents)} twice at the same moment",
                "Let one of two clicks win: lock the order in your database before you call.",
                cents,
            )
        newest[call.kind] = call


def repeated(reviewed: Reviewed) -> Iterator[Finding]:
    """Find calls that repeat an executed call and were refused."""
    done: dict[CallKind, MoneyCall] = {}
    refused: dict[CallKind, list[MoneyCall]] = defaultdict(list)
    for call in money_calls(reviewed.requests):
        if call.is_accepted():
            done[call.kind] = call
        elif call.kind in done and is_conflict(call.entry) and not is_answer_lost(done[call.kind].entry):
            refused[call.kind].append(call)
    for kind, repeats in refused.items():
        yield _repeated(reviewed, done[kind], repeats)


def _repeated(reviewed: Reviewed, first: MoneyCall, repeats: Sequence[MoneyCall]) -> Finding:
    cents, (verb, past) = _cents(reviewed, first), WORDS[first.verb]
    how_many = f"{in_words(len(repeats))} were" if len(repeats) > 1 else "the second was"
    return Finding(
        "SET-47",
        f"Your shop {past} {times(len(repeats) + 1)}: the first call took "
        f"{euros(cents) if cents is not None else 'everything'}, and {how_many} refused",
        f"Record that you {past} the order before you call, and do not call again.",
        first.order_id,
        tuple(line_of(call.entry) for call in [first, *repeats]),
        risk=f"the service accepts repeated parts: your shop would {verb} a part twice",
        shown_by=tuple(call.entry.id for call in repeats),
    )


def is_conflict(entry: JournalEntry) -> bool:
    """Whether the service, not a fault, refused a call because of the order's state."""
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


def _sentence(call: MoneyCall, cents: int | None) -> str:
    past = WORDS[call.verb][1]
    return f"Your shop {past} {euros(cents)}" if cents is not None else f"Your shop {past}"


def _cents(reviewed: Reviewed, call: MoneyCall) -> int | None:
    """Return the cents that a call moved, according to the request or the response."""
    for data in (as_object(call.body), as_object(call.entry.response)):
        amount = whole_number(data.get("amount"))
        if amount is not None:
            return amount
    order = reviewed.orders.get(call.order_id)
    return order.amount_cents if order is not None and b"order_lines" not in call.body else None


def cancelled_when_paid(reviewed: Reviewed) -> Iterator[Finding]:
    """Find refused cancellations of paid orders that the shop did not refund."""
    known = _known_as_paid(reviewed)
    for entry in reviewed.requests:
        order = reviewed.orders.get(entry.order_id or "")
        if order is None or order.id in known or not _is_refused_cancellation(entry):
            continue
        owed_cents = refundable_cents(order) if _is_paid(order) else 0
        if owed_cents and not _is_called_after(reviewed, order, ended(entry)):
            yield Finding(
                entry.rule or "SET-03",
                f"Your shop tried to cancel a paid order, was refused, and kept the {euros(owed_cents)}",
                "If a cancellation is refused, read the order, and refund the payment.",
                order.id,
                (line_of(entry),),
                risk=OWED.risk,
                page=OWED.page,
                amount=owed_cents,
                shown_by=(entry.id,),
            )


def _is_refused_cancellation(entry: JournalEntry) -> bool:
    return entry.method == "DELETE" and is_conflict(entry)


def _is_called_after(reviewed: Reviewed, order: Order, at: datetime) -> bool:
    return any(order.id in entry.path and began(entry) >= at for entry in reviewed.requests)


def _is_paid(order: Order) -> bool:
    """Whether a customer has paid the order; refunds do not count."""
    return order.status in PAID and order.refund_of_order_id is None


def unreturned_surplus(reviewed: Reviewed) -> Iterator[Finding]:
    """Find surplus transfers that the shop has not returned within a day."""
    for order in _paid_a_day_ago(reviewed):
        surplus_cents = min(order.received_cents, refundable_cents(order)) - order.amount_cents
        if surplus_cents > 0:
            yield Finding(
                "HOOK-13",
                f"The customer transferred {euros(order.received_cents)} for {euros(order.amount_cents)}, "
                f"and your shop did not return {euros(surplus_cents)}",
                "Compare the received money with the order's amount, and refund the rest.",
                order.id,
                (),
                amount=surplus_cents,
            )


def unnoticed_payment(reviewed: Reviewed) -> Iterator[Finding]:
    """Find payments without a webhook that the shop has not noticed within a day."""
    unknown = _unnotified(reviewed)
    paid = {each.order_id: each for each in reversed(reviewed.reached) if each.status in PAID}
    for order in _paid_a_day_ago(reviewed):
        if order.id in unknown and _is_unread(reviewed.attempted_reads[order.id], paid[order.id].real_at):
            yield Finding(
                "HOOK-12",
                f"Your shop does not know that the customer paid {euros(order.amount_cents)}: "
                "no webhook arrived, and it did not read the order",
                "Webhooks can get lost: read orders that are still open once a day.",
                order.id,
                (),
                amount=order.amount_cents,
                shown_by=(paid[order.id].id,),
            )


def _unnotified(reviewed: Reviewed) -> set[str]:
    """Return the paid orders of which neither a webhook nor a response has informed the shop."""
    known = _known_as_paid(reviewed)
    arrived = {each.order_id for each in reviewed.webhooks if any(map(is_from_shop, each.attempts))}
    return {each.order_id for each in reviewed.webhooks if each.order_id not in known} - arrived


def _known_as_paid(reviewed: Reviewed) -> set[str | None]:
    """Return the orders that a response has shown to the shop as paid."""
    return {
        each.order_id
        for each in reviewed.requests
        if reviewed.statuses[each.id] in PAID and not (each.fault is not None and each.fault.changes_response)
    }


def _is_unread(reads: Iterable[JournalEntry], since: datetime) -> bool:
    return all(began(read) < since for read in reads)


def _paid_a_day_ago(reviewed: Reviewed) -> list[Order]:
    """Return the paid orders whose status has not changed for a day."""
    changed = {each.order_id: each.at for each in reviewed.reached if each.payment_method is None}
    return [
        order
        for order in sorted(reviewed.orders.values(), key=lambda order: order.id)
        if _is_paid(order) and order.id in changed and reviewed.now - changed[order.id] >= A_DAY
    ]
