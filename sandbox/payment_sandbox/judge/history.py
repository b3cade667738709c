"""The history of a project: a list of entries with sender, receiver and cause, causes first.

``fold`` shortens a long history: it shows equal exchanges in a row once.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from html import unescape
from typing import Any, Final, NamedTuple

from payment_sandbox.kernel.patterns import UUID, Pattern
from payment_sandbox.methods import METHODS_BY_NAME
from payment_sandbox.methods.common import BANK_PAGES
from payment_sandbox.orders.actions import BANK, CUSTOMER, PROCESSOR, SCREENING
from payment_sandbox.orders.order import Order
from payment_sandbox.orders.statuses import TransactionStatus
from payment_sandbox.orders.webhooks import MANUAL_ATTEMPT, Delivery, Reply
from payment_sandbox.projects.epoch import Epoch
from payment_sandbox.projects.jobs import JOB_KIND
from payment_sandbox.projects.journal import (
    ERROR_STATUS_MIN,
    MERCHANT_ACTOR,
    RETURN,
    SCAN,
    SHOP_REQUEST,
    VISIT,
    AgendaEvent,
    LoggedFailure,
    LoggedRequest,
    PerformedAction,
    ReachedStatus,
    number_in,
    to_plain_data,
)
from payment_sandbox.scenarios.sentences import fault_in_words

SHOP: Final = "shop"
SERVICE: Final = "service"
PARTIES: Final = (CUSTOMER, SHOP, SERVICE, BANK, SCREENING)
KINDS: Final = (
    "request",
    "response",
    "status",
    "attempt-status",
    "action",
    "outcome",
    "webhook",
    "webhook-response",
    "agenda-event",
    "failure",
)
ORDER_PATH: Final = "/v1/orders/…/"
ATTEMPT_PATH: Final = f"{ORDER_PATH}transactions/…/"
API_FIELD_NAMES: Final = {"sender": "from", "receiver": "to"}  # the names in API responses


class TimelineEntry(NamedTuple):
    """A message or change in the history; ``cause`` is the id of an earlier entry.

    ``status`` is an HTTP status, or the new status of an order or attempt. ``failed`` marks refused, lost and
    declined entries; ``lost`` marks entries withheld from the receiver by a fault. ``duration_ms`` is the
    shop's response time to a webhook.
    """

    id: str
    at: datetime
    real_at: datetime
    sender: str
    receiver: str
    kind: str
    label: str
    status: int | str | None
    cause: str | None
    order_id: str | None
    failed: bool = False
    rule: str | None = None
    detail: str | None = None
    duration_ms: int | None = None
    lost: bool = False

    def as_note(self, note_id: str, kind: str, label: str) -> "TimelineEntry":
        """Return a note by the shop to itself, at the time of this entry."""
        return self._replace(
            id=note_id, sender=SHOP, receiver=SHOP, kind=kind, label=label, detail=None, duration_ms=None
        )


def webhook_of(timeline_entry: TimelineEntry) -> str:
    """Return the webhook id of an attempt."""
    return timeline_entry.id.partition("/")[0]


def attempt_number(timeline_entry: TimelineEntry) -> int:
    """Return the number of an attempt; 0 for a manual resend with changes."""
    words = timeline_entry.label.partition(":")[0].rpartition(" ")[2]
    return int(words) if words.isascii() and words.isdecimal() else 0


def short_path(path: str) -> str:
    """Shorten the ids in a path, and omit the order in paths below an order."""
    shortened = UUID.sub("…", path)
    if shortened == ORDER_PATH or not shortened.startswith(ORDER_PATH):
        return shortened
    return f"…/{shortened.removeprefix(ATTEMPT_PATH).removeprefix(ORDER_PATH)}"


def as_mapping(timeline_entry: TimelineEntry) -> dict[str, Any]:
    """Convert an entry to plain data with the field names of the API."""
    return {API_FIELD_NAMES.get(name, name): value for name, value in to_plain_data(timeline_entry).items()}


ACTION_PHRASES: Final = {
    VISIT: "opens the payment page",
    "pay": "pays",
    "cancel": "cancels",
    "fail": "the payment fails",
    "choose": "chooses {payment_method}",
    RETURN: "returns to the shop",
    SHOP_REQUEST: "calls the shop: {method} {path}",
    SCAN: "scans the QR code",
    "credit": "the money arrives",
    "approve": "approves",
    "decline": "declines",
    "error": "fails with an error",
    "settle": "settles",
    "create": "creates a test order",
    "capture": "captures by hand",
    "void": "voids by hand",
    "refund": "refunds by hand",
}
RESENT_NOTE: Final = " · sent again by the HTTP client"
PARTY_BY_ACTOR: Final = {PROCESSOR: BANK, MERCHANT_ACTOR: SHOP}
APPROVED: Final = "approved"
DECLINED: Final = "declined"
DECIDED_BY_BANK: Final = ("pay", "fail")
TEXT_SHOWN_MAX: Final = 160  # characters of a shop's response
HTML_INVISIBLE: Final = Pattern(r"<(head|style|script)\b.*?(?:</\1>|\Z)", re.DOTALL | re.IGNORECASE)
HTML_TAG: Final = Pattern(r"<[^<>]*>?")


class Source(NamedTuple):
    """The identity, the times and the order of a fact; some records of the journal have them, too."""

    id: str
    at: datetime
    real_at: datetime
    order_id: str | None


Record = PerformedAction | ReachedStatus | AgendaEvent | LoggedFailure

Ids = frozenset[str | None]
"""Identifiers of orders."""


def history(epoch: Epoch, order_id: str | None = None) -> list[TimelineEntry]:
    """Return the whole history, or the history of one order and its refunds.

    Raises:
        Unknown: the order does not exist.
    """
    order_ids = _related_ids(epoch, order_id) if order_id is not None else None
    timeline_entries = [
        timeline_entry
        for timeline_entry in _all_entries(epoch, order_ids)
        if order_ids is None or timeline_entry.order_id in order_ids
    ]
    return sorted(timeline_entries, key=sort_key)


def sort_key(timeline_entry: TimelineEntry) -> tuple[datetime, int]:
    """Return the sort key of an entry; records of one edit share the real time, so ids break ties."""
    return timeline_entry.real_at, number_in(timeline_entry.id)


def _related_ids(epoch: Epoch, order_id: str) -> Ids:
    order = epoch.find_order(order_id)
    return frozenset((order.id, *(refund.refund_id for refund in order.refunds)))


def _all_entries(epoch: Epoch, order_ids: Ids | None) -> Iterator[TimelineEntry]:
    journal, store = epoch.journal, epoch.store
    for entry in journal.of(LoggedRequest, order_ids):
        yield from _exchange_entries(entry)
    statuses = journal.of(ReachedStatus, order_ids)
    outcomes = _outcomes(statuses)
    for action in journal.actions(order_ids):
        yield from _action_entries(action, store.order(action.order_id or ""), outcomes.get(action.id))
    yield from _status_entries(statuses)
    yield from map(_agenda_entry, journal.of(AgendaEvent, order_ids))
    failures = (each for each in journal.of(LoggedFailure) if order_ids is None or each.order_id in order_ids)
    yield from map(_failure_entry, failures)
    causes = {(status.order_id, status.status, status.at): status.id for status in statuses}
    for delivery in _deliveries(epoch, order_ids):
        yield from _webhook_entries(
            delivery, causes.get((delivery.order_id, delivery.status, delivery.created))
        )


def _deliveries(epoch: Epoch, order_ids: Ids | None) -> list[Delivery]:
    if order_ids is None:
        return epoch.store.deliveries()
    return [delivery for order_id in order_ids for delivery in epoch.store.deliveries_of(order_id or "")]


def _entry(
    source: Source | Record, kind: str, label: str, sender: str = SERVICE, receiver: str = SERVICE
) -> TimelineEntry:
    """Return the entry of a fact, by default for a change inside the service."""
    return TimelineEntry(
        id=source.id,
        at=source.at,
        real_at=source.real_at,
        sender=sender,
        receiver=receiver,
        kind=kind,
        label=label,
        status=None,
        cause=None,
        order_id=source.order_id,
    )


def _exchange_entries(entry: LoggedRequest) -> Iterator[TimelineEntry]:
    source = Source(entry.id, entry.at, entry.real_at or entry.at, entry.order_id)
    yield _entry(source, "request", f"{entry.method} {short_path(entry.path)}{resent_note(entry)}", SHOP)
    response = source._replace(id=f"{entry.id}/response", real_at=entry.answered_at or source.real_at)
    words = [str(entry.status) if entry.status is not None else "no response", entry.rule or ""]
    is_refused = entry.status is None or entry.status >= ERROR_STATUS_MIN
    fault = entry.fault
    yield _entry(response, "response", " ".join(filter(None, words)), receiver=SHOP)._replace(
        status=entry.status,
        cause=entry.id,
        failed=is_refused or (fault is not None and fault.changes_response),
        rule=entry.rule,
        detail=f"fault: {fault_in_words(fault.document)}" if fault is not None else None,
        lost=fault is not None and fault.sends_nothing,
    )


def resent_note(entry: LoggedRequest) -> str:
    """Return the note on a request that the HTTP client may have sent again; empty for other requests."""
    return RESENT_NOTE if entry.resent_of is not None else ""


def _outcomes(statuses: Iterable[ReachedStatus]) -> dict[str | None, str]:
    """Return the outcomes of actions by id; without recorded statuses, the outcome is unknown."""
    outcomes: dict[str | None, str] = {}
    for status in statuses:
        if status.status == TransactionStatus.ERROR:
            outcomes[status.cause] = DECLINED
        else:
            outcomes.setdefault(status.cause, APPROVED)
    return outcomes


def _action_entries(
    action: PerformedAction, order: Order | None, outcome: str | None
) -> Iterator[TimelineEntry]:
    words = ACTION_PHRASES.get(action.action, action.action).format_map({"payment_method": "", **action.how})
    sender, receiver = _sender_and_receiver(action, order)
    reason = action.how.get("reason")
    yield _entry(action, "action", words, sender, receiver)._replace(
        failed=action.action in ("fail", "decline", "error"),
        detail=f"{reason} (via {action.via})" if reason else f"via {action.via}",
    )
    if receiver == BANK and outcome is not None:
        yield _entry(action, "outcome", outcome, BANK)._replace(
            id=f"{action.id}/outcome", cause=action.id, failed=outcome == DECLINED
        )


def _sender_and_receiver(action: PerformedAction, order: Order | None) -> tuple[str, str]:
    """Return the sender and receiver of an action; customers confirm payments at their bank."""
    if action.actor == CUSTOMER:
        if action.action in (RETURN, SHOP_REQUEST):
            return CUSTOMER, SHOP
        attempt = order.transaction(action.transaction_id or "") if order is not None else None
        asks_bank = attempt is not None and METHODS_BY_NAME[attempt.method].capabilities.page in BANK_PAGES
        return CUSTOMER, BANK if action.action in DECIDED_BY_BANK and asks_bank else SERVICE
    return PARTY_BY_ACTOR.get(action.actor, action.actor), SERVICE


def _status_entries(statuses: list[ReachedStatus]) -> Iterator[TimelineEntry]:
    """Yield status changes; an order and its attempt share an entry if both reach the status together."""
    orders = {(item.order_id, item.real_at, item.status) for item in statuses if item.payment_method is None}
    for item in statuses:
        if item.payment_method is None:
            yield _entry(item, "status", item.status)._replace(status=item.status, cause=item.cause)
        elif (item.order_id, item.real_at, item.status) not in orders:
            words = f"{item.payment_method}: {item.status}"
            yield _entry(item, "attempt-status", words)._replace(status=item.status, cause=item.cause)


def _agenda_entry(event: AgendaEvent) -> TimelineEntry:
    return _entry(event, "agenda-event", event.kind.replace("-", " "))


def _failure_entry(failure: LoggedFailure) -> TimelineEntry:
    words = f"{failure.label if failure.kind == JOB_KIND else failure.kind.replace('-', ' ')} failed"
    return _entry(failure, "failure", words)._replace(failed=True, detail=failure.error)


def _webhook_entries(delivery: Delivery, cause: str | None) -> Iterator[TimelineEntry]:
    for index, (attempt, (begun, ended)) in enumerate(
        zip(delivery.attempts, _attempt_spans(delivery), strict=True), 1
    ):
        source = Source(f"{delivery.id}/{index}", attempt.at, begun, delivery.order_id)
        failed, fault = not attempt.reply.is_delivered, attempt.reply.fault
        how = "resent with changes" if attempt.number == MANUAL_ATTEMPT else f"attempt {attempt.number}"
        label = f"webhook, {how}: {delivery.status}{f' · {fault}' if fault is not None else ''}"
        yield _entry(source, "webhook", label, receiver=SHOP)._replace(
            cause=cause, failed=failed, detail=delivery.status, lost=fault is not None
        )
        cause = source.id
        if fault is None:
            response = source._replace(id=f"{cause}/response", real_at=ended)
            yield _webhook_response_entry(response, attempt.reply)._replace(cause=cause)


def _webhook_response_entry(source: Source, reply: Reply) -> TimelineEntry:
    return _entry(source, "webhook-response", _answer_text(reply), SHOP)._replace(
        status=reply.status,
        failed=not reply.is_delivered,
        detail="\n".join(filter(None, (reply.warning, reply.traceback))) or None,
        duration_ms=round(reply.duration_ms) or None,
    )


def _attempt_spans(delivery: Delivery) -> Iterator[tuple[datetime, datetime]]:
    """Yield the start and end of each attempt; concurrent copies share both, for a stable order."""
    at_once: list[list[tuple[int, datetime, datetime]]] = []
    for attempt in delivery.attempts:
        begun, number = attempt.real_at, attempt.number
        group = at_once[-1] if at_once else []
        if not group or number != group[0][0] or begun > min(ended for _, _, ended in group):
            at_once.append(group := [])
        group.append((number, begun, begun + timedelta(milliseconds=attempt.reply.duration_ms)))
    for group in at_once:
        yield from [(min(each[1] for each in group), max(each[2] for each in group))] * len(group)


def _answer_text(reply: Reply) -> str:
    if reply.status is None:
        return reply.error or reply.warning or "no response"
    words = _strip_markup(reply.body) if reply.status >= ERROR_STATUS_MIN else ""
    shown = words if len(words) <= TEXT_SHOWN_MAX else f"{words[: TEXT_SHOWN_MAX - 1]}…"
    return " · ".join(filter(None, (str(reply.status), shown)))


def _strip_markup(body: str) -> str:
    """Return the text of a response, without HTML markup."""
    if body.lstrip()[:1] == "<":
        body = unescape(HTML_TAG.sub(" ", HTML_INVISIBLE.sub(" ", body)))
    return " ".join(body.split())


REPETITIONS_MIN: Final = 3
BLOCK_LENGTH_MAX: Final = 8
FOLDED_KIND: Final = "folded"


def fold(timeline_entries: Sequence[TimelineEntry]) -> Iterator[TimelineEntry]:
    """Fold equal exchanges in a row, such as retries with one answer, into the first one and a note."""
    at = 0
    while at < len(timeline_entries):
        size, times = _longest_repetition(timeline_entries, at)
        yield from timeline_entries[at : at + size]
        repeated = timeline_entries[at + size : at + size * times]
        if repeated:
            yield repeated[-1].as_note(repeated[0].id, FOLDED_KIND, _describe_folded(repeated, times - 1))
        at += size * times


def _describe_folded(repeated: Sequence[TimelineEntry], times: int) -> str:
    numbers = {attempt_number(each) for each in repeated if each.kind == "webhook"}
    are_retries = len(numbers) == times and min(numbers) > 1  # not the first attempts of several orders
    what = f"attempts {min(numbers)} to {max(numbers)}" if are_retries else f"{times} more"
    return f"{what} like these, until {repeated[-1].at:%H:%M:%S}"


def _longest_repetition(timeline_entries: Sequence[TimelineEntry], at: int) -> tuple[int, int]:
    """Return the length and the number of repetitions of the longest repeated block at this index."""
    best = (1, 1)
    for size in range(1, BLOCK_LENGTH_MAX + 1):
        block, times = _comparable(timeline_entries[at : at + size]), 1
        while _comparable(timeline_entries[at + size * times : at + size * (times + 1)]) == block:
            times += 1
        if times >= REPETITIONS_MIN and size * times > best[0] * best[1]:
            best = size, times
    return best


def _comparable(block: Sequence[TimelineEntry]) -> list[tuple[str, str, str]]:
    return [(each.sender, each.receiver, _label_without_number(each)) for each in block]


def _label_without_number(timeline_entry: TimelineEntry) -> str:
    """Return a label without the number of an attempt, in which retries differ."""
    label = timeline_entry.label
    return label.partition(":")[2] if timeline_entry.kind == "webhook" else label
