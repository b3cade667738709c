"""Batching of calls from many threads; calls that arrive during a batch form the next one."""

from collections.abc import Callable, Sequence
from threading import Lock
from typing import Final, Generic, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")

BATCH_MAX: Final = 64
"""The maximum number of calls in a batch."""


class _Call(Generic[Item, Result]):
    """A waiting call: either another caller runs it, or it becomes the first call of a batch."""

    def __init__(self, item: Item) -> None:
        self.item = item
        self.batch: Sequence[_Call[Item, Result]] = ()  # the batch that this call's thread runs
        self.result: Result | None = None
        self.error: BaseException | None = None
        self._turn = Lock()
        self._turn.acquire()

    def wait(self) -> None:
        self._turn.acquire()

    def wake(self) -> None:
        self._turn.release()


class Batches(Generic[Item, Result]):
    """Runs calls in batches, one batch at a time, on the threads of the first callers."""

    def __init__(self, run: Callable[[Sequence[Item]], Sequence[Result]]) -> None:
        """Batch calls to ``run``, which takes a list of items and returns their results."""
        self._run = run
        self._lock = Lock()  # guards the following fields
        self._is_busy = False
        self._waiting: list[_Call[Item, Result]] = []

    def call(self, item: Item) -> Result:
        """Return the result for an item; an exception from ``run`` is raised to every caller in the batch."""
        own: _Call[Item, Result] = _Call(item)
        with self._lock:
            must_wait, self._is_busy = self._is_busy, True
            if must_wait:
                self._waiting.append(own)
            else:
                own.batch = [own]
        if must_wait:
            own.wait()
        if own.batch:
            self._run_batch(own.batch)
        if own.error is not None:
            raise own.error
        return own.result  # type: ignore[return-value]  # set, unless there is an error

    def _run_batch(self, batch: Sequence[_Call[Item, Result]]) -> None:
        try:
            results = self._run([call.item for call in batch])
            for call, result in zip(batch, results, strict=True):
                call.result = result
        except BaseException as error:
            for call in batch:
                call.error = error
        finally:
            self._start_next()
            for call in batch[1:]:
                call.wake()

    def _start_next(self) -> None:
        with self._lock:
            batch, self._waiting = self._waiting[:BATCH_MAX], self._waiting[BATCH_MAX:]
            self._is_busy = bool(batch)
        if batch:
            batch[0].batch = batch
            batch[0].wake()
