"""The ways in which steps can go otherwise, from the most usual to the rarest."""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from threading import Lock
from typing import Any, Final, NamedTuple

from payment_sandbox.orders.actions import BANK, CUSTOMER

CREATE: Final = "create"  # calls of the shop
READ: Final = "read"
CHANGE: Final = "change"
WEBHOOK: Final = "webhook"
DEED: Final = "deed"  # of a customer or a bank
ATTEMPT: Final = "attempt"  # to pay, or to refund: the service decides
PRESS: Final = "press"  # a form of the shop that the test submits
CALLS: Final = (CREATE, READ, CHANGE)

CREATIONS: Final = ("/v1/orders", "/v1/bankqr")


class Step(NamedTuple):
    """One step: the nth of its kind, what it is in words, and the facts that ways ask for."""

    kind: str
    number: int
    label: str
    about: Mapping[str, Any]

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

    def record(self, kind: str, label: str, **about: Any) -> Step:
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


Effect = Mapping[str, Any]

AT_ONCE: Final = "at once"
AT_REST: Final = "at rest"
OTHERWISE: Final = "otherwise"


@dataclass(frozen=True, eq=False)
class Way:
    """One way in which a step can go.

    ``ends`` says how the test may end: as before and ``AT_ONCE``, so that its own assertions still hold; as
    before, but only ``AT_REST``, when retries and jobs have run; or ``OTHERWISE``. ``sentence`` tells it.
    """

    name: str
    kinds: tuple[str, ...]
    ends: str
    sentence: str
    effect: Effect = field(default_factory=dict)
    applies: Callable[[Step], bool] = lambda step: True
    needs_threads: bool = False  # the shop's handlers run on other threads than the test's
    needs_return: bool = False  # the shop has a page to which customers return


def _acts(actor: str, *actions: str) -> Callable[[Step], bool]:
    return lambda step: step.about["actor"] == actor and step.about["action"] in actions


def _pays(step: Step) -> bool:
    return _acts(CUSTOMER, "pay")(step)


def _pays_hosted(step: Step) -> bool:
    return _pays(step) and bool(step.about["hosted"])


def _pays_again(step: Step) -> bool:
    return _pays(step) and bool(step.about["others"])


def _credits(step: Step) -> bool:
    return _acts(BANK, "credit")(step)


def _authorizes(step: Step) -> bool:
    return _pays(step) and bool(step.about["authorizes"])


def _is_screened(step: Step) -> bool:
    return "screening" in step.about["outcome_keys"]


def _is_refund(step: Step) -> bool:
    return bool(step.about["refund"])


def _is_recurring(step: Step) -> bool:
    return not step.about["refund"] and "processor" in step.about["outcome_keys"]


def _reads_order(step: Step) -> bool:
    return "/orders/" in step.about["path"]


def _can_need_time(step: Step) -> bool:
    return "needs-time" in step.about["screenings"]


