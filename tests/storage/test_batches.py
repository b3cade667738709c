"""Calls from several threads are sent to the database in batches; each caller gets its own result."""

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Event

import pytest

from payment_sandbox_company.batches import BATCH_MAX, Batches


class BlockingWork:
    """A batch function that blocks until the test releases it."""

    def __init__(self) -> None:
        self.batches: list[list[int]] = []
        self.started, self.may_finish = Event(), Event()

    def __call__(self, items: Sequence[int]) -> list[int]:
        """Return the doubled items; raise ``ValueError`` if one is 10."""
        self.batches.append(list(items))
        self.started.set()
        assert self.may_finish.wait(60)
        if 10 in items:
            raise ValueError("ten")
        return [2 * item for item in items]


def wait_until(condition: Callable[[], bool]) -> None:
    """Wait until a condition holds."""
    while not condition():
        Event().wait(0.01)


def submit_calls(pool: ThreadPoolExecutor, batches: Batches[int, int], *items: int) -> list["Future[int]"]:
    """Submit one call per item, each from its own thread, in this order."""
    futures: list[Future[int]] = []
    for item in items:
        waiting = len(batches._waiting)
        futures.append(pool.submit(batches.call, item))
        wait_until(lambda count=waiting: len(batches._waiting) > count)  # type: ignore[misc]
    return futures


def test_calls_during_a_batch_form_the_next_one() -> None:
    """Calls that arrive while a batch is in flight form the next batch."""
    work = BlockingWork()
    batches: Batches[int, int] = Batches(work)
    with ThreadPoolExecutor(8) as pool:
        first = pool.submit(batches.call, 1)
        assert work.started.wait(60)
        others = submit_calls(pool, batches, 2, 3, 4)
        work.may_finish.set()
        assert [each.result(60) for each in (first, *others)] == [2, 4, 6, 8]
    assert work.batches == [[1], [2, 3, 4]]


def test_an_error_reaches_only_the_callers_of_its_batch() -> None:
    """An error reaches every caller of its batch; the next batch is unaffected."""
    work = BlockingWork()
    batches: Batches[int, int] = Batches(work)
    with ThreadPoolExecutor(8) as pool:
        first = pool.submit(batches.call, 1)
        assert work.started.wait(60)
        refused = submit_calls(pool, batches, 10, 3)
        work.may_finish.set()
        assert first.result(60) == 2
        for each in refused:
            with pytest.raises(ValueError, match="ten"):
                each.result(60)
    assert batches.call(4) == 8


def test_many_threads_get_their_own_results() -> None:
    """Each caller gets its own result, and no batch exceeds the maximum size."""
    sizes: list[int] = []

    def double(items: Sequence[int]) -> list[int]:
        sizes.append(len(items))
        return [2 * item for item in items]

    batches: Batches[int, int] = Batches(double)
    with ThreadPoolExecutor(100) as pool:
        assert list(pool.map(batches.call, range(5000))) == [2 * item for item in range(5000)]
    assert sum(sizes) == 5000
    assert max(sizes) <= BATCH_MAX
