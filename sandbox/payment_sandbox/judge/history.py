"""One history of a project or an order: entries with sender, receiver and cause, causes first.

``history`` makes the entries from the records, ``story`` says what those of an order mean, with its mistakes,
``beliefs`` reads from them what the shop knew, and ``fold`` shows equal exchanges in a row once.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from html import unescape
from typing import Annotated, Final, NamedTuple

from payment_sandbox.judge.evidence import (
    Finding,
    end_of,
    parse_object,
    status_in,
    status_read,
    whole_number,
)
from payment_sandbox.kernel.descriptions import INTERNAL, Key, OneOf
from payment_sandbox.kernel.patterns import UUID, Pattern
from payment_sandbox.methods import METHODS_BY_NAME
from payment_sandbox.methods.common import BANK_PAGES
from payment_sandbox.orders.actions import BANK, CUSTOMER, PROCESSOR, SCREENING
from payment_sandbox.orders.amounts import AMOUNT_CENTS_MAX, convert_cents, euros
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
    VIA_CONTROL,
    VIA_SCENARIO,
    VISIT,
    AgendaEvent,
    LoggedFailure,
    LoggedRequest,
    PerformedAction,
    ReachedStatus,
    number_in,
)
from payment_sandbox.scenarios.sentences import fault_in_words

SHOP: Final = "shop"
SERVICE: Final = "service"
PARTIES: Final = (CUSTOMER, SHOP, SERVICE, BANK, SCREENING)
KINDS: Final = (
    *("request", "response", "status", "attempt-status", "action", "outcome"),
    *("webhook", "webhook-response", "agenda-event", "failure"),
)
ORDER_PATH: Final = "/v1/orders/…/"
ATTEMPT_PATH: Final = f"{ORDER_PATH}transactions/…/"

Record = LoggedRequest | PerformedAction | ReachedStatus | AgendaEvent | LoggedFailure


class TimelineEntry(NamedTuple):
    """A message from one party to another, or an event at one of them."""

    id: str
    at: Annotated[datetime, "Sandbox time."]
    real_at: datetime
    sender: Annotated[str, Key("from"), OneOf(lambda: PARTIES)]
    receiver: Annotated[str, Key("to"), OneOf(lambda: PARTIES)]
    kind: Annotated[str, OneOf(lambda: KINDS)]
    label: str
    status: Annotated[int | str | None, "An HTTP status, or the status of an order."] = None
    cause: Annotated[str | None, "The id of an earlier entry."] = None
    order_id: str | None = None
    failed: bool = False  # refused, lost or declined
    rule: Annotated[str | None, "The rule that refused a request."] = None
    detail: str | None = None
    duration_ms: Annotated[int | None, "The shop's response time; null if it answered at once."] = None
    lost: Annotated[bool, "Whether a fault withheld the message from its receiver."] = False
    record: Annotated[Record | Delivery | None, INTERNAL] = None
    attempt: Annotated[int, INTERNAL] = 0  # the number of a webhook's attempt
    remark: Annotated[str, INTERNAL] = ""  # ends the label where people read it

    def as_note(self, note_id: str, kind: str, label: str) -> "TimelineEntry":
        """Return a note by the shop to itself, at the time of this entry."""
        return self._replace(
            id=note_id, sender=SHOP, receiver=SHOP, kind=kind, label=label, detail=None, duration_ms=None
        )


def short_path(path: str) -> str:
    """Shorten the ids in a path, and omit the order in paths below an order."""
    shortened = UUID.sub("…", path)
    if shortened == ORDER_PATH or not shortened.startswith(ORDER_PATH):
        return shortened
    return f"…/{shortened.removeprefix(ATTEMPT_PATH).removeprefix(ORDER_PATH)}"


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
RETRY_NOTE: Final = " · retry"
COPY_NOTE: Final = " · a copy"
BY_HAND_NOTE: Final = " · by hand"
PARTY_BY_ACTOR: Final = {PROCESSOR: BANK, MERCHANT_ACTOR: SHOP}
APPROVED: Final = "approved"
DECLINED: Final = "declined"
DECIDED_BY_BANK: Final = ("pay", "fail")
TEXT_SHOWN_MAX: Final = 160  # characters of a shop's response
HTML_INVISIBLE: Final = Pattern(r"<(head|style|script)\b.*?(?:</\1>|\Z)", re.DOTALL | re.IGNORECASE)
HTML_TAG: Final = Pattern(r"<[^<>]*>?")


def history(epoch: Epoch, order_id: str | None = None) -> list[TimelineEntry]:
    """Return the whole history, or the history of one order and its refunds.

    Records of one edit share the real time, so the numbers in their ids break ties.

    Raises:
        Unknown: the order does not exist.
    """
    order_ids = None
    if order_id is not None:
        order = epoch.find_order(order_id)
        order_ids = (order.id, *(refund.refund_id for refund in order.refunds))
    return sorted(_entries(epoch, order_ids), key=lambda each: (each.real_at, number_in(each.id)))


def _entries(epoch: Epoch, order_ids: Sequence[str] | None) -> Iterator[TimelineEntry]:
    journal, store = epoch.journal, epoch.store
    for request in journal.of(LoggedRequest, order_ids):
        yield from _exchange_entries(request)
    statuses = journal.of(ReachedStatus, order_ids)
    outcomes: dict[str | None, str] = {each.cause: APPROVED for each in statuses}
    outcomes |= {each.cause: DECLINED for each in statuses if each.status == TransactionStatus.ERROR}
    for action in journal.of(PerformedAction, order_ids):
        yield from _action_entries(action, store.order(action.order_id or ""), outcomes.get(action.id))
    yield from _status_entries(statuses)
    for event in journal.of(AgendaEvent, order_ids):
        yield _entry(event, "agenda-event", event.kind.replace("-", " "))
    for failure in journal.of(LoggedFailure, order_ids):
        what = failure.label if failure.kind == JOB_KIND else failure.kind.replace("-", " ")
        yield _entry(failure, "failure", f"{what} failed")._replace(failed=True, detail=failure.error)
    causes = {(each.order_id, each.status, each.at): each.id for each in statuses}
    for delivery in _deliveries(epoch, order_ids):
        cause = causes.get((delivery.order_id, delivery.status, delivery.created))
        yield from _webhook_entries(delivery, cause)


def _deliveries(epoch: Epoch, order_ids: Sequence[str] | None) -> list[Delivery]:
    if order_ids is None:
        return epoch.store.deliveries()
    return [delivery for order_id in order_ids for delivery in epoch.store.deliveries_of(order_id)]


def _entry(
    record: Record, kind: str, label: str, sender: str = SERVICE, receiver: str = SERVICE
) -> TimelineEntry:
    """Return the entry of a record, by default for a change inside the service."""
    real_at, order_id = record.real_at or record.at, record.order_id
    return TimelineEntry(
        record.id, record.at, real_at, sender, receiver, kind, label, order_id=order_id, record=record
    )


def _exchange_entries(entry: LoggedRequest) -> Iterator[TimelineEntry]:
    yield _entry(entry, "request", f"{entry.method} {short_path(entry.path)}{_resent_note(entry)}", SHOP)
    fault, is_refused = entry.fault, entry.status is None or entry.status >= ERROR_STATUS_MIN
    label = " ".join(filter(None, (_status_text(entry), entry.rule)))
    yield _entry(entry, "response", label, receiver=SHOP)._replace(
        id=f"{entry.id}/response",
        real_at=end_of(entry),
        status=entry.status,
        cause=entry.id,
        failed=is_refused or (fault is not None and fault.changes_response),
        rule=entry.rule,
        detail=f"fault: {fault_in_words(fault.document)}" if fault is not None else None,
        lost=fault is not None and fault.sends_nothing,
    )


def _status_text(entry: LoggedRequest) -> str:
    return str(entry.status) if entry.status is not None else "no response"


def _resent_note(entry: LoggedRequest) -> str:
    return RESENT_NOTE if entry.resent_of is not None else ""


def _action_entries(
    action: PerformedAction, order: Order | None, outcome: str | None
) -> Iterator[TimelineEntry]:
    words = ACTION_PHRASES.get(action.action, action.action).format_map({"payment_method": "", **action.how})
    sender, receiver = _sender_and_receiver(action, order)
    reason = action.how.get("reason")
    yield _entry(action, "action", words, sender, receiver)._replace(
        failed=action.action in ("fail", "decline", "error"),
        detail=f"{reason} (via {action.via})" if reason else f"via {action.via}",
        remark=BY_HAND_NOTE if action.via == VIA_CONTROL and action.actor != MERCHANT_ACTOR else "",
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


def _webhook_entries(delivery: Delivery, cause: str | None) -> Iterator[TimelineEntry]:
    numbers = set[int]()
    for index, (attempt, (begun, ended)) in enumerate(
        zip(delivery.attempts, _attempt_spans(delivery), strict=True), 1
    ):
        number, reply, fault = attempt.number, attempt.reply, attempt.reply.fault
        how = "resent with changes" if number == MANUAL_ATTEMPT else f"attempt {number}"
        sent = TimelineEntry(
            f"{delivery.id}/{index}",
            attempt.at,
            begun,
            SERVICE,
            SHOP,
            "webhook",
            f"webhook, {how}: {delivery.status}{f' · {fault}' if fault is not None else ''}",
            cause=cause,
            order_id=delivery.order_id,
            failed=not reply.is_delivered,
            detail=delivery.status,
            lost=fault is not None,
            record=delivery,
            attempt=number,
            remark=COPY_NOTE if number in numbers else RETRY_NOTE if number > 1 else "",
        )
        yield sent
        numbers |= {number} - {MANUAL_ATTEMPT}
        cause = sent.id
        if fault is None:
            yield sent._replace(
                id=f"{cause}/response",
                real_at=ended,
                sender=SHOP,
                receiver=SERVICE,
                kind="webhook-response",
                label=_answer_text(reply),
                status=reply.status,
                cause=cause,
                detail="\n".join(filter(None, (reply.warning, reply.traceback))) or None,
                duration_ms=round(reply.duration_ms) or None,
                remark="",
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
    body = reply.body if reply.status >= ERROR_STATUS_MIN else ""
    if body.lstrip()[:1] == "<":
        body = unescape(HTML_TAG.sub(" ", HTML_INVISIBLE.sub(" ", body)))
    words = " ".join(body.split())
    shown = words if len(words) <= TEXT_SHOWN_MAX else f"{words[: TEXT_SHOWN_MAX - 1]}…"
    return " · ".join(filter(None, (str(reply.status), shown)))


REFUSAL_LENGTH_MAX: Final = 60  # characters of a refusal
ORDER: Final = "order"
ORDERS_SEGMENT: Final = "orders"
QR_CODES: Final = "bankqr"
CALL_DESCRIPTIONS: Final = {
    ("POST", ORDERS_SEGMENT): "creates the order",
    ("GET", ORDER): "reads the order",
    ("PUT", ORDER): "changes the order",
    ("DELETE", ORDER): "cancels the order",
    ("POST", "captures"): "captures",
    ("POST", "voids"): "voids",
    ("POST", "refunds"): "refunds",
}
UNREAD_RULE: Final = "HOOK-08"
MISSING_KIND: Final = "missing"  # an expected step that did not occur


def story(
    epoch: Epoch, order_id: str, timeline_entries: Iterable[TimelineEntry], findings: Iterable[Finding]
) -> Iterator[TimelineEntry]:
    """Yield an order's history with calls in words, reasons, marked mistakes, and notes on missing reads."""
    mistakes = [finding for finding in findings if finding.is_open]
    unread = set[str]().union(*(each.shown_by for each in mistakes if each.rule == UNREAD_RULE))
    wrong = set[str]().union(*(each.shown_by for each in mistakes)) - unread
    for entry in timeline_entries:
        yield entry._replace(label=_words(epoch, entry), failed=entry.failed or entry.id in wrong)
        if entry.kind == "webhook-response" and entry.cause in unread:
            label = f"your shop did not read the {ORDER if entry.order_id == order_id else 'refund'}"
            yield entry.as_note(f"{entry.id}/missing", MISSING_KIND, label)._replace(failed=True)


