"""The steps of a test: what can go otherwise. They are counted by kind, in the order in which they begin."""

from collections import Counter
from collections.abc import Mapping
from threading import Lock
from typing import Any, Final, NamedTuple

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


class Recorder:
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
