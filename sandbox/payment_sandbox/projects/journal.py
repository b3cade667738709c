"""The requests of the merchant API and their responses."""

from collections import OrderedDict, deque
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, Final, NamedTuple

from payment_sandbox.kernel.masking import Masking
from payment_sandbox.scenarios.model import Decision

ENTRIES_MAX: Final = 10_000
BODY_KEPT_BYTES: Final = 16_384


class JournalEntry(NamedTuple):
    """One request and its response; bodies are unchanged, except that secrets are masked."""

    at: datetime
    method: str
    path: str
    query: str
    status: int | None  # None: the connection was cut before the status
    request: bytes
    response: bytes
    ignored: tuple[str, ...] = ()
    rule: str | None = None
    order_id: str | None = None
    fault: dict[str, Any] | None = None
    transaction_id: str | None = None  # of the attempt that the request created
    real_at: datetime | None = None  # when it came in, before anything it caused


class ReturnVisit(NamedTuple):
    """A redirect of a customer back to the shop."""

    order_id: str
    at: datetime
    real_at: datetime


class StatusReached(NamedTuple):
    """A status that an order has reached or, with ``payment_method``, one of its attempts."""

    order_id: str
    payment_method: str | None
    status: str
    at: datetime
    real_at: datetime


class Failure(NamedTuple):
    """A due command that failed."""

    order_id: str
    kind: str
    label: str
    error: str
    at: datetime
    real_at: datetime


class Journal:
    """Keeps the newest entries, and counts the dropped ones.

    Entries come out without secrets. They are masked when they are read, because most never are.
    """

    def __init__(self, masking: Masking) -> None:
        self._masking = masking
        self._entries: deque[JournalEntry] = deque(maxlen=ENTRIES_MAX)
        self.dropped = 0
        self.decisions: OrderedDict[str, Decision] = OrderedDict()  # by transaction
        self.returns: deque[ReturnVisit] = deque(maxlen=ENTRIES_MAX)
        self.statuses: deque[StatusReached] = deque(maxlen=ENTRIES_MAX)
        self.failures: deque[Failure] = deque(maxlen=ENTRIES_MAX)

    def note(self, decisions: Mapping[str, Decision]) -> None:
        """Store the scenario's decisions on attempts, up to the same limit as entries."""
        self.decisions.update(decisions)
        while len(self.decisions) > ENTRIES_MAX:
            self.decisions.popitem(last=False)

    def add(self, entry: JournalEntry) -> None:
        """Add an entry; a full journal drops its oldest."""
        if len(self._entries) == ENTRIES_MAX:
            self.dropped += 1
        self._entries.append(entry)

    def entries(self) -> Iterator[JournalEntry]:
        """All entries, oldest first, without secrets."""
        return map(self._masking.record, list(self._entries))

    def add_failure(self, failure: Failure) -> None:
        """Add a command that failed."""
        self.failures.append(self._masking.record(failure))
