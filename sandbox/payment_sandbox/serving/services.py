"""Services for a server's projects: webhooks, running clocks and garbage collection."""

import gc
from collections.abc import Callable
from itertools import count
from typing import Final

from payment_sandbox.projects.clock import RealTime
from payment_sandbox.projects.delivery_queue import QueuedDelivery
from payment_sandbox.projects.epoch import Epoch
from payment_sandbox.projects.project import Project
from payment_sandbox.serving.courier import Courier
from payment_sandbox.serving.observer import Observer
from payment_sandbox.serving.pacer import Pacer
from payment_sandbox.serving.realtime import monotonic_seconds, wall_now

ORDERS_PER_FREEZE: Final = 250

REAL_TIME: Final = RealTime(wall_now, monotonic_seconds)


class ServerServices:
    """The courier and pacer for all projects of a server.

    With ``freeze_memory`` the garbage collector skips existing orders: scanning 100,000 of them would block
    all requests for half a second.
    """

    delivers = True

    def __init__(
        self,
        courier: Courier | None = None,
        pacer: Pacer | None = None,
        *,
        freeze_memory: bool = False,
        observer: Observer | None = None,
    ) -> None:
        self.real = REAL_TIME
        self._observer = observer
        self.courier = courier or Courier()
        self.pacer = pacer or Pacer()
        self._orders = count(1)
        self._freeze_memory = freeze_memory

    def carry(self, project: Project, epoch: Epoch) -> None:
        """Deliver the webhooks in the epoch's outbox on another thread, or when this one waits."""
        self.courier.carry(project, epoch)

    def deliver_left(self, is_enough: Callable[[], bool]) -> None:
        """Deliver what was left for this thread."""
        self.courier.deliver_left(is_enough)

    def deliver(self, project: Project, epoch: Epoch, queued: QueuedDelivery) -> None:
        """Deliver one webhook on this thread."""
        self.courier.deliver(project, epoch, queued)

    def wake(self, project: Project) -> None:
        """Recompute when the project next has something due."""
        self.pacer.notice(project)

    def order_created(self) -> None:
        """Every ``ORDERS_PER_FREEZE`` orders, collect garbage and freeze the rest."""
        if self._freeze_memory and next(self._orders) % ORDERS_PER_FREEZE == 0:
            gc.collect()
            gc.freeze()

    def epoch_over(self, orders: int) -> None:
        """Unfreeze memory after a large epoch ends, so that it can be collected."""
        if self._freeze_memory and orders >= ORDERS_PER_FREEZE:
            gc.unfreeze()

    def opened(self, project: Project) -> None:
        """Let the observer watch a project."""
        if self._observer is not None:
            self._observer.opened(project)

    def forget(self, project: Project) -> None:
        """Drop all references to a deleted project."""
        self.pacer.forget(project)
        self.courier.deliver_to(project.project_id, None)

    def stop(self) -> None:
        """Accept no more work."""
        self.courier.stop()
        self.pacer.stop()