def _words(epoch: Epoch, entry: TimelineEntry) -> str:
    """Describe the shop's calls in words; the label of an unusual step ends with the reason."""
    record = entry.record
    if isinstance(record, LoggedRequest):
        return describe_call(record) or entry.label if entry.kind == "request" else _describe_response(record)
    if isinstance(record, PerformedAction) and record.via == VIA_SCENARIO:
        decided = epoch.journal.explanation(record.transaction_id)
        if decided is not None and decided["rule"] is not None:
            return f"{entry.label} · rule {decided['rule'] + 1} of {decided['scenario']}"
    return f"{entry.label}{entry.remark}"


def describe_call(entry: LoggedRequest) -> str:
    """Describe a known call in words; empty for other calls."""
    _, collection, *segments = [*entry.path.strip("/").split("/"), ""]
    if collection == QR_CODES and entry.method == "POST":
        return f"creates a QR code{_amount_in(entry)}"
    if collection != ORDERS_SEGMENT:
        return ""
    # The collections below the order, as in /v1/orders/<id>/transactions/<id>/captures/
    parts = [part for part in segments[1::2] if part and part != "transactions"]
    target = parts[0] if parts else ORDER if segments[0] else ORDERS_SEGMENT
    verb = CALL_DESCRIPTIONS.get((entry.method, target), "")
    return f"{verb}{_amount_in(entry)}{_resent_note(entry)}" if verb else ""


