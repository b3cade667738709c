"""The journal of a project: the requests of the merchant API, and what else happened."""

from collections import OrderedDict, deque
from collections.abc import Callable, Iterator, Mapping
from itertools import count
from typing import Final

from payment_sandbox.kernel.masking import Masking
from payment_sandbox.projects.records import AgendaEvent, Deed, Failure, JournalEntry, StatusReached
from payment_sandbox.scenarios.model import Decision

ENTRIES_MAX: Final = 10_000

Wanted = Callable[[JournalEntry], bool]
"""Which entries somebody wants to read."""


class Journal:
    """Keeps the newest records of each kind, and counts the dropped requests.

    Requests and deeds come out without secrets. They are masked when they are read, because most never are.
    """

    def __init__(self, masking: Masking) -> None:
        self._masking = masking
        self._numbers = count(1)
        self._entries: deque[JournalEntry] = deque(maxlen=ENTRIES_MAX)
        self._deeds: deque[Deed] = deque(maxlen=ENTRIES_MAX)
        self.dropped = 0
        self.decisions: OrderedDict[str, Decision] = OrderedDict()  # by transaction
        self.statuses: deque[StatusReached] = deque(maxlen=ENTRIES_MAX)
        self.agenda_events: deque[AgendaEvent] = deque(maxlen=ENTRIES_MAX)
        self.failures: deque[Failure] = deque(maxlen=ENTRIES_MAX)

    def next_id(self, kind: str) -> str:
        """A new id for a record, such as ``request-7``; numbers grow in the order in which things begin."""
        return f"{kind}-{next(self._numbers)}"

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

    def entries(
        self, wanted: Wanted | None = None, *, newest_first: bool = False, with_bodies: bool = True
    ) -> Iterator[JournalEntry]:
        """The wanted entries (default: all), without secrets; each is masked when it is taken.

        Without bodies and headers, masking takes much less time.
        """
        entries = list(self._entries)
        for entry in reversed(entries) if newest_first else entries:
            if wanted is None or wanted(entry):
                readable = entry.readable() if with_bodies else entry.without_bodies()
                yield self._masking.record(readable).cut(readable)

    def deeds(self, orders: frozenset[str | None] | None = None) -> Iterator[Deed]:
        """All deeds, or those on some orders, oldest first, without secrets."""
        return (
            self._masking.record(deed)
            for deed in list(self._deeds)
            if orders is None or deed.order_id in orders
        )

    def add_deeds(self, deeds: list[Deed]) -> None:
        """Add deeds."""
        self._deeds.extend(deeds)

    def add_failure(self, failure: Failure) -> None:
        """Add a command that failed."""
        self.failures.append(self._masking.record(failure))

    def find(self, entry_id: str) -> JournalEntry | None:
        """A request by its id, without secrets."""
        return next(self.entries(lambda entry: entry.id == entry_id, newest_first=True), None)
