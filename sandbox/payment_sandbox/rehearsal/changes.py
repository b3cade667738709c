"""What can go otherwise in a test: its steps, and the changes of each kind of step, the most usual first."""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from threading import Lock
from typing import Any, Final, NamedTuple

from payment_sandbox.kernel.times import Period
from payment_sandbox.orders.actions import Action
from payment_sandbox.orders.order import Order
from payment_sandbox.orders.webhooks import Delivery
from payment_sandbox.rehearsal import scenes
from payment_sandbox.rehearsal.scenes import Scene
from payment_sandbox.scenarios.effects import (
    Answer,
    Delay,
    Drop,
    ErrorStatus,
    Fault,
    OneByOne,
    RateLimit,
    Reset,
    Silence,
    Stale,
    Swap,
    Together,
    WebhookEffect,
    WebhooksFirst,
)
from payment_sandbox.scenarios.model import Subject

CREATE: Final = "create"  # calls of the shop
READ: Final = "read"
CHANGE: Final = "change"
WEBHOOK: Final = "webhook"
ACTION: Final = "action"  # of a customer or a bank
ATTEMPT: Final = "attempt"  # to pay, or to refund: the service decides
PRESS: Final = "press"  # a form of the shop that the test submits
CALLS: Final = (CREATE, READ, CHANGE)

OLD_KINDS: Final = {"deed": ACTION}  # as variations were written first

CREATIONS: Final = ("/v1/orders", "/v1/bankqr")


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


class Step(NamedTuple):
    """One step: the nth of its kind, what it is in words, and what is known about it.

    ``about`` is what was ``Asked``, who ``Acts``, a ``Delivery``, or the ``Subject`` of an attempt.
    """

    kind: str
    number: int
    label: str
    about: Asked | Acts | Delivery | Subject

    @property
    def name(self) -> str:
        """How a variation refers to it."""
        return f"{self.kind}:{self.number}"


