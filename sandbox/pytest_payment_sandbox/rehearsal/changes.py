"""The numbered steps of a rehearsed test, and the changes to them."""

from collections import Counter
from collections.abc import Iterable
from threading import Lock
from typing import Final, NamedTuple

from payment_sandbox.scenarios.variation import CHANGE, CREATE, READ, Step, StepDetails, Variation
from payment_sandbox.scenarios.variation_catalogue import rehearsal_variations

CREATION_PATHS: Final = ("/v1/orders", "/v1/bankqr")

CAPTURES_SEGMENT: Final = "/captures/"
REFUNDS_SEGMENT: Final = "/refunds/"
ORDER_ID_INDEX: Final = 3  # the position of the order id in a split path

EXAMPLE: Final = "such as webhook:2:twice"
UNCHANGED: Final = "unchanged"  # the name of the variation without changes
IN_JOB: Final = " in its job "  # comes last in the label of a call by a job


def label_without_job(step: Step) -> str:
    """Return the label of a step without the name of its job."""
    return step.label.partition(IN_JOB)[0]


class StepRecorder:
    """Records and numbers the steps of one run; thread-safe."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._counts: Counter[str] = Counter()
        self.steps: list[Step] = []

    def record(self, kind: str, label: str, about: StepDetails) -> Step:
        """Number and record the next step of a kind."""
        with self._lock:
            self._counts[kind] += 1
            step = Step(kind, self._counts[kind], label, about)
            self.steps.append(step)
        return step


def kind_of_call(method: str, path: str) -> str:
    """Return the kind of a call by the shop: create, read or change."""
    if method == "GET":
        return READ
    return CREATE if method == "POST" and path.rstrip("/") in CREATION_PATHS else CHANGE


def order_id_of(path: str) -> str:
    """Return the order's id in a path such as ``/v1/orders/<id>/captures/``, or "" if the path has no id."""
    parts = path.split("/")
    return parts[ORDER_ID_INDEX] if len(parts) > ORDER_ID_INDEX else ""


class ChangedStep(NamedTuple):
    """One changed step, such as ``webhook:2:twice``."""

    step: str
    change: Variation

    @property
    def name(self) -> str:
        """The changed step in the form that users type."""
        return f"{self.step}:{self.change.name}"


def possible_changes(step: Step) -> list[Variation]:
    """Return the possible changes to a step."""
    return [change for change in rehearsal_variations() if change.applies_to(step)]


def parse_changed_step(text: str) -> ChangedStep:
    """Parse ``webhook:2:twice``.

    Raises:
        ValueError: the kind of step or the change is unknown.
    """
    kind, _, rest = text.strip().partition(":")
    number, _, name = rest.partition(":")
    known = {change.name: change for change in rehearsal_variations() if kind in change.kinds}
    if not name and number in known:
        raise ValueError(f"{text!r} has no number: use {kind}:1:{number} for the first {kind}")
    if name not in known or not number.isdecimal():
        names = f" with one of {', '.join(sorted(known))}" if number.isdecimal() and known else ""
        raise ValueError(f"{text!r} is not a variation: expected kind:number:name{names}, {EXAMPLE}")
    return ChangedStep(f"{kind}:{number}", known[name])


ChangedSteps = tuple[ChangedStep, ...]
"""A variation: one or two changed steps; an empty tuple is the unchanged test."""


def variation_name(variation: ChangedSteps) -> str:
    """Return the name of a variation, such as ``webhook:2:twice+action:1:cancels``."""
    return "+".join(changed.name for changed in variation) or UNCHANGED


def parse_variation(text: str) -> ChangedSteps:
    """Parse ``webhook:2:twice+action:1:cancels``.

    Raises:
        ValueError: a part is not a valid change.
    """
    return () if text == UNCHANGED else tuple(parse_changed_step(part) for part in text.split("+"))


def describe_variation(variation: ChangedSteps, steps: Iterable[Step]) -> str:
    """Describe the changes of a variation in one sentence."""
    labels = {step.name: step.label for step in steps}
    sentences = [each.change.sentence.format(step=labels.get(each.step, each.step)) for each in variation]
    return ", and ".join(sentences) or "without any change"
