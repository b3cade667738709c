"""Calls of many threads go to the database together, and each gets its own result."""

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Event

import pytest

from payment_sandbox_company.batches import BATCH_MAX, Batches


class Slow:
    """Work on batches that goes on when the test says so."""

    def __init__(self) -> None:
        self.batches: list[list[int]] = []
        self.begun, self.may_end = Event(), Event()

    def __call__(self, items: Sequence[int]) -> list[int]:
        """Double them; ten is refused."""
        self.batches.append(list(items))
        self.begun.set()
        assert self.may_end.wait(10)
        if 10 in items:
            raise ValueError("ten")
        return [2 * item for item in items]


def until(is_so: Callable[[], bool]) -> None:
    """Wait until something is so."""
    for _ in range(1000):
        if is_so():
            return
        Event().wait(0.01)
    raise AssertionError("it never was so")


def calls(pool: ThreadPoolExecutor, batches: Batches[int, int], *items: int) -> list["Future[int]"]:
    """Calls of as many threads, in this order."""
    made: list[Future[int]] = []
    for item in items:
        waiting = len(batches._waiting)
        made.append(pool.submit(batches.call, item))
        until(lambda count=waiting: len(batches._waiting) > count)  # type: ignore[misc]
    return made


def test_what_comes_meanwhile_goes_together() -> None:
    """The first call is alone; those that come while it is under way are the second batch."""
    slow = Slow()
    batches: Batches[int, int] = Batches(slow)
    with ThreadPoolExecutor(8) as pool:
        first = pool.submit(batches.call, 1)
        assert slow.begun.wait(10)
        others = calls(pool, batches, 2, 3, 4)
        slow.may_end.set()
        assert [each.result(10) for each in (first, *others)] == [2, 4, 6, 8]
    assert slow.batches == [[1], [2, 3, 4]]


def test_a_refusal_reaches_all_of_a_batch_and_nobody_else() -> None:
    """What the work raises, all callers of that batch get; the next batch is made all the same."""
    slow = Slow()
    batches: Batches[int, int] = Batches(slow)
    with ThreadPoolExecutor(8) as pool:
        first = pool.submit(batches.call, 1)
        assert slow.begun.wait(10)
        refused = calls(pool, batches, 10, 3)
        slow.may_end.set()
        assert first.result(10) == 2
        for each in refused:
            with pytest.raises(ValueError, match="ten"):
                each.result(10)
    assert batches.call(4) == 8


def test_many_threads_get_their_own_results() -> None:
    """Whatever goes together, each caller gets its own; no batch is too long."""
    sizes: list[int] = []

    def double(items: Sequence[int]) -> list[int]:
        sizes.append(len(items))
        return [2 * item for item in items]

    batches: Batches[int, int] = Batches(double)
    with ThreadPoolExecutor(100) as pool:
        assert list(pool.map(batches.call, range(5000))) == [2 * item for item in range(5000)]
    assert sum(sizes) == 5000
    assert max(sizes) <= BATCH_MAX
