"""What a rehearsal changes in a project. It is asked at every step; without a rehearsal, nothing changes."""

from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol

from payment_sandbox.orders.actions import Action
from payment_sandbox.orders.order import Order
from payment_sandbox.orders.webhooks import Delivery
from payment_sandbox.scenarios.effects import Fault, WebhookEffect
from payment_sandbox.scenarios.model import Subject

Do = Callable[[Action], Order]
"""Performs an action."""


class Rehearsal(Protocol):
    """Sees the steps of a test, and lets some of them go otherwise."""

    is_elsewhere: bool
    """Whether a shop in the process of its test handles webhooks on other threads than the test's."""

    @property
    def is_exhausted(self) -> bool:
        """Whether the shop asks the same without end, also when it gets no answer any more."""
        ...

    def call(self, method: str, path: str) -> Fault | None:
        """A call of the shop: what goes wrong with it."""
        ...

    def answer(self, order_id: str, body: bytes, *, is_stale: bool) -> bytes:
        """An order is answered; if ``is_stale``, as the shop has seen it before."""
        ...

    def webhook(self, delivery: Delivery) -> WebhookEffect | None:
        """An attempt to deliver a webhook: what happens to it."""
        ...

    def act(self, order_id: str, action: Action, do: Do) -> Order:
        """Somebody acts on an order: what they do instead."""
        ...

    def decide(self, subject: Subject) -> Mapping[str, Any] | None:
        """An attempt or a refund begins: its outcome; None leaves it to the scenario."""
        ...

    def waits_forever(self, method: str, path: str) -> None:
        """A call got no answer, and the shop has no limit for how long it waits."""
        ...


class NoRehearsal:
    """Changes nothing."""

    is_elsewhere = False
    is_exhausted = False

    def call(self, method: str, path: str) -> None:
        """No fault."""

    def answer(self, order_id: str, body: bytes, *, is_stale: bool) -> bytes:
        """As it is."""
        return body

    def webhook(self, delivery: Delivery) -> None:
        """It arrives."""

    def act(self, order_id: str, action: Action, do: Do) -> Order:
        """They do what they do."""
        return do(action)

    def decide(self, subject: Subject) -> Mapping[str, Any] | None:
        """The scenario decides."""
        return None

    def waits_forever(self, method: str, path: str) -> None:
        """Nobody asks."""


NO_REHEARSAL: Final = NoRehearsal()
