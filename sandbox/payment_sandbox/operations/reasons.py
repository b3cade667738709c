"""Why a step of an order went as it did: by hand, by a rule of the scenario, or because it came again."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from payment_sandbox.operations.history import Happening
from payment_sandbox.projects.epoch import Epoch
from payment_sandbox.projects.journal import MERCHANT, VIA_CONTROL, VIA_SCENARIO, PerformedAction

AGAIN: Final = " · again"
A_COPY: Final = " · a copy"
BY_HAND: Final = " · by hand"


def webhook_of(happening: Happening) -> str:
    """The id of the webhook that a try belongs to."""
    return happening.id.partition("/")[0]


def number_of_try(happening: Happening) -> int:
    """The number of a try; 0 of one that somebody has sent otherwise."""
    words = happening.label.partition(":")[0].rpartition(" ")[2]
    return int(words) if words.isascii() and words.isdecimal() else 0


def with_reasons(epoch: Epoch, happenings: Sequence[Happening]) -> Iterator[Happening]:
    """The happenings; where one went otherwise than it goes by itself, its label ends with the reason."""
    about = frozenset(each.order_id for each in happenings)
    actions = {taken.id: taken for taken in epoch.journal.actions(about)}
    tried: set[tuple[str, int]] = set()
    for happening in happenings:
        if happening.kind == "webhook":
            yield happening._replace(label=f"{happening.label}{_repeat(happening, tried)}")
        elif happening.kind in ("action", "outcome"):
            taken = actions.get(happening.cause or happening.id)
            yield happening._replace(label=f"{happening.label}{_reason(epoch, happening, taken)}")
        else:
            yield happening


def _repeat(happening: Happening, tried: set[tuple[str, int]]) -> str:
    """What marks a webhook that came before: a copy has the number of its original."""
    number = number_of_try(happening)
    this = webhook_of(happening), number
    is_copy = number > 0 and this in tried
    tried.add(this)
    if is_copy:
        return A_COPY
    return AGAIN if number > 1 else ""


def _reason(epoch: Epoch, happening: Happening, taken: PerformedAction | None) -> str:
    if taken is None or taken.actor == MERCHANT:
        return ""
    if taken.via == VIA_CONTROL:
        return BY_HAND if happening.kind == "action" else ""
    if taken.via != VIA_SCENARIO:
        return ""
    decided: Mapping[str, object] = epoch.journal.explanation(taken.transaction_id) or {}
    rule = decided.get("rule")
    return f" · rule {rule + 1} of {decided['scenario']}" if isinstance(rule, int) else ""