def _amount_in(entry: LoggedRequest) -> str:
    amount = whole_number(parse_object(entry.request).get("amount"))
    return "" if amount is None or abs(amount) > AMOUNT_CENTS_MAX else f" · {euros(amount)}"


def _describe_response(entry: LoggedRequest) -> str:
    """Describe a response by a fault, the reason for a refusal, or the status of the order."""
    status, fault = _status_text(entry), entry.fault
    if fault is not None and fault.sends_nothing:
        return f"{status} · lost (fault)" if entry.status is not None else f"{status} (fault)"
    if fault is not None:
        return f"{status} · sandbox fault: {fault_in_words(fault.document)}"
    is_refused = entry.status is not None and entry.status >= ERROR_STATUS_MIN
    return " · ".join(filter(None, (status, short_reason(entry) if is_refused else status_in(entry))))


def refusal_message(entry: LoggedRequest) -> str:
    """Return a refusal's message with amounts in euros; empty if the call was not refused."""
    return convert_cents((entry.error() or "").partition(": ")[2])


def short_reason(entry: LoggedRequest) -> str:
    """Return the reason for a refusal in short form: without details in brackets, and with short ids."""
    message = UUID.sub(r"\1…", refusal_message(entry)).partition(" (")[0] or entry.rule or ""
    return message if len(message) <= REFUSAL_LENGTH_MAX else f"{message[:REFUSAL_LENGTH_MAX]}…"


