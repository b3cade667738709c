"""The space of rehearsals: the interactions of a run with the service, and their possible outcomes.

Interactions and outcomes are derived from the engine: its effects, actions, refusals, and the outcomes of
scenarios. Each cell has a variation in the catalogue, or a reason for its exclusion.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from payment_sandbox.forms.fields import Choice
from payment_sandbox.orders.actions import ACTIONS, Action
from payment_sandbox.orders.refusals import Refusal, refusal_classes
from payment_sandbox.scenarios.effects import ErrorStatus, Fault, RequestEffect, Reset, Silence, WebhookEffect
from payment_sandbox.scenarios.scenario_forms import ThenForm
from payment_sandbox.scenarios.variation import (
    ACTION,
    ATTEMPT,
    CALLS,
    CHANGE,
    READ,
    WEBHOOK,
    OrderAction,
    PriorEvent,
    Step,
    Variation,
)
from payment_sandbox.scenarios.variation_catalogue import (
    AUTHORIZATION_EXPIRY,
    CUSTOMER_PAYMENT,
    MANUAL_CAPTURE,
    MANUAL_PART_CAPTURE,
    MANUAL_VOID,
    ORDER_CHANGE,
    rehearsal_variations,
)

REFUSALS_BY_EVENT: Final[Mapping[PriorEvent, tuple[str, ...]]] = {
    MANUAL_CAPTURE: ("CaptureExceedsRemainder",),
    MANUAL_PART_CAPTURE: ("CaptureExceedsRemainder",),
    CUSTOMER_PAYMENT: ("OrderNotCancellable",),
    MANUAL_VOID: ("AuthorizationMissing",),
    AUTHORIZATION_EXPIRY: ("AuthorizationExpired",),
    ORDER_CHANGE: ("OrderChanged",),
}
"""The refusals of changes, by prior event."""

ANY_OUTCOME: Final = "*"


class Cell(NamedTuple):
    """An interaction, such as ``change`` or ``customer pay``, and one of its outcomes."""

    interaction: str
    outcome: str


PAGE_ONLY: Final = "only the customer sees the page; the shop sees only the outcome"
ATTEMPT_ENDED: Final = "only a new attempt can follow, and that is a separate action"
SERVICE_DECISION: Final = "the service decides only once, and variations of the attempt change its decision"
NO_SHOP_CHANGE: Final = "this reason never applies to a call by a shop"
SAME_AS_REFUSED: Final = "covered by `refused`: the shop can only react in the same way"

SAME_AS_UNAVAILABLE: Final = "to the shop, this looks like `unavailable`: the shop receives no information"
SAME_AS_ANSWER_LOST: Final = "for the shop, this is indistinguishable from `answer-lost` or `unavailable`"

EXCLUSION_REASONS: Final[Mapping[Cell, str]] = {
    Cell("create", "stale"): "a new order has no earlier version",
    Cell("change", "stale"): "the response already shows the change",
    Cell("webhook", "answer"): "covered by `twice`: the shop handles the webhook, and gets it again",
    Cell("read", "early"): "a read causes no webhooks",
    Cell("read", "status 4xx"): "an existing order can be read",
    **{
        Cell(CHANGE, refusal): SAME_AS_REFUSED
        for refusal in (
            "NothingToRefund",
            "RefundExceedsCaptured",
            "OrderNotUpdatable",
        )
    },
    **{
        Cell(CHANGE, refusal): "a mistake of the shop, reported by the review"
        for refusal in ("CaptureStyleMixed", "AuthorizationDelayed", "VoidExceedsRemainder", "KeyReused")
    },
    **{
        Cell(CHANGE, refusal): NO_SHOP_CHANGE
        for refusal in (
            "Unknown",
            "ActionNotPossible",
            "NotCompletableInTestMode",
            "RecurringSeriesExpired",
            "QrExpired",
            "QrUsed",
            "QrAmountRefused",
            "ClockBusy",
        )
    },
    Cell(
        WEBHOOK, "timeout"
    ): "to the shop, this looks like an answer with 503: the same webhook arrives two minutes later",
    Cell("customer visit", ANY_OUTCOME): PAGE_ONLY,
    Cell("customer choose", ANY_OUTCOME): PAGE_ONLY,
    Cell("customer pay", "customer visit"): "covered by `opens-page`, after which nobody pays at once",
    Cell("customer pay", "customer choose"): "this starts another attempt on the same page",
    **{Cell(f"customer {how}", ANY_OUTCOME): ATTEMPT_ENDED for how in ("fail", "cancel")},
    **{
        Cell(action, ANY_OUTCOME): SERVICE_DECISION
        for action in ("screening approve", "screening decline", "screening error", "processor fail")
    },
    Cell(ATTEMPT, "customer"): "covered by the customer's actions, even in a scenario",
    Cell(ATTEMPT, "credit"): "covered by the bank's actions, even in a scenario",
    Cell(ATTEMPT, "screening passed"): "this is the default",
    Cell(ATTEMPT, "then error"): "to the shop, this looks like a screening that declines later",
}
"""The reasons for cells without a variation; a variation takes precedence over the reason for ``*``."""


def all_cells() -> list[Cell]:
    """Return all cells of the space, without duplicates."""
    webhooks = [effect.key for effect in _subclasses(WebhookEffect) if hasattr(effect, "key")]
    outcomes: list[tuple[str, Iterable[str]]] = [
        *((kind, _call_outcomes()) for kind in CALLS),
        (CHANGE, _order_refusals()),
        (WEBHOOK, webhooks),
        *((action.name, _action_outcomes(action)) for action in _all_actions()),
        (ATTEMPT, _attempt_outcomes()),
    ]
    every = (Cell(interaction, outcome) for interaction, names in outcomes for outcome in names)
    return list(dict.fromkeys(every))


def variations_by_cell() -> dict[Cell, list[str]]:
    """Return the cells filled by the catalogue, with their variations, named as in settings."""
    names: dict[Cell, list[str]] = {}
    for variation in rehearsal_variations():
        for kind in CELL_FINDERS.keys() & variation.kinds:
            for cell in CELL_FINDERS[kind](variation, kind):
                names.setdefault(cell, []).append(f"{kind}:{variation.name}")
    return names


def exclusion_reason(cell: Cell) -> str | None:
    """Return the reason why a cell has no variation, if one is recorded."""
    if cell.interaction in CALLS and cell.outcome in set(_lost_responses(cell.interaction)):
        return SAME_AS_UNAVAILABLE if cell.interaction == READ else SAME_AS_ANSWER_LOST
    return EXCLUSION_REASONS.get(cell) or EXCLUSION_REASONS.get(Cell(cell.interaction, ANY_OUTCOME))


def _lost_responses(interaction: str) -> Iterator[str]:
    """Yield the outcomes without a response that the variations with a lost response stand for."""
    for effect in RequestEffect.__subclasses__():
        if effect.loses_response and effect not in (ErrorStatus, Silence):
            yield effect.key
            if effect is not Reset or interaction == READ:
                yield f"{effect.key}, after"
    yield from ("status 4xx, after", "status 5xx, after")


def _order_refusals() -> Iterator[str]:
    """Yield the refusals due to order rules; refusals from other modules, such as quotas, are excluded."""
    for refusal in refusal_classes():
        if refusal.__module__ == Refusal.__module__:
            yield refusal.__name__


def _subclasses(kind: type[WebhookEffect]) -> Iterator[type[WebhookEffect]]:
    for subclass in kind.__subclasses__():
        yield subclass
        yield from _subclasses(subclass)


def _call_outcomes() -> Iterator[str]:
    for effect in RequestEffect.__subclasses__():
        names = ("status 4xx", "status 5xx") if effect is ErrorStatus else (effect.key,)
        for name in names:
            yield name
            if effect.has_phase:
                yield f"{name}, after"


def _all_actions() -> Iterator[Action]:
    for actor, names in ACTIONS.items():
        yield from (Action(actor, name) for name in names)


def _action_outcomes(action: Action) -> list[str]:
    return [Action(action.actor, name).name for name in ACTIONS[action.actor] if name != action.action]


def _attempt_outcomes() -> Iterator[str]:
    yield from ("customer", "credit")
    for name in ("screening", "then", "processor"):
        field = ThenForm().fields[name]
        choices = field.choices if isinstance(field, Choice) else ()
        yield from (f"{name} {choice}" for choice in choices)


def _call_cells(variation: Variation, kind: str) -> Iterator[Cell]:
    if isinstance(variation.effect, PriorEvent):
        yield from (Cell(kind, refusal) for refusal in REFUSALS_BY_EVENT[variation.effect])
    elif isinstance(variation.effect, Fault) and variation.effect.effect is not None:
        effect = variation.effect.effect
        name = effect.key
        if isinstance(effect, ErrorStatus):
            name = f"status {effect.status // 100}xx"
        yield Cell(kind, f"{name}, after" if variation.effect.is_after else name)


def _webhook_cells(variation: Variation, kind: str) -> Iterator[Cell]:
    if isinstance(variation.effect, WebhookEffect):
        yield Cell(kind, variation.effect.key)


def _action_cells(variation: Variation, kind: str) -> Iterator[Cell]:
    for action in _all_actions():
        details = [OrderAction(action, True, True, True, is_reserved) for is_reserved in (True, False)]
        if not any(variation.applies_to(Step(kind, 1, "", about)) for about in details):
            continue
        if isinstance(variation.effect, Action):
            yield Cell(action.name, variation.effect.name)


def _attempt_cells(variation: Variation, kind: str) -> Iterator[Cell]:
    outcome: Mapping[str, str] = variation.effect if isinstance(variation.effect, Mapping) else {}
    yield from (Cell(kind, f"{name} {choice}") for name, choice in outcome.items() if name != "after")


CELL_FINDERS: Final[Mapping[str, Callable[[Variation, str], Iterator[Cell]]]] = {
    **dict.fromkeys(CALLS, _call_cells),
    WEBHOOK: _webhook_cells,
    ACTION: _action_cells,
    ATTEMPT: _attempt_cells,
}
"""The cells of a variation, by the kind of step."""