WAYS: Final[tuple[Way, ...]] = (
    # Webhooks
    Way("twice", (WEBHOOK,), AT_ONCE, "{step} came twice", {"duplicate": 2, "apart": True}),
    Way(
        "together",
        (WEBHOOK,),
        AT_ONCE,
        "{step} came twice at the same moment",
        {"together": 2},
        needs_threads=True,
    ),
    Way("lost", (WEBHOOK,), AT_REST, "{step} was lost", {"drop": True}),
    Way("refused", (WEBHOOK,), AT_REST, "{step} came two minutes late", {"answer": 503}),
    Way("swapped", (WEBHOOK,), AT_REST, "{step} came after the next one", {"swap": True}),
    Way("late", (WEBHOOK,), AT_REST, "{step} came an hour late", {"delay": "PT1H"}),
    Way(
        "early", (CREATE, CHANGE), AT_REST, "the webhooks of {step} came before its response", {"early": True}
    ),
    # Calls of the shop
    Way(
        "unavailable",
        (READ,),
        AT_REST,
        "{step} failed once with 503",
        {"status": 503},
    ),
    Way(
        "overtaken",
        (READ,),
        AT_REST,
        "{step} got an answer that was overtaken",
        {"stale": True},
        _reads_order,
    ),
    Way(
        "unavailable",
        (CREATE, CHANGE),
        OTHERWISE,
        "{step} failed with 503, and nothing was done",
        {"status": 503},
    ),
    Way(
        "answer-lost",
        (CREATE, CHANGE),
        OTHERWISE,
        "{step} was carried out, but its response was lost",
        {"reset": True, "phase": "after"},
    ),
    Way(
        "limited",
        CALLS,
        OTHERWISE,
        "{step} was refused with 429",
        {"rate_limit": "1/PT1S"},
    ),
    Way("silent", CALLS, OTHERWISE, "{step} got no answer", {"silence": True}),
    # The shop's own forms
    Way("twice", (PRESS,), OTHERWISE, "{step} was submitted twice"),
    Way("together", (PRESS,), OTHERWISE, "{step} was submitted twice at the same moment", needs_threads=True),
    # Customers
    Way(
        "returns-first",
        (DEED,),
        AT_REST,
        "the customer was back in the shop before the webhook of {step}",
        applies=_pays,
        needs_return=True,
    ),
    Way(
        "two-tabs",
        (DEED,),
        AT_REST,
        "the customer came back in two tabs at the same moment, before the webhook of {step}",
        applies=_pays,
        needs_return=True,
        needs_threads=True,
    ),
    Way(
        "returns-unpaid",
        (DEED,),
        OTHERWISE,
        "the customer came back without having paid",
        applies=_pays,
        needs_return=True,
    ),
    Way("fails", (DEED,), OTHERWISE, "{step} failed", applies=_pays),
    Way("cancels", (DEED,), OTHERWISE, "the customer cancelled", applies=_pays),
    Way(
        "fails-then-pays",
        (DEED,),
        OTHERWISE,
        "{step} failed, and succeeded at the second try",
        applies=_pays_hosted,
    ),
    Way(
        "cancels-then-pays",
        (DEED,),
        OTHERWISE,
        "the customer cancelled, came back and paid",
        applies=_pays_hosted,
    ),
    Way("walks-away", (DEED,), OTHERWISE, "the customer walked away", applies=_pays),
    Way("pays-too-late", (DEED,), OTHERWISE, "{step} came after the expiry", applies=_pays),
    Way("twice", (DEED,), AT_ONCE, "the customer pressed the button twice for {step}", applies=_pays),
    # Money and time
    Way("short", (DEED,), OTHERWISE, "{step} was one cent short", applies=_credits),
    Way("surplus", (DEED,), OTHERWISE, "{step} was one euro too much", applies=_credits),
    Way("after-expiry", (DEED,), OTHERWISE, "{step} came after the expiry", applies=_credits),
    Way("twice", (DEED,), OTHERWISE, "{step} came twice", applies=_credits),
    Way("never", (DEED,), OTHERWISE, "{step} never came", applies=_credits),
    Way(
        "pays-both",
        (DEED,),
        OTHERWISE,
        "the customer also paid on the page of an earlier try after {step}",
        applies=_pays_again,
    ),
    Way("three-days", (DEED,), OTHERWISE, "three days passed after {step}", applies=_pays),
    Way("lapses", (DEED,), OTHERWISE, "the authorization ran out after {step}", applies=_authorizes),
    Way("month", (DEED,), OTHERWISE, "a month passed after {step}", applies=_pays),
    Way("restarted", (DEED,), AT_REST, "the shop was restarted after {step}"),
    # The service
    Way(
        "declined",
        (ATTEMPT,),
        OTHERWISE,
        "the screening of {step} declined",
        {"screening": "declined"},
        _is_screened,
    ),
    Way(
        "needs-time",
        (ATTEMPT,),
        OTHERWISE,
        "the screening of {step} took a day",
        {"screening": "needs-time", "then": "passed", "after": "P1D"},
        _can_need_time,
    ),
    Way(
        "declined-later",
        (ATTEMPT,),
        OTHERWISE,
        "the screening of {step} took a day and then declined",
        {"screening": "needs-time", "then": "declined", "after": "P1D"},
        _can_need_time,
    ),
    Way(
        "settles-later",
        (ATTEMPT,),
        AT_REST,
        "{step} took two days",
        {"processor": "settles", "after": "P2D"},
        _is_refund,
    ),
    Way(
        "fails-later",
        (ATTEMPT,),
        OTHERWISE,
        "{step} failed after two days",
        {"processor": "fails", "after": "P2D"},
        _is_refund,
    ),
    Way(
        "fails-later",
        (ATTEMPT,),
        OTHERWISE,
        "{step} was declined",
        {"processor": "fails", "after": "PT1M"},
        _is_recurring,
    ),
)


class Change(NamedTuple):
    """One step that goes one way, as ``webhook:2:twice``."""

    step: str
    way: Way

    @property
    def name(self) -> str:
        """How users write it."""
        return f"{self.step}:{self.way.name}"


def ways_of(step: Step) -> list[Way]:
    """The ways in which a step can go."""
    return [way for way in WAYS if step.kind in way.kinds and way.applies(step)]


def parse_change(text: str) -> Change:
    """Read ``webhook:2:twice``.

    Raises:
        ValueError: there is no such kind of step, or no such way.
    """
    kind, _, rest = text.strip().partition(":")
    number, _, name = rest.partition(":")
    found = [way for way in WAYS if kind in way.kinds and way.name == name]
    if not found or not number.isdecimal():
        known = sorted({way.name for way in WAYS if kind in way.kinds})
        expected = f"one of {', '.join(known)}" if known else "webhook:2:twice and the like"
        raise ValueError(f"{text!r} is not a variation: expected {expected}")
    return Change(f"{kind}:{number}", found[0])
