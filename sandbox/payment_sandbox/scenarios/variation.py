"""What a variation is: the steps that it changes, its effect, how a test may end, and where it is offered."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import Flag, auto
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from payment_sandbox.orders.actions import Action
from payment_sandbox.orders.webhooks import Delivery
from payment_sandbox.scenarios.effects import Fault, WebhookEffect
from payment_sandbox.scenarios.model import Subject

Document = Mapping[str, Any]
"""A part of a scenario, or settings, as data."""

Applies = Callable[[Any], bool]
"""Whether a step can go so: called with what is known about it."""

CREATE: Final = "create"  # calls of the shop
READ: Final = "read"
CHANGE: Final = "change"
WEBHOOK: Final = "webhook"
ACTION: Final = "action"  # of a customer or a bank
ATTEMPT: Final = "attempt"  # to pay, or to refund: the service decides
PRESS: Final = "press"  # a form of the shop that the test submits
CALLS: Final = (CREATE, READ, CHANGE)


class Asked(NamedTuple):
    """A call of the shop, or a form that the test submits to it."""

    method: str
    path: str


class Acts(NamedTuple):
    """Somebody acts on an order."""

    action: Action
    is_hosted: bool
    has_return: bool  # to a page of the shop
    has_others: bool  # earlier tries that can still be paid
    is_authorization: bool


About = Asked | Acts | Delivery | Subject
"""What is known about a step: what was asked, who acts, a webhook, or the subject of an attempt."""


class Step(NamedTuple):
    """One step: the nth of its kind, what it is in words, and what is known about it."""

    kind: str
    number: int
    label: str
    about: About

    @property
    def name(self) -> str:
        """How rehearsals refer to it."""
        return f"{self.kind}:{self.number}"


class Trait(Flag):
    """How a rehearsed test may end, and what a variation needs; without one, the test may end differently."""

    AT_ONCE = auto()  # it ends as before, so that its own assertions still hold
    AT_REST = auto()  # it ends as before, once retries and jobs have run
    SUSPECT = auto()  # it often makes trouble together with another one
    THREADS = auto()  # the shop's handlers run on other threads than the test's
    RETURN = auto()  # the shop has a page to which customers return
    RESTART = auto()  # the test says how the shop is restarted


NO_TRAIT: Final = Trait(0)


class Instead(NamedTuple):
    """What somebody does instead of acting as planned, or besides; rehearsals and "What if …" play it."""

    scene: str
    needs: Trait = NO_TRAIT
    applies: Applies | None = None  # only then, if it is given
    moves_clock: bool = False


class Passes(NamedTuple):
    """They act, and then a period passes, such as ``P3D``."""

    period: str


class Repeat(NamedTuple):
    """A form of the shop is submitted twice."""

    at_once: bool


VariationEffect = Fault | WebhookEffect | Document | Action | Instead | Passes | Repeat
"""Of a call, of a webhook, the outcome of an attempt, what somebody does instead, or of a form."""


class OfferedIn(Flag):
    """Where people find a variation, other than in a rehearsal."""

    AGAIN = auto()  # "What if …" on the page of an order
    SWITCH = auto()  # of the dashboard
    SEQUENCE = auto()  # of webhooks, in which marked tests run
    SCENARIO = auto()  # by its name


NOTHING: Final[Document] = MappingProxyType({})


class VariationOffer(NamedTuple):
    """A variation for a whole project, or for an order once more.

    ``when`` says which webhooks or requests it changes. ``effect`` replaces the variation's own, and
    ``settings`` are changed instead. ``shows`` are the findings of the review whose cost it shows.
    """

    name: str
    title: str
    places: OfferedIn
    when: Document = NOTHING
    effect: VariationEffect | None = None
    settings: Document = NOTHING
    shows: tuple[str, ...] = ()
    risk: str = ""  # this and the next are the variation's
    reported: str = ""

    @property
    def label(self) -> str:
        """Its name in words."""
        return self.name.replace("-", " ")

    @property
    def sentence(self) -> str:
        """What happens, and what that costs."""
        return f"{self.title}. The risk: {self.risk}."

    @property
    def rules(self) -> dict[str, list[Document]]:
        """The rules of webhooks and faults that do it; to undo it, they are removed."""
        if self.settings or not isinstance(self.effect, Fault | WebhookEffect):
            return {}
        when = {"when": dict(self.when)} if self.when else {}
        kind = "webhooks" if isinstance(self.effect, WebhookEffect) else "faults"
        return {kind: [{**when, "then": self.effect.document}]}

    @property
    def undo(self) -> str:
        """How it is undone."""
        if self.settings:
            return "change the setting back"
        if self.rules:
            return "remove the rule; one for an order ends with it"
        moves_clock = isinstance(self.effect, Instead) and self.effect.moves_clock
        return "undo the last move of the clock" if moves_clock else "make a new order"

    @property
    def scenario(self) -> Document:
        """The scenario in which it happens; if it changes webhooks, to a customer who pays after a while."""
        pays = [{"then": {"customer": "pays", "after": "PT10S"}}] if "webhooks" in self.rules else []
        document = {"name": self.name, "description": self.sentence, "settings": self.settings, "rules": pays}
        return {key: part for key, part in {**document, **self.rules}.items() if part}


IsMet = Callable[[Delivery, Document], bool]
"""Whether a webhook met a variation, under the project's settings."""


@dataclass(frozen=True, eq=False)
class Variation:
    """One thing that can go another way.

    ``sentence`` says what happened at a step, and ``risk`` what that costs a shop that does not expect it.
    Rehearsals play those that have ``kinds`` of steps.
    """

    name: str
    sentence: str
    effect: VariationEffect
    risk: str
    own_traits: Trait = NO_TRAIT
    applies: Applies | None = None  # only then, if it is given
    kinds: tuple[str, ...] = ()
    is_met: IsMet | None = None
    reported_as: str = ""  # its name in coverage and sequences, if another
    offers: tuple[VariationOffer, ...] = ()

    def offering(self, *offers: VariationOffer) -> "Variation":
        """The variation with what people are offered."""
        return replace(self, offers=offers)

    @property
    def traits(self) -> Trait:
        """Its traits, with what its effect needs."""
        return self.own_traits | (self.effect.needs if isinstance(self.effect, Instead) else NO_TRAIT)

    @property
    def reported(self) -> str:
        """Its name in coverage and sequences."""
        return self.reported_as or self.name

    def fits(self, step: Step) -> bool:
        """Whether a step can go so."""
        conditions = (self.applies, self.effect.applies if isinstance(self.effect, Instead) else None)
        return step.kind in self.kinds and all(each(step.about) for each in conditions if each is not None)
