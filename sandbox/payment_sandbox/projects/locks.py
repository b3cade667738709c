"""The ranked locks of the sandbox, and their order; other locks guard a few fields each.

A thread that holds a lock may only acquire locks of a higher rank:

1. ``REGISTRY``: the set of projects, held while one is created or deleted.
2. ``ADVANCE``: one per epoch, acquired without blocking, held while an advance waits for webhooks.
3. ``STATE``: one per project, held while an edit is planned, committed, applied and logged.
4. ``FILE``: the state file, or the connection to the database, held for one transaction.
5. ``OUTBOX``: one per epoch.
6. ``EVENTS``: one per project.
7. ``SCHEDULER``, ``THREADS`` and ``RELAY``: no other lock is acquired while they are held.

Acquire ``LOADING``, the lock for imports, after all of these locks, and the locks of pages that are built
once (the OpenAPI description, the documentation) before them.

A thread that waits for the network, a receiver or another thread holds no lock except ``ADVANCE``. One that
waits for the database also holds those of its edit, which reading the state again does not need. Tests enable
``check_order``, so that a lock acquired out of order fails the test.
"""

from threading import Lock, local
from types import TracebackType
from typing import Final

REGISTRY: Final = 1
ADVANCE: Final = 2
STATE: Final = 3
FILE: Final = 4
OUTBOX: Final = 5
EVENTS: Final = 6
SCHEDULER: Final = 7
THREADS: Final = 7
RELAY: Final = 7

_held_ranks = local()
_is_checked = False


def check_order(*, on: bool) -> None:
    """Enable or disable lock order checks for locks created afterwards."""
    global _is_checked  # noqa: PLW0603 (a switch for tests, read when a lock is created)
    _is_checked = on


class LockOrderBroken(AssertionError):
    """A thread acquired a lock while it held a lock of the same or a higher rank."""


def ranked_lock(rank: int) -> "Lock | RankedLock":
    """Create a lock of this rank; a plain lock if the check is disabled."""
    return RankedLock(rank) if _is_checked else Lock()


class RankedLock:
    """A lock that cannot be acquired out of order."""

    def __init__(self, rank: int) -> None:
        self._rank = rank
        self._lock = Lock()

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        """Acquire the lock.

        Raises:
            LockOrderBroken: the thread holds a lock of the same or a higher rank, and would block.
        """
        ranks: list[int] = _held_ranks.__dict__.setdefault("ranks", [])
        if blocking and ranks and max(ranks) >= self._rank:
            raise LockOrderBroken(f"a lock of rank {self._rank} was acquired while holding {ranks}")
        is_acquired = self._lock.acquire(blocking, timeout)
        if is_acquired:
            ranks.append(self._rank)
        return is_acquired

    def release(self) -> None:
        """Release the lock."""
        self._lock.release()
        ranks: list[int] = _held_ranks.__dict__.setdefault("ranks", [])
        if self._rank in ranks:  # false if another thread acquired it: advance locks
            ranks.remove(self._rank)

    def locked(self) -> bool:
        """Whether a thread holds the lock."""
        return self._lock.locked()

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()
