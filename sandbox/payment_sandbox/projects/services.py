"""What a project needs from its host, passed in when it is created."""

from typing import TYPE_CHECKING, Protocol

from payment_sandbox.projects.clock import RealTime

if TYPE_CHECKING:
    from collections.abc import Callable

    from payment_sandbox.projects.epoch import Epoch
    from payment_sandbox.projects.outbox import QueuedDelivery
    from payment_sandbox.projects.project import Project


class Services(Protocol):
    """Delivers webhooks, wakes running clocks, and knows the host's time."""

    real: RealTime
    delivers: bool
    """Whether webhooks are delivered at all; if not, nothing waits for them."""

    def carry(self, project: "Project", epoch: "Epoch") -> None:
        """Deliver the webhooks in the outbox, one at a time, on another thread or once this one waits."""
        ...

    def deliver_left(self, is_enough: "Callable[[], bool]") -> None:
        """Deliver what was left for this thread to deliver, before it waits."""
        ...

    def deliver(self, project: "Project", epoch: "Epoch", queued: "QueuedDelivery") -> None:
        """Deliver one webhook on this thread, and return once it is answered."""
        ...

    def wake(self, project: "Project") -> None:
        """Check again when the project has something due."""
        ...

    def order_created(self) -> None:
        """Count an order."""
        ...

    def epoch_over(self, orders: int) -> None:
        """Note that an epoch with this many orders was discarded."""
        ...

    def opened(self, project: "Project") -> None:
        """Note a project that was created or loaded."""
        ...

    def forget(self, project: "Project") -> None:
        """Drop everything that belongs to a deleted project."""
        ...


class Unattended:
    """For projects without a server: nothing is delivered, and clocks move only by calls."""

    delivers = False

    def __init__(self, real: RealTime) -> None:
        self.real = real

    def carry(self, project: "Project", epoch: "Epoch") -> None:
        """Leave it in the outbox."""

    def deliver_left(self, is_enough: "Callable[[], bool]") -> None:
        """Do nothing."""

    def deliver(self, project: "Project", epoch: "Epoch", queued: "QueuedDelivery") -> None:
        """Drop it."""

    def wake(self, project: "Project") -> None:
        """Do nothing."""

    def order_created(self) -> None:
        """Do nothing."""

    def epoch_over(self, orders: int) -> None:
        """Do nothing."""

    def opened(self, project: "Project") -> None:
        """Do nothing."""

    def forget(self, project: "Project") -> None:
        """Do nothing."""
