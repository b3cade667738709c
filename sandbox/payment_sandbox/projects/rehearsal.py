"""What a rehearsal is asked at each step of a project."""

from collections.abc import Callable
from typing import Any, Final, NamedTuple, Protocol, TypeVar

from payment_sandbox.orders.actions import Action

AnyStep = TypeVar("AnyStep")
Result = TypeVar("Result")


class ShopCall(NamedTuple):
    """A call by the shop."""

    method: str
    path: str


class OrderAction(NamedTuple):
    """An action by a customer or a bank on an order."""

    order_id: str
    action: Action


class ClockAdvance(NamedTuple):
    """An advance of the clock."""


class Rehearsal(Protocol):
    """May any step go otherwise? By default, none does."""

    def choose(self, step: Any) -> Any:
        """Return the effect on a call, a webhook or an attempt's subject; None for no effect."""
        return None

    def perform(self, step: AnyStep, do: Callable[[AnyStep], Result]) -> Result:
        """Perform an action, an advance or a job's run, or something else instead."""
        return do(step)


class _NoRehearsal(Rehearsal):
    pass


NO_REHEARSAL: Final = _NoRehearsal()