class Belief(NamedTuple):
    """The last status of an order that the shop has read, and the actual status.

    The first belief comes from the response to the create call.
    """

    at: datetime
    real_at: datetime
    shop: str
    service: str


def beliefs(timeline_entries: Sequence[TimelineEntry], order: Order) -> list[Belief]:
    """Return the changes to an order's status and to the shop's belief, oldest first."""
    rows: list[Belief] = []
    own = [each for each in timeline_entries if each.order_id == order.id]
    has_statuses = any(each.kind == "status" for each in own)  # the journal may have dropped them
    shop, service, known = "", "" if has_statuses else str(order.status), ("", "")
    for entry in own:
        if entry.kind == "status":
            service = entry.label
        elif entry.kind == "response" and isinstance(entry.record, LoggedRequest):
            shop = status_read(entry.record) or shop
        if (shop, service) != known and "" not in (shop, service):
            known = shop, service
            rows.append(Belief(entry.at, entry.real_at, *known))
    return rows


REPETITIONS_MIN: Final = 3
BLOCK_LENGTH_MAX: Final = 8
FOLDED_KIND: Final = "folded"


def fold(timeline_entries: Sequence[TimelineEntry]) -> Iterator[TimelineEntry]:
    """Fold equal exchanges in a row, such as retries with one answer, into the first one and a note."""
    compared = [  # attempts without their numbers
        (each.sender, each.receiver, each.label.partition(":")[2] if each.kind == "webhook" else each.label)
        for each in timeline_entries
    ]
    at = 0
    while at < len(timeline_entries):
        size, times = _longest_repetition(compared, at)
        yield from timeline_entries[at : at + size]
        repeated = timeline_entries[at + size : at + size * times]
        if repeated:
            numbers = {each.attempt for each in repeated if each.kind == "webhook"}
            are_retries = len(numbers) == times - 1 and min(numbers) > 1  # not the first of several orders
            what = f"attempts {min(numbers)} to {max(numbers)}" if are_retries else f"{times - 1} more"
            label = f"{what} like these, until {repeated[-1].at:%H:%M:%S}"
            yield repeated[-1].as_note(repeated[0].id, FOLDED_KIND, label)
        at += size * times


def _longest_repetition(compared: Sequence[object], at: int) -> tuple[int, int]:
    """Return the length and the number of repetitions of the longest repeated block at this index."""
    best = (1, 1)
    for size in range(1, BLOCK_LENGTH_MAX + 1):
        block, times = compared[at : at + size], 1
        while compared[at + size * times : at + size * (times + 1)] == block:
            times += 1
        if times >= REPETITIONS_MIN and size * times > best[0] * best[1]:
            best = size, times
    return best
