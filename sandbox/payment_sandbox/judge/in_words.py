"""An order's history in words: calls, reasons and mistakes."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from payment_sandbox.judge.beliefs import status_in
from payment_sandbox.judge.evidence import Finding, parse_object, whole_number
from payment_sandbox.judge.history import (
    TimelineEntry,
    attempt_number,
    history,
    resent_note,
    webhook_of,
)
from payment_sandbox.kernel.patterns import UUID
from payment_sandbox.orders.amounts import AMOUNT_CENTS_MAX, convert_cents, euros
from payment_sandbox.projects.epoch import Epoch
from payment_sandbox.projects.journal import (
    ERROR_STATUS_MIN,
    MERCHANT_ACTOR,
    VIA_CONTROL,
    VIA_SCENARIO,
    LoggedRequest,
    PerformedAction,
)
from payment_sandbox.scenarios.sentences import fault_in_words

REFUSAL_LENGTH_MAX: Final = 60  # characters of a refusal
ORDER: Final = "order"
ORDERS_SEGMENT: Final = "orders"
REFUND: Final = "refund"
CALL_DESCRIPTIONS: Final = {
    ("POST", ORDERS_SEGMENT): "creates the order",
    ("GET", ORDER): "reads the order",
    ("PUT", ORDER): "changes the order",
    ("DELETE", ORDER): "cancels the order",
    ("POST", "captures"): "captures",
    ("POST", "voids"): "voids",
    ("POST", "refunds"): "refunds",
}
QR_CODES: Final = "bankqr"
UNREAD_RULE: Final = "HOOK-08"
MISSING_KIND: Final = "missing"  # an expected step that did not occur
RETRY_NOTE: Final = " · retry"
COPY_NOTE: Final = " · a copy"
BY_HAND_NOTE: Final = " · by hand"


def describe_history(epoch: Epoch, order_id: str, findings: Iterable[Finding]) -> list[TimelineEntry]:
    """Return an order's history with calls in words, reasons, and marked mistakes.

    Raises:
        Unknown: the order does not exist.
    """
    open_findings = [finding for finding in findings if finding.is_open]
    reasoned = _with_reasons(epoch, _with_calls_in_words(epoch, history(epoch, order_id)))
    return list(_mark_mistakes(reasoned, open_findings, order_id))


def _with_calls_in_words(epoch: Epoch, timeline_entries: Sequence[TimelineEntry]) -> list[TimelineEntry]:
    """Describe the shop's calls in words: the request, and the status in the response or the refusal."""
    entries = epoch.journal.of(
        LoggedRequest, {timeline_entry.order_id for timeline_entry in timeline_entries}
    )
    words = {entry.id: describe_call(entry) for entry in entries}
    words |= {f"{entry.id}/response": _describe_response(entry) for entry in entries}
    return [
        timeline_entry._replace(label=words[timeline_entry.id] or timeline_entry.label)
        if timeline_entry.id in words
        else timeline_entry
        for timeline_entry in timeline_entries
    ]


def describe_call(entry: LoggedRequest) -> str:
    """Describe a known call in words; empty for other calls."""
    _, collection, *segments = [*entry.path.strip("/").split("/"), ""]
    if collection == QR_CODES and entry.method == "POST":
        return _with_amount("creates a QR code", entry)
    if collection != ORDERS_SEGMENT:
        return ""
    # The collections below the order, as in /v1/orders/<id>/transactions/<id>/captures/
    parts = [part for part in segments[1::2] if part and part != "transactions"]
    verb = CALL_DESCRIPTIONS.get(
        (entry.method, parts[0] if parts else ORDER if segments[0] else ORDERS_SEGMENT), ""
    )
    return f"{_with_amount(verb, entry)}{resent_note(entry)}" if verb else ""


def _with_amount(verb: str, entry: LoggedRequest) -> str:
    amount = whole_number(parse_object(entry.request).get("amount"))
    if amount is None or abs(amount) > AMOUNT_CENTS_MAX:
        return verb
    return f"{verb} · {euros(amount)}"


