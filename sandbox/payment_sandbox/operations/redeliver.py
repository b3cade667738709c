"""Sending a webhook once more, by hand."""

from payment_sandbox.orders.deliveries import Delivery
from payment_sandbox.orders.refusals import Unknown
from payment_sandbox.projects.outbox import QueuedDelivery
from payment_sandbox.projects.project import Project


def redeliver(project: Project, delivery_id: str) -> Delivery:
    """Make one more attempt now, also when the delivery is over (CTL-22).

    It goes past the queue and waits for the answer.

    Raises:
        Unknown: there is no such delivery here.
    """
    epoch = project.epoch
    if epoch.store.delivery(delivery_id) is None:
        raise Unknown(f"there is no webhook {delivery_id!r} in this project")
    project.deliver_now(epoch, QueuedDelivery(delivery_id, forced=True))
    delivery = epoch.store.delivery(delivery_id)
    if delivery is None:
        raise Unknown(f"webhook {delivery_id!r} was dropped meanwhile to make room for newer ones")
    return delivery
