"""The steps of a rehearsed test, numbered, and which of them go another way."""

from collections import Counter
from threading import Lock
from typing import Final, NamedTuple

from payment_sandbox.scenarios.variation import CHANGE, CREATE, READ, Step, StepDetails, Variation
from payment_sandbox.scenarios.variations import rehearsed

CREATIONS: Final = ("/v1/orders", "/v1/bankqr")

IN_JOB: Final = " in its job "  # ends the label of a call that a job makes


def label_without_job(step: Step) -> str:
    """The label of a step, the same whether or not a job takes it."""
    return step.label.partition(IN_JOB)[0]


class StepRecorder:
    """Numbers the steps of one run; threads may take steps at the same time."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._counts: Counter[str] = Counter()
        self.steps: list[Step] = []

    def record(self, kind: str, label: str, about: StepDetails) -> Step:
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


class ChangedStep(NamedTuple):
    """One step that goes otherwise, as ``webhook:2:twice``."""

    step: str
    change: Variation

    @property
    def name(self) -> str:
        """How users write it."""
        return f"{self.step}:{self.change.name}"


def changes_of(step: Step) -> list[Variation]:
    """What can go otherwise in a step."""
    return [change for change in rehearsed() if change.fits(step)]


def parse_changed_step(text: str) -> ChangedStep:
    """Read ``webhook:2:twice``.

    Raises:
        ValueError: there is no such kind of step, or no such change.
    """
    kind, _, rest = text.strip().partition(":")
    number, _, name = rest.partition(":")
    known = {change.name: change for change in rehearsed() if kind in change.kinds}
    if not name and number in known:
        raise ValueError(f"{text!r} needs the number of the {kind}: {kind}:1:{number} is the first one")
    if name not in known or not number.isdecimal():
        expected = f"one of {', '.join(sorted(known))}" if known else "one such as webhook:2:twice"
        raise ValueError(f"{text!r} is not a variation: expected {expected}")
    return ChangedStep(f"{kind}:{number}", known[name])