def _with_reasons(epoch: Epoch, timeline_entries: Sequence[TimelineEntry]) -> Iterator[TimelineEntry]:
    """Yield the entries; the label of an unusual step ends with the reason."""
    order_ids = frozenset(each.order_id for each in timeline_entries)
    actions = {action.id: action for action in epoch.journal.actions(order_ids)}
    seen: set[tuple[str, int]] = set()
    for timeline_entry in timeline_entries:
        if timeline_entry.kind == "webhook":
            yield timeline_entry._replace(
                label=f"{timeline_entry.label}{_mark_repetition(timeline_entry, seen)}"
            )
        elif timeline_entry.kind in ("action", "outcome"):
            action = actions.get(timeline_entry.cause or timeline_entry.id)
            yield timeline_entry._replace(
                label=f"{timeline_entry.label}{_describe_reason(epoch, timeline_entry, action)}"
            )
        else:
            yield timeline_entry


def _mark_repetition(timeline_entry: TimelineEntry, seen: set[tuple[str, int]]) -> str:
    """Mark a copy or a retry of a webhook; a copy has the number of its original."""
    number = attempt_number(timeline_entry)
    key = webhook_of(timeline_entry), number
    is_copy = number > 0 and key in seen
    seen.add(key)
    if is_copy:
        return COPY_NOTE
    return RETRY_NOTE if number > 1 else ""


def _describe_reason(epoch: Epoch, timeline_entry: TimelineEntry, action: PerformedAction | None) -> str:
    if action is None or action.actor == MERCHANT_ACTOR:
        return ""
    if action.via == VIA_CONTROL:
        return BY_HAND_NOTE if timeline_entry.kind == "action" else ""
    if action.via != VIA_SCENARIO:
        return ""
    decided = epoch.journal.explanation(action.transaction_id)
    if decided is None or decided["rule"] is None:
        return ""
    return f" · rule {decided['rule'] + 1} of {decided['scenario']}"


def _mark_mistakes(
    timeline_entries: Iterable[TimelineEntry], findings: Sequence[Finding], order_id: str
) -> Iterator[TimelineEntry]:
    """Mark the entries with a mistake, and add a note for each missing read of the order or its refund."""
    unread = {each for finding in findings if finding.rule == UNREAD_RULE for each in finding.shown_by}
    wrong = {each for finding in findings for each in finding.shown_by} - unread
    for timeline_entry in timeline_entries:
        yield timeline_entry._replace(failed=True) if timeline_entry.id in wrong else timeline_entry
        if timeline_entry.kind == "webhook-response" and timeline_entry.cause in unread:
            yield _note_missing_read(timeline_entry, order_id)


def _note_missing_read(answer: TimelineEntry, order_id: str) -> TimelineEntry:
    label = f"your shop did not read the {ORDER if answer.order_id == order_id else REFUND}"
    return answer.as_note(f"{answer.id}/missing", MISSING_KIND, label)._replace(failed=True)


def _describe_response(entry: LoggedRequest) -> str:
    status = str(entry.status) if entry.status is not None else "no response"
    if entry.fault is not None and entry.fault.sends_nothing:
        return f"{status} · lost (fault)" if entry.status is not None else f"{status} (fault)"
    if entry.fault is not None:
        return f"{status} · sandbox fault: {fault_in_words(entry.fault.document)}"
    if entry.status is not None and entry.status >= ERROR_STATUS_MIN:
        message = short_reason(entry)
        return f"{status} · {message}" if message else status
    order_status = status_in(entry)
    return f"{status} · {order_status}" if order_status else status


def refusal_message(entry: LoggedRequest) -> str:
    """Return a refusal's message with amounts in euros; empty if the call was not refused."""
    return convert_cents((entry.error() or "").partition(": ")[2])


def short_reason(entry: LoggedRequest) -> str:
    """Return the reason for a refusal in short form: without details in brackets, and with short ids."""
    message = UUID.sub(r"\1…", refusal_message(entry)).partition(" (")[0] or entry.rule or ""
    return message if len(message) <= REFUSAL_LENGTH_MAX else f"{message[:REFUSAL_LENGTH_MAX]}…"
