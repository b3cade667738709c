"""The space of rehearsals: every interaction of a run, with every outcome that it can have.

Interactions and outcomes are derived from the engine: its effects, actions, refusals, and the outcomes of
scenarios. A cell is filled by variations of the catalogue, or left out for a reason.
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
    Another,
    Beforehand,
    Filled,
    OrderAction,
    Passes,
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
AGAIN: Final = "after another try on the same page"
ANOTHER: Final = "after another customer"
UNLIKE: Final = "with another choice"
LATE: Final = "late"

ENDS: Final[Mapping[ReplacementScene, str]] = {
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
    FAILS_THEN_PAYS: AGAIN,
    CANCELS_THEN_PAYS: AGAIN,
}
"""How an action of somebody can end, by the scene that plays it."""

REFUSED_BY: Final[Mapping[Beforehand, tuple[str, ...]]] = {
    CAPTURED_BY_HAND: ("CaptureExceedsRemainder",),
    VOIDED_BY_HAND: ("AuthorizationMissing",),
    EXPIRED: ("AuthorizationExpired",),
    CHANGED: ("OrderChanged",),
}
"""What happens before a change, and the refusals that it leads to."""

ANY: Final = "*"


class Cell(NamedTuple):
    """An interaction, such as ``change`` or ``customer pay``, and one of its outcomes."""

    interaction: str
    outcome: str


SEEN_ONCE: Final = "its page is for the customer only: the shop sees what comes of it"
OVER: Final = "nothing can follow it but another try, which is another action"
BY_SERVICE: Final = "the service itself decides once, and its answer to the attempt is varied"
NOT_BY_SHOP: Final = "no call of a shop for a change is refused so"
BY_FAULT: Final = "`refused` stands for it: what the shop can do is the same"

UNREAD: Final = "for the shop it is `unavailable`: it has learned nothing"
LOST: Final = "for the shop it is `answer-lost` or `unavailable`, which it cannot tell apart"
LOST_OR_NOT: Final = ("hang", "hang, after", "reset", "reset, after", "truncate")

LEFT_OUT: Final[Mapping[Cell, str]] = {
    Cell("create", "stale"): "a new order has no earlier version",
    Cell("change", "stale"): "the response is the change itself",
    Cell("read", "early"): "a read causes no webhooks",
    Cell("read", "status 4xx"): "an order that was created can be read",
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
    Cell(WEBHOOK, "timeout"): "for the shop it is an answer with 503: the same webhook two minutes later",
    Cell("customer visit", ANY): SEEN_ONCE,
    Cell("customer choose", ANY): SEEN_ONCE,
    Cell("customer pay", "customer visit"): "for the shop it is a customer who walks away",
    Cell("customer pay", "customer choose"): "it begins another try on the same page",
    Cell("customer pay", VALUES): "the page fixes the amount",
    **{Cell(f"customer {how}", ANY): OVER for how in ("fail", "cancel")},
    Cell("bank credit", TIME): "what has arrived needs no capture, so nothing lapses",
    Cell("bank credit", AGAIN): "a transfer has no page",
    Cell("bank credit", RETURN): "a transfer has no page from which a customer returns",
    **{
        Cell(action, ANY): BY_SERVICE
        for action in ("screening approve", "screening decline", "screening error", "processor fail")
    },
    Cell(ATTEMPT, "customer"): "what a customer does is an action, also in a scenario",
    Cell(ATTEMPT, "credit"): "what a bank does is an action, also in a scenario",
    Cell(ATTEMPT, "screening passed"): "as it is",
    Cell(ATTEMPT, "then error"): "for the shop it is a screening that declines later",
    Cell(PRESS, UNLIKE): "only the shop knows the choices of its form; another test makes another choice",
    Cell(JOB, NEVER): "a job that fails at each of its calls is tried; a shop without a job is, too",
    Cell(JOB, LATE): "jobs that run late are tried with time that passes after an action",
    Cell(JOB, VALUES): "a job has no values",
}
"""The cells without a variation, each with the reason; a filled cell wins over ``*``."""


def cells() -> list[Cell]:
    """Return every cell of the space, each once."""
    webhooks = [effect.key for effect in _below(WebhookEffect) if hasattr(effect, "key")]
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
    """The cells that the catalogue fills, with the names of the variations as users write them."""
    found: dict[Cell, list[str]] = {}
    for each in rehearsed():
        for kind in each.kinds:
            for cell in CELLS_OF[kind](each, kind):
                found.setdefault(cell, []).append(f"{kind}:{each.name}")
    return found


def why_left_out(cell: Cell) -> str | None:
    """Why no variation is for a cell."""
    return LEFT_OUT.get(cell) or LEFT_OUT.get(Cell(cell.interaction, ANY))


def reasons() -> Iterator[tuple[str, list[str], str]]:
    """Yield what is left out: an interaction, its outcomes, and the reason."""
    known, outcomes = filled(), dict[tuple[str, str], list[str]]()
    for cell in cells():
        reason = why_left_out(cell)
        if cell not in known and reason is not None:
            outcomes.setdefault((cell.interaction, reason), []).append(cell.outcome)
    yield from ((interaction, each, reason) for (interaction, reason), each in outcomes.items())


def _refusals() -> Iterator[str]:
    """The refusals by a rule: quotas and the like stand elsewhere."""
    for refusal in kinds_of_refusals():
        if refusal.__module__ == Refusal.__module__:
            yield refusal.__name__


def _below(kind: type[WebhookEffect]) -> Iterator[type[WebhookEffect]]:
    for below in kind.__subclasses__():
        yield below
        yield from _below(below)


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
    others = [Action(action.actor, name).name for name in ACTIONS[action.actor] if name != action.action]
    ends = dict.fromkeys(ENDS.values()) if action.actor in (CUSTOMER, BANK) else (RESTART,)
    return [*others, *ends]


def _outcomes_of_attempts() -> Iterator[str]:
    yield from ("customer", "credit")
    for name in ("screening", "then", "processor"):
        field = ThenForm().fields[name]
        choices = field.choices if isinstance(field, Choice) else ()
        yield from (f"{name} {choice}" for choice in choices)


def _of_call(each: Variation, kind: str) -> Iterator[Cell]:
    if isinstance(each.effect, Beforehand):
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
        abouts = [OrderAction(action, True, True, True, is_reserved) for is_reserved in (True, False)]
        if not any(each.fits(Step(kind, 1, "", about)) for about in abouts):
            continue
        if isinstance(each.effect, Action):
            yield Cell(action.name, each.effect.name)
        elif isinstance(each.effect, ReplacementScene):
            yield Cell(action.name, ENDS[each.effect])
        elif isinstance(each.effect, Passes):
            yield Cell(action.name, TIME)


def _of_attempt(each: Variation, kind: str) -> Iterator[Cell]:
    outcome: Mapping[str, str] = each.effect if isinstance(each.effect, Mapping) else {}
    yield from (Cell(kind, f"{name} {choice}") for name, choice in outcome.items() if name != "after")


def _of_form(each: Variation, kind: str) -> Iterator[Cell]:
    effect = each.effect
    if isinstance(effect, Repeat):
        yield Cell(kind, TOGETHER if effect.at_once else TWICE)
    elif isinstance(effect, Filled):
        yield Cell(kind, VALUES)
    elif isinstance(effect, Another):
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
