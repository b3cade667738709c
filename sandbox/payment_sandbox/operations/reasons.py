"""Reasons for an order's steps: manual actions, scenario rules, retries and copies."""

from collections.abc import Iterator, Sequence
from typing import Final

from payment_sandbox.operations.history import TimelineEntry
from payment_sandbox.projects.epoch import Epoch
from payment_sandbox.projects.journal import MERCHANT_ACTOR, VIA_CONTROL, VIA_SCENARIO, PerformedAction

RETRY_NOTE: Final = " · retry"
COPY_NOTE: Final = " · a copy"
BY_HAND_NOTE: Final = " · by hand"


def webhook_of(timeline_entry: TimelineEntry) -> str:
    """Return the webhook id of an attempt."""
    return timeline_entry.id.partition("/")[0]


def attempt_number(timeline_entry: TimelineEntry) -> int:
    """Return the number of an attempt; 0 for a manual resend with changes."""
    words = timeline_entry.label.partition(":")[0].rpartition(" ")[2]
    return int(words) if words.isascii() and words.isdecimal() else 0


def with_reasons(epoch: Epoch, timeline_entries: Sequence[TimelineEntry]) -> Iterator[TimelineEntry]:
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
