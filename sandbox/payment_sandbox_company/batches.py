"""Calls of many threads, made together: what comes while one batch is under way goes with the next one."""

from collections.abc import Callable, Sequence
from threading import Lock
from typing import Final, Generic, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")

MOST: Final = 64
"""Calls in one batch."""


class _Call(Generic[Item, Result]):
    """A call that waits: until another caller has made it, or for a batch to make itself."""

    def __init__(self, item: Item) -> None:
        self.item = item
        self.batch: Sequence[_Call[Item, Result]] = ()  # that its caller makes
        self.result: Result | None = None
        self.error: BaseException | None = None
        self._turn = Lock()
        self._turn.acquire()

    def wait(self) -> None:
        self._turn.acquire()

    def go_on(self) -> None:
        self._turn.release()


class Batches(Generic[Item, Result]):
    """Makes calls in batches, one after the other; the first caller of a batch makes it."""

    def __init__(self, make: Callable[[Sequence[Item]], Sequence[Result]]) -> None:
        """``make`` takes the items of a batch, and returns the result of each."""
        self._make = make
        self._lock = Lock()  # guards what follows
        self._is_busy = False
        self._waiting: list[_Call[Item, Result]] = []

    def call(self, item: Item) -> Result:
        """The result for an item; what ``make`` raises, all callers of its batch get."""
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
            self._make_batch(own.batch)
        if own.error is not None:
            raise own.error
        return own.result  # type: ignore[return-value]  # one of the two is set

    def _make_batch(self, batch: Sequence[_Call[Item, Result]]) -> None:
        try:
            results = self._make([call.item for call in batch])
            for call, result in zip(batch, results, strict=True):
                call.result = result
        except BaseException as error:
            for call in batch:
                call.error = error
        finally:
            self._begin_next()
            for call in batch[1:]:
                call.go_on()

    def _begin_next(self) -> None:
        with self._lock:
            batch, self._waiting = self._waiting[:MOST], self._waiting[MOST:]
            self._is_busy = bool(batch)
        if batch:
            batch[0].batch = batch
            batch[0].go_on()
