"""Who runs next: projects share the server in turn, so that one's crowd costs others little."""

from asyncio import AbstractEventLoop
from collections import Counter, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from threading import Lock
from typing import Final

from payment_sandbox.serving.threads import Threads

RUNNING_MAX: Final = 8  # more would only slow each other down
READING_MAX: Final = 1  # of large bodies: the interpreter does nothing else while it parses one

Job = Callable[["Turn"], None]


class Waiting:
    """How many calls wait, or watch: ``most`` in all, and half of them for each project."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._count = 0
        self._by_share: Counter[str] = Counter()
        self._lock = Lock()

    def begin(self, share: str) -> bool:
        """Count one more; False if too many wait already."""
        with self._lock:
            if self._count >= self._most or self._by_share[share] >= self._most // 2:
                return False
            self._count += 1
            self._by_share[share] += 1
            return True

    def end(self, share: str) -> None:
        """Count one less."""
        with self._lock:
            self._count -= 1
            self._by_share[share] -= 1
            if not self._by_share[share]:
                del self._by_share[share]

    @contextmanager
    def counted(self, share: str) -> Iterator[bool]:
        """Count one more while inside; False if too many wait already."""
        may_wait = self.begin(share)
        try:
            yield may_wait
        finally:
            if may_wait:
                self.end(share)


class Lane:
    """Runs jobs on threads, a few at once: one of each project in turn, in the order in which they came."""

    def __init__(self, loop: AbstractEventLoop, threads: Threads, running_max: int, waiting: Waiting) -> None:
        self._loop = loop
        self._threads = threads
        self._running_max = running_max
        self._waiting = waiting
        self._running = 0
        self._queues: dict[str, deque[Job]] = {}  # of the projects that want a turn, the next one first

    def run(self, share: str, job: Job) -> None:
        """Run a job when it is its turn. To be called on the event loop."""
        self._queues.setdefault(share, deque()).append(job)
        self._go_on()

    def pass_on(self) -> None:
        """Note that a job has ended, or waits. To be called on its thread."""
        with suppress(RuntimeError):  # the loop has stopped
            self._loop.call_soon_threadsafe(self._passed_on)

    def _passed_on(self) -> None:
        self._running -= 1
        self._go_on()

    def _go_on(self) -> None:
        while self._queues and self._running < self._running_max:
            share = next(iter(self._queues))
            queue = self._queues.pop(share)
            job = queue.popleft()
            if queue:
                self._queues[share] = queue  # behind all others
            self._running += 1
            turn = Turn(self, share, self._waiting)
            self._threads.run(lambda job=job, turn=turn: turn.run(job))  # type: ignore[misc]


class Turn:
    """A job's turn to run on a thread; it passes to another one when the job begins to wait."""

    def __init__(self, lane: Lane, share: str, waiting: Waiting) -> None:
        self._lane = lane
        self._share = share
        self._waiting = waiting
        self._is_waiting = False

    def run(self, job: Job) -> None:
        """Run the job on this thread."""
        try:
            job(self)
        finally:
            if self._is_waiting:
                self._waiting.end(self._share)
            else:
                self._lane.pass_on()

    def begin_waiting(self) -> bool:
        """Let another job run; False if too many wait already. To be called on the job's thread."""
        if not self._is_waiting and self._waiting.begin(self._share):
            self._is_waiting = True
            self._lane.pass_on()
        return self._is_waiting
