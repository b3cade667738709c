"""The hooks of a rehearsal, called at every step of a project; by default, they are no-ops."""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Final, TypeVar

from payment_sandbox.orders.actions import Action
from payment_sandbox.orders.order import Order
from payment_sandbox.orders.webhooks import Delivery
from payment_sandbox.projects.jobs import Job
from payment_sandbox.scenarios.effects import Fault, WebhookEffect
from payment_sandbox.scenarios.model import Subject

Do = Callable[[Action], Order]
"""Performs an action."""

Result = TypeVar("Result")


class Rehearsal:
    """Observes the steps of a test, and varies some of them; this class varies none."""

    is_threaded = False
    """Whether a shop in the test's process handles webhooks on separate threads."""

    def must_end_run(self, path: str) -> bool:
        """Whether a call ends the run, as one that the shop repeats endlessly; by default, none does."""
        return False

    def next_run(self, job: Job, limit: datetime) -> datetime:
        """Choose the time of a job's next run, by default its own; ``limit`` is the next event or the end."""
        return job.at

    def run_job(self, job: Job) -> str | None:
        """Run a job of the shop, by default once; return an error message, or None."""
        return job.run()

    def call(self, method: str, path: str) -> Fault | None:
        """Choose the fault for a call by the shop; None for no fault."""
        return None

    def record_edit(self, orders: Mapping[str, Order], *, is_noticed: bool) -> None:
        """Record an edit with the new versions of orders; by default, do nothing.

        The shop's jobs may notice what a client, a webhook or a clock change has edited, but not a due event.
        """

    def earlier_version(self, order: Order) -> Order:
        """Choose the version of an order in a stale response; by default, the current version."""
        return order

    def record_answer(self, method: str, order: Order) -> None:
        """Record the version of an order in a response to the shop; by default, do nothing."""

    def webhook(self, delivery: Delivery) -> WebhookEffect | None:
        """Choose the effect on a webhook attempt; None delivers the webhook as usual."""
        return None

    def deliver_first(self, deliver: Callable[[], None]) -> None:
        """Deliver a call's webhooks before its response, by default on this thread."""
        deliver()

    def act(self, order_id: str, action: Action, do: Do) -> Order:
        """Perform an action on an order, or a replacement; by default, the action."""
        return do(action)

    def advance(self, do: Callable[[], Result]) -> Result:
        """Advance the clock; by default, no more time passes afterwards."""
        return do()

    def decide(self, subject: Subject) -> Mapping[str, Any] | None:
        """Choose the outcome of a new attempt or refund; None leaves the outcome to the scenario."""
        return None

    def record_endless_wait(self, method: str, path: str) -> None:
        """Record an unanswered call that has no timeout; by default, do nothing."""


NO_REHEARSAL: Final = Rehearsal()
