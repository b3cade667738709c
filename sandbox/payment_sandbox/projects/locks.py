"""All locks of the sandbox, and the order in which they may be taken.

A thread that holds a lock may only take locks of a higher rank:

1. ``REGISTRY``: which projects there are, and who makes or deletes one.
2. ``ADVANCE``: one per epoch, only ever tried, held while an advance waits for webhooks.
3. ``STATE``: one per project, held while an edit is planned, committed and applied.
4. ``FILE``: the state file, held for one transaction.
5. ``TELLING``: one per project, taken before ``STATE`` is released, so that what edits have to tell comes
   in the order of the edits.
6. ``OUTBOX``: one per epoch.
7. ``EVENTS``: one per project.
8. ``PACER`` and ``THREADS``: inside the server; nothing else is taken while they are held.

Nobody waits for a network, a receiver or another thread's work while holding anything but ``ADVANCE``.
Tests switch the check on (``check_order``), and every lock taken out of this order fails there.
"""

from threading import Lock, local
from types import TracebackType
from typing import Final

REGISTRY: Final = 1
ADVANCE: Final = 2
STATE: Final = 3
FILE: Final = 4
TELLING: Final = 5
OUTBOX: Final = 6
EVENTS: Final = 7
PACER: Final = 8
THREADS: Final = 8

_held = local()
_is_checked = False


def check_order(*, on: bool) -> None:
    """Check from now on that locks are taken in their order, or stop checking; for locks made later."""
    global _is_checked  # noqa: PLW0603 (a switch for tests, read when a lock is made)
    _is_checked = on


class LockOrderBroken(AssertionError):
    """A lock was taken while one of the same or a higher rank was held."""


def ranked_lock(rank: int) -> "Lock | RankedLock":
    """A lock of this rank; a plain one where nobody checks."""
    return RankedLock(rank) if _is_checked else Lock()


class RankedLock:
    """A lock that refuses to be taken out of order."""

    def __init__(self, rank: int) -> None:
        self._rank = rank
        self._lock = Lock()

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        """Take it.

        Raises:
            LockOrderBroken: this thread holds one of the same or a higher rank, and would wait.
        """
        ranks: list[int] = _held.__dict__.setdefault("ranks", [])
        if blocking and ranks and max(ranks) >= self._rank:
            raise LockOrderBroken(f"a lock of rank {self._rank} is taken while {ranks} are held")
        taken = self._lock.acquire(blocking, timeout)
        if taken:
            ranks.append(self._rank)
        return taken

    def release(self) -> None:
        """Give it back."""
        self._lock.release()
        ranks: list[int] = _held.__dict__.setdefault("ranks", [])
        if self._rank in ranks:  # an advance lock may be given back by another thread
            ranks.remove(self._rank)

    def locked(self) -> bool:
        """Whether somebody holds it."""
        return self._lock.locked()

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.release()
