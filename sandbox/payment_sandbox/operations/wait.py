"""Wait, in real time, for conditions in a project."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from payment_sandbox.kernel.times import timestamp
from payment_sandbox.operations.agenda import is_something_due, next_due
from payment_sandbox.orders.refusals import Refusal, Unknown
from payment_sandbox.projects.project import Project


class WaitTimedOut(Refusal):
    """The wait timed out before all conditions held."""

    rule = "CTL-26"

    def __init__(self, message: str, now: Mapping[str, Any]) -> None:
        super().__init__(message)
        self.now = now


class Condition(NamedTuple):
    """A condition to wait for: a function that reads a value, and a predicate."""

    read: Callable[[Project], Any]
    holds: Callable[[Any], bool]
    name: str


def await_status(order_id: str, status: str) -> Condition:
    """Wait for an order to have this status."""

    def read(project: Project) -> str:
        return project.find_order(order_id).status

    return Condition(read, lambda value: value == status, "status")


def await_webhook_answer(order_id: str) -> Condition:
    """Wait for a response, whatever its status, to a webhook of this order."""

    def read_answers(project: Project) -> list[int]:
        return [
            attempt.reply.status
            for delivery in project.epoch.store.deliveries_of(order_id)
            for attempt in delivery.delivery_attempts
            if attempt.reply.status is not None
        ]

    return Condition(read_answers, bool, "webhook_answers")


def await_idle() -> Condition:
    """Wait until no event is due and no webhook is in flight."""

    def is_idle(project: Project) -> bool:
        epoch = project.epoch
        return epoch.is_idle and not is_something_due(epoch)

    return Condition(is_idle, bool, "idle")


def _format_value(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def wait(project: Project, conditions: list[Condition], timeout_seconds: float) -> dict[str, Any]:
    """Wait until all conditions hold at the same time; return the values.

    Raises:
        Unknown: an order does not exist, or the project was deleted in the meantime.
        WaitTimedOut: the timeout has expired; carries the current values.
    """
    until_seconds = project.services.real.monotonic_seconds() + timeout_seconds
    while True:
        number = project.events.number
        values = {condition.name: condition.read(project) for condition in conditions}
        if all(condition.holds(values[condition.name]) for condition in conditions):
            return values
        remaining_seconds = until_seconds - project.services.real.monotonic_seconds()
        if not project.events.wait_after(number, remaining_seconds):
            if project.events.is_ended:
                project.refuse_dropped()
                raise Unknown("the server stopped, or the project was deleted, while this call waited")
            shown = ", ".join(f"{name} is {_format_value(value)}" for name, value in values.items())
            message = f"timed out after {timeout_seconds:g} seconds: {shown}{_frozen_clock_advice(project)}"
            raise WaitTimedOut(message, values)


def _frozen_clock_advice(project: Project) -> str:
    """Explain a wait that only an advance can end; empty if the clock runs."""
    epoch = project.epoch
    if epoch.state.clock.running:
        return ""
    due = next_due(epoch)
    pending = f"{due.item.label}, due at {timestamp(due.at)}" if due is not None else "none"
    return f"; the clock is frozen at {timestamp(epoch.now())}, advance it; the next event: {pending}"
