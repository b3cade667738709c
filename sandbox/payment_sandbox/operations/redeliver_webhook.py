"""Sending a webhook once more, by hand."""

from payment_sandbox.orders.refusals import Unknown
from payment_sandbox.orders.webhooks import Delivery
from payment_sandbox.projects.delivery_queue import QueuedDelivery
from payment_sandbox.projects.project import Project


def redeliver(project: Project, delivery_id: str) -> Delivery:
    """Make one more attempt now, even if the delivery has ended (CTL-22).

    It skips the queue and waits for the response.

    Raises:
        Unknown: the project has no such delivery.
    """
    epoch = project.epoch
    delivery = epoch.store.delivery(delivery_id)
    if delivery is None:
        raise Unknown(f"there is no webhook {delivery_id!r} in this project")
    project.deliver_now(epoch, QueuedDelivery(delivery_id, delivery.order_id, forced=True))
    delivery = epoch.store.delivery(delivery_id)
    if delivery is None:
        raise Unknown(f"webhook {delivery_id!r} was dropped to make room for newer ones")
    return delivery
