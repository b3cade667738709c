"""The space of rehearsals: every interaction of a run, with every possible outcome.

Interactions and outcomes are derived from the engine: its effects, actions, refusals, and the outcomes of
scenarios. Variations of the catalogue fill a cell, or a reason excludes it.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from payment_sandbox.forms.fields import Choice
from payment_sandbox.orders.actions import ACTIONS, BANK, CUSTOMER, Action
from payment_sandbox.orders.refusals import Refusal, kinds_of_refusals
from payment_sandbox.scenarios.effects import ErrorStatus, Fault, RequestEffect, WebhookEffect
from payment_sandbox.scenarios.forms import ThenForm
from payment_sandbox.scenarios.variation import (
    ACTION,
    ATTEMPT,
    CALLS,
    CHANGE,
    JOB,
    PRESS,
    WEBHOOK,
    ChangedNumber,
    OrderAction,
    OtherCustomer,
    Passes,
    PriorEvent,
    Repeat,
    ReplacementScene,
    Step,
    Variation,
)
from payment_sandbox.scenarios.variations import (
    ACTS_LAST_MOMENT,
    ACTS_TOO_LATE,
    ACTS_TWICE,
    AFTER_EARLIER,
    CANCELS_EARLIER,
    CANCELS_THEN_PAYS,
    CAPTURED_BY_HAND,
    CHANGED,
    EXPIRED,
    FAILS_THEN_PAYS,
    LAPSES,
    PAYS_BOTH,
    PAYS_EARLIER,
    PAYS_EARLIER_FIRST,
    RESTARTS,
    RETURNS_FIRST,
    RETURNS_UNPAID,
    SENDS_LESS,
    SENDS_MORE,
    TWO_TABS,
    VOIDED_BY_HAND,
    WALKS_AWAY,
    rehearsed,
)

BEFORE_EXPIRY: Final = "at the last moment"
AFTER_EXPIRY: Final = "after the expiry"
TWICE: Final = "twice"
TOGETHER: Final = "twice at the same moment"
NEVER: Final = "never"
VALUES: Final = "with another value"
EARLIER: Final = "while an earlier attempt ends"
TIME: Final = "and time passes"
RESTART: Final = "and the shop restarts"
RETURN: Final = "and the customer returns"
RETRY: Final = "after another attempt on the same page"
ANOTHER: Final = "after another customer"
UNLIKE: Final = "with another choice"
LATE: Final = "late"

SCENE_OUTCOMES: Final[Mapping[ReplacementScene, str]] = {
    ACTS_LAST_MOMENT: BEFORE_EXPIRY,
    ACTS_TOO_LATE: AFTER_EXPIRY,
    ACTS_TWICE: TWICE,
    WALKS_AWAY: NEVER,
    SENDS_LESS: VALUES,
    SENDS_MORE: VALUES,
    PAYS_BOTH: EARLIER,
    PAYS_EARLIER: EARLIER,
    PAYS_EARLIER_FIRST: EARLIER,
    CANCELS_EARLIER: EARLIER,
    AFTER_EARLIER: EARLIER,
    LAPSES: TIME,
    RESTARTS: RESTART,
    RETURNS_FIRST: RETURN,
    RETURNS_UNPAID: RETURN,
    TWO_TABS: RETURN,
    FAILS_THEN_PAYS: RETRY,
    CANCELS_THEN_PAYS: RETRY,
}
"""The outcomes of actions, by scene."""

REFUSED_BY: Final[Mapping[PriorEvent, tuple[str, ...]]] = {
    CAPTURED_BY_HAND: ("CaptureExceedsRemainder",),
    VOIDED_BY_HAND: ("AuthorizationMissing",),
    EXPIRED: ("AuthorizationExpired",),
    CHANGED: ("OrderChanged",),
}
"""The refusals of changes, by prior event."""

ANY: Final = "*"


class Cell(NamedTuple):
    """An interaction, such as ``change`` or ``customer pay``, and one of its outcomes."""

    interaction: str
    outcome: str


PAGE_ONLY: Final = "only the customer sees the page; the shop sees the outcome"
OVER: Final = "only a new attempt can follow, and that is a separate action"
BY_SERVICE: Final = "the service decides once, and variations change its answer to the attempt"
NOT_BY_SHOP: Final = "no change by a shop is refused for this reason"
BY_FAULT: Final = "`refused` covers it: the shop can only react in the same way"

UNREAD: Final = "for the shop, this equals `unavailable`: it receives no information"
LOST: Final = "for the shop, this equals `answer-lost` or `unavailable`, which it cannot distinguish"
LOST_OR_NOT: Final = ("hang", "hang, after", "reset", "reset, after", "truncate")

EXCLUDED: Final[Mapping[Cell, str]] = {
    Cell("create", "stale"): "a new order has no earlier version",
    Cell("change", "stale"): "the response already shows the change",
    Cell("read", "early"): "a read causes no webhooks",
    Cell("read", "status 4xx"): "an existing order can be read",
    **{Cell("read", outcome): UNREAD for outcome in ("status 4xx, after", "status 5xx, after", *LOST_OR_NOT)},
    **{
        Cell(kind, outcome): LOST
        for kind in ("create", CHANGE)
        for outcome in ("status 4xx, after", "status 5xx, after", *LOST_OR_NOT)
        if outcome != "reset, after"
    },
    **{
        Cell(CHANGE, refusal): BY_FAULT
        for refusal in (
            "NothingToRefund",
            "RefundExceedsCaptured",
            "OrderNotCancellable",
            "OrderNotUpdatable",
        )
    },
    **{
        Cell(CHANGE, refusal): "the shop's own mistake, which the review finds"
        for refusal in ("CaptureStyleMixed", "AuthorizationDelayed", "VoidExceedsRemainder", "KeyReused")
    },
    **{
        Cell(CHANGE, refusal): NOT_BY_SHOP
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
    ): "for the shop, this equals an answer with 503: the same webhook arrives two minutes later",
    Cell("customer visit", ANY): PAGE_ONLY,
    Cell("customer choose", ANY): PAGE_ONLY,
    Cell("customer pay", "customer visit"): "for the shop, this equals a customer who walks away",
    Cell("customer pay", "customer choose"): "this starts another attempt on the same page",
    Cell("customer pay", VALUES): "the page fixes the amount",
    **{Cell(f"customer {how}", ANY): OVER for how in ("fail", "cancel")},
    Cell("bank credit", TIME): "received money needs no capture, so nothing lapses",
    Cell("bank credit", RETRY): "a transfer has no page",
    Cell("bank credit", RETURN): "a transfer has no page from which a customer returns",
    **{
        Cell(action, ANY): BY_SERVICE
        for action in ("screening approve", "screening decline", "screening error", "processor fail")
    },
    Cell(ATTEMPT, "customer"): "customers act through actions, even in a scenario",
    Cell(ATTEMPT, "credit"): "a bank acts by an action, even in a scenario",
    Cell(ATTEMPT, "screening passed"): "this is the default",
    Cell(ATTEMPT, "then error"): "for the shop, this equals a screening that declines later",
    Cell(PRESS, UNLIKE): "only the shop knows the choices in its form; other tests make other choices",
    Cell(JOB, NEVER): "rehearsals cover faults of each call that a job makes, and shops without jobs",
    Cell(JOB, LATE): "variations with time after an action delay jobs",
    Cell(JOB, VALUES): "a job takes no input",
}
"""The reasons of cells without a variation; a filled cell takes precedence over ``*``."""


def cells() -> list[Cell]:
    """Return all cells of the space, without duplicates."""
    webhooks = [effect.key for effect in _subclasses(WebhookEffect) if hasattr(effect, "key")]
    outcomes: list[tuple[str, Iterable[str]]] = [
        *((kind, _outcomes_of_calls()) for kind in CALLS),
        (CHANGE, _refusals()),
        (WEBHOOK, webhooks),
        *((action.name, _outcomes_of(action)) for action in _actions()),
        (ATTEMPT, _outcomes_of_attempts()),
        (PRESS, (TWICE, TOGETHER, VALUES, ANOTHER, UNLIKE)),
        (JOB, (TWICE, TOGETHER, NEVER, LATE, VALUES)),
    ]
    every = (Cell(interaction, outcome) for interaction, each in outcomes for outcome in each)
    return list(dict.fromkeys(every))


def filled() -> dict[Cell, list[str]]:
    """Return the cells that the catalogue fills, with the variations in the users' spelling."""
    names: dict[Cell, list[str]] = {}
    for each in rehearsed():
        for kind in each.kinds:
            for cell in CELLS_OF[kind](each, kind):
                names.setdefault(cell, []).append(f"{kind}:{each.name}")
    return names


