"""Event loops: run blocking calls outside the loop, and a shop's coroutines on the test's loop."""

import sys
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from contextvars import ContextVar, copy_context
from threading import Event, Thread
from typing import Any, Final, ParamSpec, TypeVar

from payment_sandbox.extensions import asyncio as asyncio
from payment_sandbox.serving import real_loop
from payment_sandbox.serving.threads import start

CLEANUP_SECONDS: Final = 1.0  # how long a cancelled coroutine may take to clean up

Work = Callable[[], Awaitable[None]]
Result = TypeVar("Result")
Arguments = ParamSpec("Arguments")


class TimeLimitExceeded(Exception):
    """A coroutine exceeded its time limit and was cancelled; the cause shows its position."""


CALLING_LOOP: Final[ContextVar["Asyncio | _Trio | None"]] = ContextVar("calling_loop", default=None)
"""The loop that awaits the blocking call on this thread."""


async def run_blocking(
    work: Callable[Arguments, Result], *arguments: Arguments.args, **options: Arguments.kwargs
) -> Result:
    """Run a blocking call on another thread while the event loop (asyncio or trio) continues."""
    trio = _running_trio()

    def run() -> Result:
        CALLING_LOOP.set(_Trio(trio, token) if trio is not None else Asyncio(loop))
        return work(*arguments, **options)

    if trio is not None:
        token = trio.lowlevel.current_trio_token()
        result: Result = await trio.to_thread.run_sync(run)
        return result
    loop = asyncio.get_running_loop()
    return await asyncio.to_thread(run)


def _running_trio() -> Any:
    trio = sys.modules.get("trio")
    return trio if trio is not None and trio.lowlevel.in_trio_run() else None


def has_running_loop() -> bool:
    """Return whether an event loop runs on this thread, which excludes other loops."""
    return asyncio.events._get_running_loop() is not None or _running_trio() is not None


def new_event() -> Any:
    """Create an event for the running library (asyncio or trio), with ``set()`` and ``await wait()``."""
    trio = _running_trio()
    return trio.Event() if trio is not None else asyncio.Event()


class Asyncio:
    """A running asyncio event loop, for use from other threads."""

    def __init__(self, loop: "asyncio.AbstractEventLoop") -> None:
        self._loop = loop

    def run(self, work: Work, limit_seconds: float) -> None:
        """Run a coroutine on the loop. The limit is in real time, even if the loop's time is frozen.

        Raises:
            TimeLimitExceeded: the coroutine took longer than the limit, and was cancelled.
        """

        ended = Event()

        async def run() -> None:
            CALLING_LOOP.set(None)  # nested calls run on the loop's own thread
            try:
                await work()
            finally:
                ended.set()

        future = asyncio.run_coroutine_threadsafe(run(), self._loop)
        try:
            future.result(limit_seconds)
        except TimeoutError:
            if future.done():  # the coroutine itself raised this error
                raise
            future.cancel()
            ended.wait(CLEANUP_SECONDS)
            raise TimeLimitExceeded from None

    def call(self, work: Callable[[], None]) -> None:
        """Run a function on the loop's thread, as if that thread had no running loop."""
        ended: Future[None] = Future()

        def run() -> None:
            CALLING_LOOP.set(None)
            asyncio.events._set_running_loop(None)  # so that the function can run coroutines
            try:
                work()
            except BaseException as error:
                ended.set_exception(error)
            else:
                ended.set_result(None)
            finally:
                asyncio.events._set_running_loop(self._loop)

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
                raise TimeLimitExceeded

        self._trio.from_thread.run(run, trio_token=self._token)

    def call(self, work: Callable[[], None]) -> None:
        """Run a function on the loop's thread."""

        def run() -> None:
            CALLING_LOOP.set(None)
            work()

        self._trio.from_thread.run_sync(run, trio_token=self._token)


async def run_within(work: Work, limit_seconds: float) -> None:
    """Run a coroutine; at the limit, cancel it and wait briefly for its cleanup.

    Raises:
        TimeLimitExceeded: the coroutine was cancelled.
    """
    task = asyncio.ensure_future(work())
    done, _ = await asyncio.wait({task}, timeout=limit_seconds)
    if done:
        task.result()
        return
    task.cancel()
    await asyncio.wait({task}, timeout=CLEANUP_SECONDS)
    if task.done() and not task.cancelled():
        task.exception()  # otherwise asyncio would log that the exception was never retrieved
    raise TimeLimitExceeded


class OwnLoop:
    """An event loop on the waiting thread, which runs only while it has a coroutine to run."""

    def __init__(self) -> None:
        self._loop = real_loop.RealTimeLoop()

    def run(self, work: Work, limit_seconds: float) -> None:
        """Run a coroutine on this thread.

        Raises:
            TimeLimitExceeded: the coroutine took longer than the limit, and was cancelled.
        """
        self._loop.run_until_complete(run_within(work, limit_seconds))

    def close(self) -> None:
        """Cancel the running tasks, and close the loop."""
        tasks = asyncio.all_tasks(self._loop)
        for task in tasks:
            task.cancel()
        if tasks:
            self._loop.run_until_complete(asyncio.wait(tasks, timeout=CLEANUP_SECONDS))
        self._loop.run_until_complete(self._loop.shutdown_asyncgens())
        self._loop.close()


class LoopThread:
    """An event loop that runs on a separate thread until ``close``."""

    def __init__(self) -> None:
        self._loop = real_loop.RealTimeLoop()
        self._thread = Thread(target=self._loop.run_forever, name="shop", daemon=True)
        start(self._thread)

    def run(self, work: Work, limit_seconds: float) -> None:
        """Run a coroutine on the loop's thread.

        Raises:
            TimeLimitExceeded: the coroutine took longer than the limit, and was cancelled.
        """
        Asyncio(self._loop).run(work, limit_seconds)

    def close(self) -> None:
        """Stop the thread, and close the loop; a blocking handler prevents both."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(CLEANUP_SECONDS)
        if not self._thread.is_alive():
            self._loop.close()
