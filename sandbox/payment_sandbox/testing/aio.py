"""The ``payment_sandbox`` fixture for ``async`` tests: the event loop goes on while the sandbox works."""

from collections.abc import Callable, Generator, Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, Protocol, TypeVar
from warnings import warn

from payment_sandbox.client.clock import Advance
from payment_sandbox.client.errors import SandboxError, ends_at_caller
from payment_sandbox.orders.actions import ActionName, Actor
from payment_sandbox.testing.loops import run_blocking
from payment_sandbox.web.answers import records as answers

if TYPE_CHECKING:
    from payment_sandbox.client.client import SandboxClient
    from payment_sandbox.client.clock import SandboxClock
    from payment_sandbox.client.history import Review

Result = TypeVar("Result")
Given = ParamSpec("Given")

__tracebackhide__ = ends_at_caller


async def _awaited(call: Callable[Given, Result], *given: Given.args, **options: Given.kwargs) -> Result:
    """Run a blocking call; the traceback of a refusal has nothing of the thread that made it."""
    try:
        return await run_blocking(call, *given, **options)
    except SandboxError as refused:
        raise refused.with_traceback(None) from None


class Blocking(Protocol):
    """What is awaited: a ``PaymentSandbox``."""

    client: "SandboxClient"
    clock: "SandboxClock"

    def act(self, order_id: str, actor: Actor, action: ActionName, **how: Any) -> answers.Order:
        """Perform an action."""
        ...

    def play(self, order_id: str, actor: Actor, action: ActionName, **how: Any) -> answers.Order:
        """Let the scenario act first."""
        ...

    def wait_for(
        self, order_id: str, status: str, timeout_seconds: float | timedelta = 10.0
    ) -> answers.Waited:
        """Wait for a status."""
        ...

    def scenario(self, scenario: str | Path | Mapping[str, Any]) -> answers.Scenario:
        """Switch to a scenario."""
        ...

    def review(self) -> "Review":
        """List mistakes."""
        ...

    def timeline(self) -> str:
        """Tell what happened."""
        ...


class AsyncNow:
    """The sandbox time, as soon as it is awaited."""

    def __init__(self, clock: "SandboxClock") -> None:
        self._clock = clock

    def __await__(self) -> Generator[Any, Any, datetime]:
        return _awaited(lambda: self._clock.now).__await__()

    def __call__(self) -> "AsyncNow":
        """The same, as older tests say it."""
        warn("now is a property: say `await clock.now`", DeprecationWarning, stacklevel=2)
        return self


class AsyncClock:
    """The project's clock."""

    def __init__(self, clock: "SandboxClock") -> None:
        self._clock = clock

    async def advance(
        self,
        by: str | timedelta | None = None,
        *,
        to: datetime | str | None = None,
        until: str | None = None,
        max_events: int | None = None,
        timeout_seconds: float | timedelta | None = None,
    ) -> Advance:
        """Advance as ``SandboxClock.advance`` does; webhooks on the way reach a shop on this loop."""
        return await _awaited(
            self._clock.advance,
            by,
            to=to,
            until=until,
            max_events=max_events,
            timeout_seconds=timeout_seconds,
        )

    @property
    def now(self) -> AsyncNow:
        """The sandbox time: ``await clock.now``."""
        return AsyncNow(self._clock)

    async def set(self, now: datetime | str) -> None:
        """Set the clock forward, and run what is due by then."""
        await _awaited(self._clock.set, now)


class AsyncPaymentSandbox:
    """What ``PaymentSandbox`` does, awaited; works with pytest-asyncio, anyio and trio."""

    def __init__(self, sandbox: Blocking) -> None:
        self._sandbox = sandbox
        self.clock = AsyncClock(sandbox.clock)
        """The project's clock: ``await payment_sandbox.aio.clock.advance("PT30M")``."""

    async def run(
        self, call: Callable[Given, Result], /, *given: Given.args, **options: Given.kwargs
    ) -> Result:
        """Run any blocking call, such as one of ``payment_sandbox.client``, while the loop goes on."""
        return await _awaited(call, *given, **options)

    async def act(
        self, order_id: str, actor: Actor = "customer", action: ActionName = "pay", **how: Any
    ) -> answers.Order:
        """Perform an action, and return the order; by default, the customer pays."""
        return await _awaited(lambda: self._sandbox.act(order_id, actor, action, **how))

    async def play(
        self, order_id: str, actor: Actor = "customer", action: ActionName = "pay", **how: Any
    ) -> answers.Order:
        """Let the scenario's customer or bank act on an order; act like this only if it waits for you."""
        return await _awaited(lambda: self._sandbox.play(order_id, actor, action, **how))

    async def wait_for(
        self, order_id: str, status: str, timeout_seconds: float | timedelta = 10.0
    ) -> answers.Waited:
        """Wait, in real time, until an order has a status."""
        return await _awaited(self._sandbox.wait_for, order_id, status, timeout_seconds)

    async def wait(self, **conditions: Any) -> answers.Waited:
        """Wait for what ``SandboxClient.wait`` takes, such as ``idle=True``."""
        return await _awaited(lambda: self._sandbox.client.wait(**conditions))

    async def scenario(self, scenario: str | Path | Mapping[str, Any]) -> answers.Scenario:
        """Switch to a scenario."""
        return await _awaited(self._sandbox.scenario, scenario)

    async def order(self, order_id: str) -> answers.Order:
        """Return an order as the merchant sees it."""
        return await _awaited(self._sandbox.client.order, order_id)

    async def webhooks(self) -> list[answers.Webhook]:
        """List the webhooks with every attempt, newest last."""
        return await _awaited(self._sandbox.client.webhooks)

    async def review(self) -> "Review":
        """List the mistakes of the integration under test."""
        return await _awaited(self._sandbox.review)

    async def timeline(self) -> str:
        """Return what happened, line by line."""
        return await _awaited(self._sandbox.timeline)
