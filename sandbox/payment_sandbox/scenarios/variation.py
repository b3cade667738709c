"""Variations: steps, effects, requirements and offers."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import Flag, auto
from functools import reduce
from operator import or_
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from payment_sandbox.orders.actions import Action
from payment_sandbox.orders.webhooks import Delivery
from payment_sandbox.scenarios.effects import Fault, WebhookEffect
from payment_sandbox.scenarios.model import Subject

Document = Mapping[str, Any]
"""A part of a scenario, or settings, as data."""

StepCondition = Callable[[Any], bool]
"""Decides from the details of a step whether a variation applies to it."""

CREATE: Final = "create"  # calls by the shop
READ: Final = "read"
CHANGE: Final = "change"
WEBHOOK: Final = "webhook"
ACTION: Final = "action"  # an action by a customer or a bank
ATTEMPT: Final = "attempt"  # the service's decision on a payment or a refund
PRESS: Final = "press"  # a form submitted to the shop by the test
JOB: Final = "job"  # a run of a shop's job
TIME: Final = "time"  # a clock advance by the test
CALLS: Final = (CREATE, READ, CHANGE)


class ShopCall(NamedTuple):
    """A call by the shop."""

    method: str
    path: str


class SubmittedForm(NamedTuple):
    """A form submitted to the shop, and the kinds of values that can be changed."""

    has_number: bool = False  # a whole number, such as a quantity
    has_amount: bool = False  # an amount with cents
    has_choice: bool = False  # a select or radio button with another option
    has_parts: bool = False  # a whole number above one, which can be split


class OrderAction(NamedTuple):
    """An action on an order."""

    action: Action
    is_hosted: bool
    has_return: bool  # the customer returns to a page of the shop
    has_earlier_attempts: bool  # earlier attempts that can still be paid
    has_authorization: bool  # the action authorizes an amount
    transfer: str | None = None  # the page's method for a transfer that can arrive


class JobRun(NamedTuple):
    """A run of one of the shop's jobs."""

    job: str
    changes_orders: bool  # whether the run creates or changes an order


class ClockAdvance(NamedTuple):
    """A clock advance."""

    has_authorization: bool  # an authorization is open


StepDetails = ShopCall | SubmittedForm | OrderAction | Delivery | Subject | JobRun | ClockAdvance
"""The details of a step: a call, a form, an action, a webhook, an attempt's subject, a run or an advance."""


class Step(NamedTuple):
    """A step of a test: its kind, its number within the kind, a label, and details."""

    kind: str
    number: int
    label: str
    about: StepDetails

    @property
    def name(self) -> str:
        """The name in rehearsals."""
        return f"{self.kind}:{self.number}"


class Trait(Flag):
    """A variation's requirements for the shop and the rehearsed test."""

    AT_ONCE = auto()  # the test must end with the same result, so its own assertions must hold
    AT_REST = auto()  # the test must end with the same result, once retries and jobs have run
    SUSPECT = auto()  # often harmful in combination with other variations
    THREADS = auto()  # the shop's handlers run on separate threads
    RETURN = auto()  # the shop has a return page
    RESTART = auto()  # the test defines how to restart the shop


NO_TRAITS: Final = Trait(0)


class Act(NamedTuple):
    """A part of a replacement scene: what it is, and what it needs."""

    act: str
    required_traits: Trait = NO_TRAITS
    condition: StepCondition | None = None


class ReplacementScene(NamedTuple):
    """A scene that replaces or extends the planned action or advance.

    Its acts follow each other; one of them can also be an action, or a period that passes, such as ``P3D``.
    """

    acts: tuple[Act | Action | str, ...]

    @property
    def required_traits(self) -> Trait:
        """What the acts require of the shop and the test."""
        return reduce(or_, (each.required_traits for each in self.acts if isinstance(each, Act)), NO_TRAITS)

    def is_possible(self, about: Any) -> bool:
        """Whether all acts are possible, judging by the details of a step."""
        conditions = (each.condition for each in self.acts if isinstance(each, Act))
        return all(each is None or each(about) for each in conditions)


