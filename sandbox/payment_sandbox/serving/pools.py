"""Places for calls: how many may run at once, in all and for one project."""

from asyncio import AbstractEventLoop, CancelledError, Future, Semaphore
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import TypeVar
from weakref import WeakValueDictionary

from payment_sandbox.serving.threads import Threads

Result = TypeVar("Result")


class Places:
    """Places for calls of one kind, of which each group of calls has some; for the event loop only.

    The calls of a group get their places in the order in which they came, and a crowd waits in its own group.
    """

    def __init__(self, total: int, per_group: int) -> None:
        self._total = Semaphore(total)
        self._per_group = per_group
        self._groups: WeakValueDictionary[str, Semaphore] = WeakValueDictionary()

    def has_free(self, group: str) -> bool:
        """Whether a call of this group would get a place at once."""
        own = self._groups.get(group)
        return not self._total.locked() and (own is None or not own.locked())

    async def take(self, group: str) -> Callable[[], None]:
        """Wait for a place; return the function that gives it back."""
        own = self._groups.setdefault(group, Semaphore(self._per_group))
        await own.acquire()
        try:
            await self._total.acquire()
        except CancelledError:
            own.release()
            raise

        def give_back() -> None:
            self._total.release()
            own.release()

        return give_back


class Pool(Places):
    """Threads for calls of one kind."""

    def __init__(self, loop: AbstractEventLoop, threads: Threads, total: int, per_group: int) -> None:
        super().__init__(total, per_group)
        self._loop = loop
        self._threads = threads

    async def start(self, group: str, work: Callable[[], Result]) -> Future[Result]:
        """Start work on a thread once it has a place, which it keeps to its end."""
        give_back = await self.take(group)
        future: Future[Result] = self._loop.create_future()
        future.add_done_callback(lambda _: give_back())

        def run() -> None:
            try:
                settle = partial(future.set_result, work())
            except BaseException as error:
                settle = partial(future.set_exception, error)
            with suppress(RuntimeError):  # the loop has stopped
                self._loop.call_soon_threadsafe(settle)

        self._threads.run(run)
        return future
