"""Runs that several tests share: each test varies its own project, so one run plays a variation of each."""

from collections.abc import Callable, Mapping
from threading import Condition, Thread
from typing import Any

from payment_sandbox.serving.threads import start
from pytest_payment_sandbox.rehearsal.exploring import ChangedSteps, Explored, Ran

Explore = Callable[[Callable[[ChangedSteps], Ran]], Explored]
"""Explores one test, given how a variation of it is run."""


class Stopped(Exception):
    """No more variations are run."""


class Batches:
    """Lets each test be explored on a thread of its own; their variations are collected for the next run."""

    def __init__(self, explorations: Mapping[str, Explore]) -> None:
        self._changed = Condition()
        self._live = set(explorations)
        self._asked: dict[str, ChangedSteps] = {}
        self._answers: dict[str, Ran] = {}
        self._is_over = False
        self._failure: BaseException | None = None
        self.explored: dict[str, Explored] = {}
        self._threads = [
            Thread(target=self._explore, args=each, name="exploration", daemon=True)
            for each in explorations.items()
        ]

    def next(self) -> dict[str, ChangedSteps]:
        """Wait for the next variation of each test; empty at the end.

        Raises:
            Exception: the exploration of a test has failed with it.
        """
        with self._changed:
            self._changed.wait_for(lambda: self._live == set(self._asked) or self._failure is not None)
            if self._failure is not None:
                raise self._failure
            asked, self._asked = self._asked, {}
        return asked

    def answer(self, test: str, ran: Ran) -> None:
        """Hand a test what its variation has shown."""
        with self._changed:
            self._answers[test] = ran
            self._changed.notify_all()

    def __enter__(self) -> "Batches":
        for thread in self._threads:
            start(thread)
        return self

    def __exit__(self, *error: Any) -> None:
        """End the explorations; each reports what it has tried until now."""
        with self._changed:
            self._is_over = True
            self._changed.notify_all()
        for thread in self._threads:
            thread.join()

    def _explore(self, test: str, explore: Explore) -> None:
        try:
            self.explored[test] = explore(lambda variation: self._run(test, variation))
        except BaseException as failure:
            self._failure = failure
        finally:
            with self._changed:
                self._live.discard(test)
                self._changed.notify_all()

    def _run(self, test: str, variation: ChangedSteps) -> Ran:
        with self._changed:
            self._asked[test] = variation
            self._changed.notify_all()
            self._changed.wait_for(lambda: test in self._answers or self._is_over)
            if test not in self._answers:
                raise Stopped
            return self._answers.pop(test)
