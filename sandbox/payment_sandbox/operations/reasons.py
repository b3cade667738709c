"""Reasons for an order's steps: manual actions, scenario rules, retries and copies."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from payment_sandbox.operations.history import TimelineEntry
from payment_sandbox.projects.epoch import Epoch
from payment_sandbox.projects.journal import MERCHANT, VIA_CONTROL, VIA_SCENARIO, PerformedAction

RETRY: Final = " · retry"
A_COPY: Final = " · a copy"
BY_HAND: Final = " · by hand"


def webhook_of(happening: TimelineEntry) -> str:
    """Return the webhook id of an attempt."""
    return happening.id.partition("/")[0]


def attempt_number(happening: TimelineEntry) -> int:
    """Return the number of an attempt; 0 for a manual resend with changes."""
    words = happening.label.partition(":")[0].rpartition(" ")[2]
    return int(words) if words.isascii() and words.isdecimal() else 0


def with_reasons(epoch: Epoch, happenings: Sequence[TimelineEntry]) -> Iterator[TimelineEntry]:
    """Yield the entries, with the reason at the end of the label of unusual steps."""
    about = frozenset(each.order_id for each in happenings)
    actions = {taken.id: taken for taken in epoch.journal.actions(about)}
    seen: set[tuple[str, int]] = set()
    for happening in happenings:
        if happening.kind == "webhook":
            yield happening._replace(label=f"{happening.label}{_repeat(happening, seen)}")
        elif happening.kind in ("action", "outcome"):
            taken = actions.get(happening.cause or happening.id)
            yield happening._replace(label=f"{happening.label}{_reason(epoch, happening, taken)}")
        else:
            yield happening


def _repeat(happening: TimelineEntry, seen: set[tuple[str, int]]) -> str:
    """Mark a copy or a retry of a webhook; a copy has the number of its original."""
    number = attempt_number(happening)
    key = webhook_of(happening), number
    is_copy = number > 0 and key in seen
    seen.add(key)
    if is_copy:
        return A_COPY
    return RETRY if number > 1 else ""


def _reason(epoch: Epoch, happening: TimelineEntry, taken: PerformedAction | None) -> str:
    if taken is None or taken.actor == MERCHANT:
        return ""
    if taken.via == VIA_CONTROL:
        return BY_HAND if happening.kind == "action" else ""
    if taken.via != VIA_SCENARIO:
        return ""
    decided: Mapping[str, object] = epoch.journal.explanation(taken.transaction_id) or {}
    rule = decided.get("rule")
    return f" · rule {rule + 1} of {decided['scenario']}" if isinstance(rule, int) else ""