def why_excluded(cell: Cell) -> str | None:
    """Return the reason why no variation fills a cell, if any."""
    return EXCLUDED.get(cell) or EXCLUDED.get(Cell(cell.interaction, ANY))


def reasons() -> Iterator[tuple[str, list[str], str]]:
    """Yield the excluded cells by interaction and reason: interaction, outcomes, and reason."""
    known, outcomes = filled(), dict[tuple[str, str], list[str]]()
    for cell in cells():
        reason = why_excluded(cell)
        if cell not in known and reason is not None:
            outcomes.setdefault((cell.interaction, reason), []).append(cell.outcome)
    yield from ((interaction, each, reason) for (interaction, reason), each in outcomes.items())


def _refusals() -> Iterator[str]:
    """Yield the refusals by rules of orders; quotas, for example, are defined in other modules."""
    for refusal in kinds_of_refusals():
        if refusal.__module__ == Refusal.__module__:
            yield refusal.__name__


def _subclasses(kind: type[WebhookEffect]) -> Iterator[type[WebhookEffect]]:
    for subclass in kind.__subclasses__():
        yield subclass
        yield from _subclasses(subclass)


def _outcomes_of_calls() -> Iterator[str]:
    for effect in RequestEffect.__subclasses__():
        names = ("status 4xx", "status 5xx") if effect is ErrorStatus else (effect.key,)
        for name in names:
            yield name
            if effect.has_phase:
                yield f"{name}, after"


