"""What a project needs from whoever runs it, passed in when it is made."""

from typing import TYPE_CHECKING, Protocol

from payment_sandbox.projects.clock import RealTime

if TYPE_CHECKING:
    from payment_sandbox.projects.epoch import Epoch
    from payment_sandbox.projects.outbox import QueuedDelivery
    from payment_sandbox.projects.project import Project


class Services(Protocol):
    """Delivers webhooks, wakes running clocks, and knows the host's time."""

    real: RealTime
    delivers: bool
    """Whether webhooks are delivered at all; where they are not, nobody waits for them."""

    def carry(self, project: "Project", epoch: "Epoch") -> None:
        """Deliver what is in the epoch's outbox, one webhook after the other, on another thread."""
        ...

    def deliver(self, project: "Project", epoch: "Epoch", queued: "QueuedDelivery") -> None:
        """Deliver one webhook on this thread, and return when it is answered."""
        ...

    def wake(self, project: "Project") -> None:
        """Look again at when something of the project's is due."""
        ...

    def order_created(self) -> None:
        """Count an order."""
        ...

    def epoch_over(self, orders: int) -> None:
        """Note that an epoch with so many orders is thrown away."""
        ...

    def forget(self, project: "Project") -> None:
        """Hold nothing of a deleted project any more."""
        ...


class Unattended:
    """Nobody runs the projects: nothing is delivered, and clocks move by calls only."""

    delivers = False

    def __init__(self, real: RealTime) -> None:
        self.real = real

    def carry(self, project: "Project", epoch: "Epoch") -> None:
        """Leave it in the outbox."""

    def deliver(self, project: "Project", epoch: "Epoch", queued: "QueuedDelivery") -> None:
        """Drop it."""

    def wake(self, project: "Project") -> None:
        """Do nothing."""

    def order_created(self) -> None:
        """Do nothing."""

    def epoch_over(self, orders: int) -> None:
        """Do nothing."""

    def forget(self, project: "Project") -> None:
        """Do nothing."""