class Repeat(NamedTuple):
    """A form of the shop is submitted twice, or a job runs twice."""

    at_once: bool
    is_late: bool = False  # the second submission precedes the next action of a customer or a bank
    in_parts: bool = False  # the form's number is split between both submissions


class ChangedNumber(NamedTuple):
    """A form of the shop is submitted with a changed whole number, or a changed amount."""

    difference: int
    is_amount: bool = False  # ``difference`` is in cents


class OtherChoice(NamedTuple):
    """A form of the shop is submitted with another choice."""


class OtherCustomer(NamedTuple):
    """Another customer submits the same form first, and pays or walks away."""

    pays: bool


class PriorEvent(NamedTuple):
    """An event at the service just before a call by the shop, reflected in the call's response."""

    event: str


VariationEffect = (
    Fault
    | WebhookEffect
    | Document
    | Action
    | ReplacementScene
    | Repeat
    | ChangedNumber
    | OtherChoice
    | OtherCustomer
    | PriorEvent
)
"""The change to a step: an effect, an outcome of an attempt, or another action, scene or form."""


class OfferedIn(Flag):
    """The features that offer a variation, apart from rehearsals."""

    SWITCH = auto()  # a dashboard switch
    SCENARIO = auto()  # a ready-made scenario


EMPTY_DOCUMENT: Final[Document] = MappingProxyType({})


class VariationOffer(NamedTuple):
    """An offer to play a variation for a whole project.

    ``when`` selects the webhooks or requests. ``effect`` overrides the variation's own.
    ``settings`` are changed instead of adding rules.
    """

    name: str
    title: str
    offered_in: OfferedIn
    when: Document = EMPTY_DOCUMENT
    effect: VariationEffect | None = None
    settings: Document = EMPTY_DOCUMENT
    risk: str = ""  # copied from the variation

    @property
    def sentence(self) -> str:
        """The title and the risk, as sentences."""
        return f"{self.title}. The risk: {self.risk}."

    @property
    def rules(self) -> dict[str, list[Document]]:
        """The webhook rules and faults to add; removing them undoes the variation."""
        if self.settings or not isinstance(self.effect, Fault | WebhookEffect):
            return {}
        when = {"when": dict(self.when)} if self.when else {}
        kind = "webhooks" if isinstance(self.effect, WebhookEffect) else "faults"
        return {kind: [{**when, "then": self.effect.document}]}

    @property
    def undo(self) -> str:
        """Instructions to undo the variation."""
        return "restore the setting" if self.settings else "remove the rule"

    @property
    def scenario(self) -> Document:
        """A scenario with the variation; if it affects webhooks, a customer pays after ten seconds."""
        pays = [{"then": {"customer": "pays", "after": "PT10S"}}] if "webhooks" in self.rules else []
        document = {"name": self.name, "description": self.sentence, "settings": self.settings, "rules": pays}
        return {key: part for key, part in {**document, **self.rules}.items() if part}


@dataclass(frozen=True, eq=False)
class Variation:
    """A deviation from the expected course of events.

    ``sentence`` describes the deviation at a step; ``risk`` is its cost for an unprepared shop. Rehearsals
    play the variation at steps of its ``kinds``.
    """

    name: str
    sentence: str
    effect: VariationEffect
    risk: str
    own_traits: Trait = NO_TRAITS
    condition: StepCondition | None = None
    kinds: tuple[str, ...] = ()
    offers: tuple[VariationOffer, ...] = ()

    def with_offers(self, *offers: VariationOffer) -> "Variation":
        """Return the variation with these offers."""
        return replace(self, offers=offers)

    @property
    def traits(self) -> Trait:
        """The variation's own traits, and those of the scene."""
        return self.own_traits | (
            self.effect.required_traits if isinstance(self.effect, ReplacementScene) else NO_TRAITS
        )

    def applies_to(self, step: Step) -> bool:
        """Whether the variation applies to a step."""
        if step.kind not in self.kinds:
            return False
        if self.condition is not None and not self.condition(step.about):
            return False
        return not isinstance(self.effect, ReplacementScene) or self.effect.is_possible(step.about)