def _actions() -> Iterator[Action]:
    for actor, names in ACTIONS.items():
        yield from (Action(actor, name) for name in names)


def _outcomes_of(action: Action) -> list[str]:
    other_actions = [
        Action(action.actor, name).name for name in ACTIONS[action.actor] if name != action.action
    ]
    outcomes = dict.fromkeys(SCENE_OUTCOMES.values()) if action.actor in (CUSTOMER, BANK) else (RESTART,)
    return [*other_actions, *outcomes]


def _outcomes_of_attempts() -> Iterator[str]:
    yield from ("customer", "credit")
    for name in ("screening", "then", "processor"):
        field = ThenForm().fields[name]
        choices = field.choices if isinstance(field, Choice) else ()
        yield from (f"{name} {choice}" for choice in choices)


def _of_call(each: Variation, kind: str) -> Iterator[Cell]:
    if isinstance(each.effect, PriorEvent):
        yield from (Cell(kind, refusal) for refusal in REFUSED_BY[each.effect])
    elif isinstance(each.effect, Fault) and each.effect.effect is not None:
        effect = each.effect.effect
        name = effect.key
        if isinstance(effect, ErrorStatus):
            name = f"status {effect.status // 100}xx"
        yield Cell(kind, f"{name}, after" if each.effect.is_after else name)


def _of_webhook(each: Variation, kind: str) -> Iterator[Cell]:
    if isinstance(each.effect, WebhookEffect):
        yield Cell(kind, each.effect.key)


def _of_action(each: Variation, kind: str) -> Iterator[Cell]:
    for action in _actions():
        details = [OrderAction(action, True, True, True, is_reserved) for is_reserved in (True, False)]
        if not any(each.fits(Step(kind, 1, "", about)) for about in details):
            continue
        if isinstance(each.effect, Action):
            yield Cell(action.name, each.effect.name)
        elif isinstance(each.effect, ReplacementScene):
            yield Cell(action.name, SCENE_OUTCOMES[each.effect])
        elif isinstance(each.effect, Passes):
            yield Cell(action.name, TIME)


def _of_attempt(each: Variation, kind: str) -> Iterator[Cell]:
    outcome: Mapping[str, str] = each.effect if isinstance(each.effect, Mapping) else {}
    yield from (Cell(kind, f"{name} {choice}") for name, choice in outcome.items() if name != "after")


def _of_form(each: Variation, kind: str) -> Iterator[Cell]:
    effect = each.effect
    if isinstance(effect, Repeat):
        yield Cell(kind, TOGETHER if effect.at_once else TWICE)
    elif isinstance(effect, ChangedNumber):
        yield Cell(kind, VALUES)
    elif isinstance(effect, OtherCustomer):
        yield Cell(kind, ANOTHER)


CELLS_OF: Final[Mapping[str, Callable[[Variation, str], Iterator[Cell]]]] = {
    **dict.fromkeys(CALLS, _of_call),
    WEBHOOK: _of_webhook,
    ACTION: _of_action,
    ATTEMPT: _of_attempt,
    PRESS: _of_form,
    JOB: _of_form,
}
"""The cells of a variation, by the kind of step."""
