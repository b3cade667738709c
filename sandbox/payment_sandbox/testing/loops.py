"""Event loops: blocking calls that leave the loop free, and a shop's coroutines on the loop of the test."""

import asyncio
import sys
from collections.abc import Callable
from concurrent.futures import Future
from contextvars import copy_context
from threading import Event, Thread
from typing import Any, Final, ParamSpec, TypeVar

from payment_sandbox.serving.real_loop import RealTimeLoop
from payment_sandbox.serving.threads import start
from payment_sandbox.testing.calling import CALLING_LOOP, TimeLimit, Work

FAREWELL_SECONDS: Final = 1.0  # for what a coroutine does after it is cancelled

Result = TypeVar("Result")
Given = ParamSpec("Given")


async def run_blocking(work: Callable[Given, Result], *given: Given.args, **options: Given.kwargs) -> Result:
    """Run a blocking call on another thread while the event loop goes on; works on asyncio and trio."""
    trio = _trio()

    def run() -> Result:
        CALLING_LOOP.set(_Trio(trio, token) if trio is not None else Asyncio(loop))
        return work(*given, **options)

    if trio is not None:
        token = trio.lowlevel.current_trio_token()
        result: Result = await trio.to_thread.run_sync(run)
        return result
    loop = asyncio.get_running_loop()
    return await asyncio.to_thread(run)


def _trio() -> Any:
    """The trio module, if this code runs on it."""
    trio = sys.modules.get("trio")
    return trio if trio is not None and trio.lowlevel.in_trio_run() else None


def is_running_here() -> bool:
    """Whether an event loop runs on this thread, so that no other can."""
    return asyncio._get_running_loop() is not None or _trio() is not None


def new_event() -> Any:
    """An event of the library whose loop runs here: with ``set()`` and ``await wait()``."""
    trio = _trio()
    return trio.Event() if trio is not None else asyncio.Event()


class Asyncio:
    """A running event loop of asyncio, for use from other threads."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop

    def run(self, work: Work, limit_seconds: float) -> None:
        """Run a coroutine on the loop. The limit is in real time, whatever time the loop has.

        Raises:
            TimeLimit: it took longer than the limit, and was cancelled.
        """

        ended = Event()

        async def run() -> None:
            CALLING_LOOP.set(None)  # what it calls is called on the loop's own thread
            try:
                await work()
            finally:
                ended.set()

        future = asyncio.run_coroutine_threadsafe(run(), self._loop)
        try:
            future.result(limit_seconds)
        except TimeoutError:
            if future.done():  # it is the coroutine's own
                raise
            future.cancel()
            ended.wait(FAREWELL_SECONDS)
            raise TimeLimit from None

    def call(self, work: Callable[[], None]) -> None:
        """Run a function on the loop's thread, as if no loop ran there."""
        ended: Future[None] = Future()

        def run() -> None:
            CALLING_LOOP.set(None)
            asyncio._set_running_loop(None)  # so that it can run coroutines as it does in production
            try:
                work()
            except BaseException as error:
                ended.set_exception(error)
            else:
                ended.set_result(None)
            finally:
                asyncio._set_running_loop(self._loop)

        self._loop.call_soon_threadsafe(run, context=copy_context())
        ended.result()


class _Trio:
    def __init__(self, trio: Any, token: Any) -> None:
        self._trio, self._token = trio, token

    def run(self, work: Work, limit_seconds: float) -> None:
        """Run a coroutine on the loop."""

        async def run() -> None:
            CALLING_LOOP.set(None)
            with self._trio.move_on_after(limit_seconds) as limit:
                await work()
            if limit.cancelled_caught:
                raise TimeLimit

        self._trio.from_thread.run(run, trio_token=self._token)

    def call(self, work: Callable[[], None]) -> None:
        """Run a function on the loop's thread."""

        def run() -> None:
            CALLING_LOOP.set(None)
            work()

        self._trio.from_thread.run_sync(run, trio_token=self._token)


async def within(work: Work, limit_seconds: float) -> None:
    """Run a coroutine; cancel it after the limit, and give it a moment to end.

    Raises:
        TimeLimit: it was cancelled.
    """
    task = asyncio.ensure_future(work())
    done, _ = await asyncio.wait({task}, timeout=limit_seconds)
    if done:
        task.result()
        return
    task.cancel()
    await asyncio.wait({task}, timeout=FAREWELL_SECONDS)
    if task.done() and not task.cancelled():
        task.exception()  # it comes too late, but asyncio reports what nobody asks for
    raise TimeLimit


class OwnLoop:
    """An event loop that runs only while a coroutine does, on the thread that waits for it."""

    def __init__(self) -> None:
        self._loop = RealTimeLoop()

    def run(self, work: Work, limit_seconds: float) -> None:
        """Run a coroutine on this thread.

        Raises:
            TimeLimit: it took longer than the limit, and was cancelled.
        """
        self._loop.run_until_complete(within(work, limit_seconds))

    def close(self) -> None:
        """Cancel what still runs, and close the loop."""
        tasks = asyncio.all_tasks(self._loop)
        for task in tasks:
            task.cancel()
        if tasks:
            self._loop.run_until_complete(asyncio.wait(tasks, timeout=FAREWELL_SECONDS))
        self._loop.run_until_complete(self._loop.shutdown_asyncgens())
        self._loop.close()


class LoopThread:
    """An event loop that runs on a thread of its own until it is closed."""

    def __init__(self) -> None:
        self._loop = RealTimeLoop()
        self._thread = Thread(target=self._loop.run_forever, name="shop", daemon=True)
        start(self._thread)

    def run(self, work: Work, limit_seconds: float) -> None:
        """Run a coroutine on the loop's thread.

        Raises:
            TimeLimit: it took longer than the limit, and was cancelled.
        """
        Asyncio(self._loop).run(work, limit_seconds)

    def close(self) -> None:
        """Stop the thread, and close the loop; a handler that blocks it keeps both."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(FAREWELL_SECONDS)
        if not self._thread.is_alive():
            self._loop.close()
