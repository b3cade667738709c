"""Threads that run one at a time in a seeded order, and a clock that advances only with their steps."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from threading import Semaphore, Thread, current_thread
from typing import Final

from payment_sandbox.kernel.ids import Ids
from payment_sandbox.projects.clock import RealTime

START: Final = datetime(2027, 1, 1, tzinfo=UTC)
STEP_SECONDS: Final = 0.001
WAIT_SECONDS: Final = 0.05
CONTINUE_CHANCE_OF_TEN: Final = 7
STEPS_MAX: Final = 20_000


class EndlessRun(AssertionError):
    """The run does not end."""


class World:
    """A cooperative scheduler: each thread runs until it pauses."""

    def __init__(self, seed: int) -> None:
        self.ids = Ids(seed)
        self.seconds = 0.0
        self.real = RealTime(lambda: START + timedelta(seconds=self.seconds), lambda: self.seconds)
        self._turns: dict[Thread, Semaphore] = {}
        self._ended = Semaphore(0)
        self._steps = 0
        self.failures: list[BaseException] = []

    def run(self, jobs: Sequence[Callable[[], None]]) -> None:
        """Run all jobs to completion.

        Raises:
            BaseException: the first failure of one of them.
        """
        threads = [Thread(target=self._work, args=(job,), daemon=True) for job in jobs]
        self._turns = {thread: Semaphore(0) for thread in threads}
        for thread in threads:
            thread.start()
        self._run_next()
        for _ in threads:
            self._ended.acquire()
        if self.failures:
            raise self.failures[0]

    def pause(self, *, waits: bool = False) -> None:
        """Let another thread run, at random or, if this thread ``waits``, always."""
        self._steps += 1
        if self._steps > STEPS_MAX:
            raise EndlessRun("the run does not end")
        self.seconds += WAIT_SECONDS if waits else STEP_SECONDS
        turn = self._turns.get(current_thread())
        if turn is None or (not waits and self.ids.number("pause", 10) < CONTINUE_CHANCE_OF_TEN):
            return
        self._run_next()
        turn.acquire()

    def wait(self, seconds: float, until: Callable[[], bool] = lambda: False) -> bool:
        """Wait until a condition holds; return False on timeout."""
        end = self.seconds + seconds
        while not until():
            if self.seconds >= end:
                return False
            self.pause(waits=True)
        return True

    def _work(self, job: Callable[[], None]) -> None:
        self._turns[current_thread()].acquire()
        try:
            job()
        except BaseException as failed:
            self.failures.append(failed)
        finally:
            del self._turns[current_thread()]
            self._run_next()
            self._ended.release()

    def _run_next(self) -> None:
        waiting = list(self._turns.values())
        if waiting:
            waiting[self.ids.number("turn", len(waiting))].release()
