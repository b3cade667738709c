"""Sending a webhook once more, by hand."""

from payment_sandbox.orders.deliveries import Delivery
from payment_sandbox.orders.refusals import Unknown
from payment_sandbox.projects.outbox import Errand
from payment_sandbox.projects.project import Project


def redeliver(project: Project, delivery_id: str) -> Delivery:
    """Make one more attempt now, also when the delivery is over (CTL-22).

    It goes past the queue and waits for the answer.

    Raises:
        Unknown: there is no such delivery here.
    """
    delivery = project.store.delivery(delivery_id)
    if delivery is None:
        raise Unknown(f"there is no webhook {delivery_id!r} in this project")
    outbox = project.outbox
    key = outbox.hold()
    outbox.put(Errand(delivery_id, forced=True))
    outbox.release_now(key)
    return delivery
