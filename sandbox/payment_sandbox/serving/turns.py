"""Fair scheduling of work: round-robin over projects."""

from asyncio import AbstractEventLoop, Future
from collections import Counter, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from threading import Lock
from typing import Generic, TypeVar

from payment_sandbox.serving.threads import Threads, run_on_thread

Item = TypeVar("Item")
Result = TypeVar("Result")


class WaitCounter:
    """A counter of waiting or watching calls, up to ``limit`` in total and two thirds of it per project."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._count = 0
        self._by_share: Counter[str] = Counter()
        self._lock = Lock()

    def begin(self, share: str) -> bool:
        """Count a new call; return False if the limit is reached."""
        with self._lock:
            if self._count >= self._limit or self._by_share[share] >= self._limit * 2 // 3:
                return False
            self._count += 1
            self._by_share[share] += 1
            return True

    def end(self, share: str) -> None:
        """Count the end of a call."""
        with self._lock:
            self._count -= 1
            self._by_share[share] -= 1
            if not self._by_share[share]:
                del self._by_share[share]

    @contextmanager
    def count_call(self, share: str) -> Iterator[bool]:
        """Count a call in the context; yield False if the limit is reached."""
        may_wait = self.begin(share)
        try:
            yield may_wait
        finally:
            if may_wait:
                self.end(share)


class RoundRobinQueue(Generic[Item]):
    """A round-robin queue over projects; within a project, first in, first out."""

    def __init__(self) -> None:
        self._queues: dict[str, deque[Item]] = {}  # by project, the next project first

    def __bool__(self) -> bool:
        return bool(self._queues)

    def put(self, share: str, item: Item) -> None:
        """Add an item for a project."""
        self._queues.setdefault(share, deque()).append(item)

    def take(self) -> tuple[str, Item]:
        """Remove and return the oldest item of the next project."""
        share = next(iter(self._queues))
        queue = self._queues.pop(share)
        item = queue.popleft()
        if queue:
            self._queues[share] = queue  # moved to the end
        return share, item


class FairPool:
    """Runs work on a few threads: round-robin over projects, first in, first out within a project."""

    def __init__(
        self, loop: AbstractEventLoop, threads: Threads, running_max: int, waiting: WaitCounter
    ) -> None:
        self._loop = loop
        self._threads = threads
        self._running_max = running_max
        self._waiting = waiting
        self._running = 0
        self._queue = RoundRobinQueue[Callable[[], None]]()

    def run(self, share: str, work: "Callable[[Turn], Result]") -> "Future[Result]":
        """Run ``work`` in its turn; return a future for the result. Call this on the event loop."""
        turn = Turn(self, share, self._waiting)

        def queue(job: Callable[[], None]) -> None:
            self._queue.put(share, job)
            self._start_next()

        return run_on_thread(self._loop, queue, lambda: work(turn), turn.end)

    def release_soon(self) -> None:
        """Start the next job, because a job is waiting. Call this on the waiting job's thread."""
        with suppress(RuntimeError):  # the loop has stopped
            self._loop.call_soon_threadsafe(self.release)

    def release(self) -> None:
        """Start the next job, because a job has ended or is waiting. Call this on the event loop."""
        self._running -= 1
        self._start_next()

    def _start_next(self) -> None:
        while self._queue and self._running < self._running_max:
            _, job = self._queue.take()
            self._running += 1
            self._threads.run(job)


class Turns:
    """Turns for work on the event loop: one per iteration, so that other tasks can run in between.

    The first work in an iteration starts at once if no other work is waiting.
    """

    def __init__(self, loop: AbstractEventLoop) -> None:
        self._loop = loop
        self._queue = RoundRobinQueue[Future[None]]()
        self._is_taken = False  # whether this iteration's turn is taken

    def take(self) -> bool:
        """Take the turn of this iteration, if it is free; the caller's work must not block."""
        if self._is_taken:
            return False
        self._is_taken = True
        self._loop.call_soon(self._grant_next)
        return True

    def wait(self, share: str) -> "Future[None]":
        """Wait for the turn of a project; call it only after ``take`` has returned False."""
        turn: Future[None] = self._loop.create_future()
        self._queue.put(share, turn)
        return turn

    def _grant_next(self) -> None:
        self._is_taken = bool(self._queue)
        if self._is_taken:
            self._loop.call_soon(self._grant_next)
            _, turn = self._queue.take()
            if not turn.done():
                turn.set_result(None)


class Turn:
    """A job's turn to run on a thread, passed on when the job begins to wait."""

    def __init__(self, pool: FairPool, share: str, waiting: WaitCounter) -> None:
        self._pool = pool
        self._share = share
        self._waiting = waiting
        self._is_waiting = False

    def end(self) -> None:
        """Pass on the turn of an ended job. Call this on the event loop."""
        if self._is_waiting:
            self._waiting.end(self._share)
        else:
            self._pool.release()

    def begin_waiting(self) -> bool:
        """Let another job run; return False if too many jobs are waiting. Call this on the job's thread."""
        if not self._is_waiting and self._waiting.begin(self._share):
            self._is_waiting = True
            self._pool.release_soon()
        return self._is_waiting
