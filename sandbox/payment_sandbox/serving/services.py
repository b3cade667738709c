"""What the server does for its projects: webhooks, running clocks, and the collector of garbage."""

import gc
from itertools import count
from typing import Final

from payment_sandbox.projects.clock import RealTime
from payment_sandbox.projects.epoch import Epoch
from payment_sandbox.projects.outbox import QueuedDelivery
from payment_sandbox.projects.project import Project
from payment_sandbox.serving.courier import Courier
from payment_sandbox.serving.pacer import Pacer
from payment_sandbox.serving.realtime import monotonic_seconds, wall_now

ORDERS_PER_FREEZE: Final = 1000

REAL_TIME: Final = RealTime(wall_now, monotonic_seconds)


class ServerServices:
    """Courier and pacer, for all projects of a server.

    With ``freeze_memory`` the collector forgets settled orders: with 100,000 of them it would stall everybody
    by half a second.
    """

    delivers = True

    def __init__(
        self, courier: Courier | None = None, pacer: Pacer | None = None, *, freeze_memory: bool = False
    ) -> None:
        self.real = REAL_TIME
        self.courier = courier or Courier()
        self.pacer = pacer or Pacer()
        self._orders = count(1)
        self._freeze_memory = freeze_memory

    def carry(self, project: Project, epoch: Epoch) -> None:
        """Deliver what is in the epoch's outbox, on another thread."""
        self.courier.carry(project, epoch)

    def deliver(self, project: Project, epoch: Epoch, queued: QueuedDelivery) -> None:
        """Deliver one webhook on this thread."""
        self.courier.deliver(project, epoch, queued)

    def wake(self, project: Project) -> None:
        """Look again at when something of the project's is due."""
        self.pacer.notice(project)

    def order_created(self) -> None:
        """Every so many orders, collect what is garbage and freeze the rest."""
        if self._freeze_memory and next(self._orders) % ORDERS_PER_FREEZE == 0:
            gc.collect()
            gc.freeze()

    def epoch_over(self, orders: int) -> None:
        """Let the collector look again at what may be garbage now."""
        if self._freeze_memory and orders >= ORDERS_PER_FREEZE:
            gc.unfreeze()

    def forget(self, project: Project) -> None:
        """Hold nothing of a deleted project any more."""
        self.pacer.forget(project)
        self.courier.deliver_to(project.project_id, None)

    def stop(self) -> None:
        """Take no more work."""
        self.courier.stop()
        self.pacer.stop()
