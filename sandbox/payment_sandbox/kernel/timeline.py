"""A clock that goes from one due event to the next, and never backwards."""

import heapq
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from typing import Generic, NamedTuple, TypeVar

Item = TypeVar("Item")


class Due(NamedTuple, Generic[Item]):
    """An item and the moment at which it is due."""

    at: datetime
    sequence: int
    item: Item


class Timeline(Generic[Item]):
    """Holds what is due when; items that are due together come in the order they were put down."""

    __slots__ = ("_heap", "now", "sequence")

    def __init__(self, now: datetime, sequence: int = 0, entries: Sequence[Due[Item]] = ()) -> None:
        self.now = now
        self.sequence = sequence  # how many items were put down so far
        self._heap: list[Due[Item]] = list(entries)  # no two have one sequence, so items are never compared
        heapq.heapify(self._heap)

    def __len__(self) -> int:
        return len(self._heap)

    def schedule(self, at: datetime, item: Item) -> Due[Item]:
        """Put ``item`` down for ``at``; a moment that has passed already means: now."""
        self.sequence += 1
        due = Due(at, self.sequence, item)
        heapq.heappush(self._heap, due)
        return due

    def head(self) -> Due[Item] | None:
        """Show what is due first and leave it there."""
        return self._heap[0] if self._heap else None

    def drop_head(self) -> Due[Item]:
        """Forget what is due first, without going to its time."""
        return heapq.heappop(self._heap)

    def step(self, until: datetime) -> Due[Item] | None:
        """Take the first item due at or before ``until`` and go to its time; None when there is none."""
        if not self._heap or self._heap[0].at > until:
            return None
        due = heapq.heappop(self._heap)
        self.move_to(due.at)
        return due

    def keep_only(self, is_wanted: Callable[[Due[Item]], bool]) -> list[Due[Item]]:
        """Forget all that is not wanted any more; returns it."""
        wanted: list[Due[Item]] = []
        gone: list[Due[Item]] = []
        for due in self._heap:
            (wanted if is_wanted(due) else gone).append(due)
        heapq.heapify(wanted)
        self._heap = wanted
        return gone

    def put_back(self, due: Due[Item]) -> None:
        """Have an item due again that was taken."""
        heapq.heappush(self._heap, due)

    def move_to(self, moment: datetime) -> None:
        """Go to ``moment``; a moment before now changes nothing, for time never goes back."""
        if moment > self.now:
            self.now = moment

    def __iter__(self) -> Iterator[Due[Item]]:
        """All that is due, in the order in which ``step`` would take it."""
        return iter(sorted(self._heap))