class StepRecorder:
    """Numbers the steps of one run; threads may take steps at the same time."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._counts: Counter[str] = Counter()
        self.steps: list[Step] = []

    def record(self, kind: str, label: str, about: Asked | Acts | Delivery | Subject) -> Step:
        """The next step of a kind."""
        with self._lock:
            self._counts[kind] += 1
            step = Step(kind, self._counts[kind], label, about)
            self.steps.append(step)
        return step


def kind_of_call(method: str, path: str) -> str:
    """Whether a call of the shop creates, reads or changes something."""
    if method == "GET":
        return READ
    return CREATE if method == "POST" and path.rstrip("/") in CREATIONS else CHANGE


class Repeat(NamedTuple):
    """A form of the shop is submitted twice."""

    at_once: bool


ChangeEffect = Fault | WebhookEffect | Mapping[str, Any] | Callable[[Scene], Order] | Repeat
"""Of a call, of a webhook, the outcome of an attempt, what somebody does instead, or of a form."""

AT_ONCE: Final = "at once"
AT_REST: Final = "at rest"
OTHERWISE: Final = "otherwise"


@dataclass(frozen=True, eq=False)
class Change:
    """One thing that can go otherwise in a step.

    ``ends`` says how the test may end: as before and ``AT_ONCE``, so that its own assertions still hold; as
    before, but only ``AT_REST``, when retries and jobs have run; or ``OTHERWISE``. ``sentence`` describes it.
    """

    name: str
    kinds: tuple[str, ...]
    ends: str
    sentence: str
    effect: ChangeEffect
    applies: Callable[[Any], bool] = lambda about: True  # is called with the step's ``about``
    is_suspect: bool = False  # often makes trouble together with another one
    needs_threads: bool = False  # the shop's handlers run on other threads than the test's
    needs_return: bool = False  # the shop has a page to which customers return
    needs_restart: bool = False  # the test says how the shop is restarted

    def fits(self, step: Step) -> bool:
        """Whether a step can go so."""
        return step.kind in self.kinds and self.applies(step.about)


def _pays(about: Acts) -> bool:
    return about.action.name == "customer pay"


def _pays_hosted(about: Acts) -> bool:
    return _pays(about) and about.is_hosted


def _pays_again(about: Acts) -> bool:
    return _pays(about) and about.has_others


def _authorizes(about: Acts) -> bool:
    return _pays(about) and about.is_authorization


def _credits(about: Acts) -> bool:
    return about.action.name == "bank credit"


def _is_screened(about: Subject) -> bool:
    return "screening" in about.outcome_keys


def _is_refund(about: Subject) -> bool:
    return about.is_refund


def _is_recurring(about: Subject) -> bool:
    return not about.is_refund and "processor" in about.outcome_keys


def _can_need_time(about: Subject) -> bool:
    return "needs-time" in about.screenings


def _reads_order(about: Asked) -> bool:
    return "/orders/" in about.path


CHANGES: Final[tuple[Change, ...]] = (
    # Webhooks
    Change("twice", (WEBHOOK,), AT_ONCE, "{step} came twice", OneByOne(2), is_suspect=True),
    Change(
        "together",
        (WEBHOOK,),
        AT_ONCE,
        "{step} came twice at the same moment",
        Together(2),
        needs_threads=True,
        is_suspect=True,
    ),
    Change("lost", (WEBHOOK,), AT_REST, "{step} was lost", Drop(), is_suspect=True),
    Change("refused", (WEBHOOK,), AT_REST, "{step} came two minutes late", Answer(503)),
    Change("swapped", (WEBHOOK,), AT_REST, "{step} came after the next one", Swap(), is_suspect=True),
    Change(
        "late", (WEBHOOK,), AT_REST, "{step} came an hour late", Delay(Period.parse("PT1H")), is_suspect=True
    ),
    Change(
        "early",
        (CREATE, CHANGE),
        AT_REST,
        "the webhooks of {step} came before its response",
        Fault(WebhooksFirst()),
        is_suspect=True,
    ),
    # Calls of the shop
    Change(
        "unavailable",
        (READ,),
        AT_REST,
        "{step} failed once with 503",
        Fault(ErrorStatus(503)),
        is_suspect=True,
    ),
    Change(
        "overtaken",
        (READ,),
        AT_REST,
        "{step} got an answer that was overtaken",
        Fault(Stale()),
        _reads_order,
    ),
    Change(
        "unavailable",
        (CREATE, CHANGE),
        OTHERWISE,
        "{step} failed with 503, and nothing was done",
        Fault(ErrorStatus(503)),
        is_suspect=True,
    ),
    Change(
        "answer-lost",
        (CREATE, CHANGE),
        OTHERWISE,
        "{step} was carried out, but its response was lost",
        Fault(Reset(), is_after=True),
        is_suspect=True,
    ),
    Change(
        "limited",
        CALLS,
        OTHERWISE,
        "{step} was refused with 429",
        Fault(RateLimit.of("1/PT1S")),
    ),
    Change("silent", CALLS, OTHERWISE, "{step} got no answer", Fault(Silence())),
    # The shop's own forms
    Change(
        "twice", (PRESS,), OTHERWISE, "{step} was submitted twice", Repeat(at_once=False), is_suspect=True
    ),
    Change(
        "together",
        (PRESS,),
        OTHERWISE,
        "{step} was submitted twice at the same moment",
        Repeat(at_once=True),
        needs_threads=True,
        is_suspect=True,
    ),
    # Customers
    Change(
        "returns-first",
        (ACTION,),
        AT_REST,
        "the customer was back in the shop before the webhook of {step}",
        scenes.returns_first,
        applies=_pays,
        needs_return=True,
        is_suspect=True,
    ),
    Change(
        "two-tabs",
        (ACTION,),
        AT_REST,
        "the customer came back in two tabs at the same moment, before the webhook of {step}",
        scenes.two_tabs,
        applies=_pays,
        needs_return=True,
        needs_threads=True,
    ),
    Change(
        "returns-unpaid",
        (ACTION,),
        OTHERWISE,
        "the customer came back without having paid",
        scenes.returns_unpaid,
        applies=_pays,
        needs_return=True,
    ),
    Change("fails", (ACTION,), OTHERWISE, "{step} failed", scenes.fails, applies=_pays),
    Change("cancels", (ACTION,), OTHERWISE, "the customer cancelled", scenes.cancels, applies=_pays),
    Change(
        "fails-then-pays",
        (ACTION,),
        OTHERWISE,
        "{step} failed, and succeeded at the second try",
        scenes.fails_then_pays,
        applies=_pays_hosted,
    ),
    Change(
        "cancels-then-pays",
        (ACTION,),
        OTHERWISE,
        "the customer cancelled, came back and paid",
        scenes.cancels_then_pays,
        applies=_pays_hosted,
    ),
    Change("walks-away", (ACTION,), OTHERWISE, "the customer walked away", scenes.walks_away, applies=_pays),
    Change(
        "pays-too-late",
        (ACTION,),
        OTHERWISE,
        "{step} came after the expiry",
        scenes.after_expiry,
        applies=_pays,
    ),
    Change(
        "twice",
        (ACTION,),
        AT_ONCE,
        "the customer pressed the button twice for {step}",
        scenes.twice,
        applies=_pays,
        is_suspect=True,
    ),
    # Money and time
    Change("short", (ACTION,), OTHERWISE, "{step} was one cent short", scenes.short, applies=_credits),
    Change("surplus", (ACTION,), OTHERWISE, "{step} was one euro too much", scenes.surplus, applies=_credits),
    Change(
        "after-expiry",
        (ACTION,),
        OTHERWISE,
        "{step} came after the expiry",
        scenes.after_expiry,
        applies=_credits,
    ),
    Change(
        "credited-twice",
        (ACTION,),
        OTHERWISE,
        "{step} came twice",
        scenes.twice,
        applies=_credits,
        is_suspect=True,
    ),
    Change("never", (ACTION,), OTHERWISE, "{step} never came", scenes.walks_away, applies=_credits),
    Change(
        "pays-both",
        (ACTION,),
        OTHERWISE,
        "the customer also paid on the page of an earlier try after {step}",
        scenes.pays_both,
        applies=_pays_again,
    ),
    Change(
        "three-days",
        (ACTION,),
        OTHERWISE,
        "three days passed after {step}",
        scenes.then_passes("P3D"),
        applies=_pays,
    ),
    Change(
        "lapses",
        (ACTION,),
        OTHERWISE,
        "the authorization ran out after {step}",
        scenes.lapses,
        applies=_authorizes,
    ),
    Change(
        "month",
        (ACTION,),
        OTHERWISE,
        "a month passed after {step}",
        scenes.then_passes("P31D"),
        applies=_pays,
    ),
    Change(
        "restarted",
        (ACTION,),
        AT_REST,
        "the shop was restarted after {step}",
        scenes.restarted,
        needs_restart=True,
    ),
    # The service
    Change(
        "declined",
        (ATTEMPT,),
        OTHERWISE,
        "the screening of {step} declined",
        {"screening": "declined"},
        _is_screened,
    ),
    Change(
        "needs-time",
        (ATTEMPT,),
        OTHERWISE,
        "the screening of {step} took a day",
        {"screening": "needs-time", "then": "passed", "after": "P1D"},
        _can_need_time,
    ),
    Change(
        "declined-later",
        (ATTEMPT,),
        OTHERWISE,
        "the screening of {step} took a day and then declined",
        {"screening": "needs-time", "then": "declined", "after": "P1D"},
        _can_need_time,
    ),
    Change(
        "settles-later",
        (ATTEMPT,),
        AT_REST,
        "{step} took two days",
        {"processor": "settles", "after": "P2D"},
        _is_refund,
    ),
    Change(
        "fails-later",
        (ATTEMPT,),
        OTHERWISE,
        "{step} failed after two days",
        {"processor": "fails", "after": "P2D"},
        _is_refund,
    ),
    Change(
        "charge-declined",
        (ATTEMPT,),
        OTHERWISE,
        "{step} was declined",
        {"processor": "fails", "after": "PT1M"},
        _is_recurring,
    ),
)


class ChangedStep(NamedTuple):
    """One step that goes otherwise, as ``webhook:2:twice``."""

    step: str
    change: Change

    @property
    def name(self) -> str:
        """How users write it."""
        return f"{self.step}:{self.change.name}"


def changes_of(step: Step) -> list[Change]:
    """What can go otherwise in a step."""
    return [change for change in CHANGES if change.fits(step)]


def parse_changed_step(text: str) -> ChangedStep:
    """Read ``webhook:2:twice``.

    Raises:
        ValueError: there is no such kind of step, or no such change.
    """
    kind, _, rest = text.strip().partition(":")
    kind = OLD_KINDS.get(kind, kind)
    number, _, name = rest.partition(":")
    known = {change.name: change for change in CHANGES if kind in change.kinds}
    if not name and number in known:
        raise ValueError(f"{text!r} needs the number of the {kind}: {kind}:1:{number} is the first one")
    if name not in known or not number.isdecimal():
        expected = f"one of {', '.join(sorted(known))}" if known else "webhook:2:twice and the like"
        raise ValueError(f"{text!r} is not a variation: expected {expected}")
    return ChangedStep(f"{kind}:{number}", known[name])
