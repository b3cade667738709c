"""Methods and the clock of a project for ``async`` tests: the event loop goes on while the sandbox works."""

from collections.abc import Callable, Coroutine
from datetime import datetime
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

from payment_sandbox.client.clock import SandboxClock
from payment_sandbox.client.errors import SandboxError, ends_at_caller
from payment_sandbox.loading import LOADING

Result = TypeVar("Result")
Given = ParamSpec("Given")

__tracebackhide__ = ends_at_caller


async def run_blocking(call: Callable[Given, Result], *given: Given.args, **options: Given.kwargs) -> Result:
    """Run a blocking call on another thread while the event loop goes on.

    The traceback of a refusal has nothing of that thread.
    """
    with LOADING:
        from payment_sandbox.testing.loops import run_blocking as run  # here, because few suites have a loop

    try:
        return await run(call, *given, **options)
    except SandboxError as refused:
        raise refused.with_traceback(None) from None


def awaited(
    method: Callable[Concatenate[Any, Given], Result], owner: str
) -> Callable[Concatenate[Any, Given], Coroutine[Any, Any, Result]]:
    """A method to await, with the parameters, the result and the text of a blocking one.

    ``owner`` names the attribute with the object whose method it is.
    """

    @wraps(method)
    async def run(self: Any, /, *given: Given.args, **options: Given.kwargs) -> Result:
        return await run_blocking(method, getattr(self, owner), *given, **options)

    return run


class AsyncClock:
    """The project's clock."""

    def __init__(self, clock: SandboxClock) -> None:
        self._clock = clock

    advance = awaited(SandboxClock.advance, "_clock")
    set = awaited(SandboxClock.set, "_clock")

    @property
    def now(self) -> Coroutine[Any, Any, datetime]:
        """The sandbox time: ``await clock.now``."""
        return run_blocking(lambda: self._clock.now)
