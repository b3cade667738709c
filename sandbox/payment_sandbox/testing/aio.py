"""A project's methods and clock for ``async`` tests, which do not block the event loop."""

from collections.abc import Callable, Coroutine
from datetime import datetime
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

from payment_sandbox.client.errors import SandboxError, ends_at_caller
from payment_sandbox.client.sandbox_clock import SandboxClock
from payment_sandbox.testing import loops

Result = TypeVar("Result")
Arguments = ParamSpec("Arguments")

__tracebackhide__ = ends_at_caller


async def run_blocking(
    call: Callable[Arguments, Result], *arguments: Arguments.args, **options: Arguments.kwargs
) -> Result:
    """Run a blocking call on another thread while the event loop continues.

    The traceback of a refusal omits that thread.
    """
    try:
        return await loops.run_blocking(call, *arguments, **options)
    except SandboxError as refused:
        raise refused.with_traceback(None) from None


def to_coroutine(
    method: Callable[Concatenate[Any, Arguments], Result], owner: str
) -> Callable[Concatenate[Any, Arguments], Coroutine[Any, Any, Result]]:
    """Turn a blocking method into a coroutine method with the same parameters, result and docstring.

    ``owner`` is the attribute that holds the object with the blocking method.
    """

    @wraps(method)
    async def run(self: Any, /, *arguments: Arguments.args, **options: Arguments.kwargs) -> Result:
        return await run_blocking(method, getattr(self, owner), *arguments, **options)

    return run


class AsyncClock:
    """The project's clock for ``async`` tests."""

    def __init__(self, clock: SandboxClock) -> None:
        self._clock = clock

    advance = to_coroutine(SandboxClock.advance, "_clock")
    set = to_coroutine(SandboxClock.set, "_clock")

    @property
    def now(self) -> Coroutine[Any, Any, datetime]:
        """The sandbox time: ``await clock.now``."""
        return run_blocking(lambda: self._clock.now)
