"""Resends of webhooks, and the webhooks that were not sent."""

from itertools import chain

from payment_sandbox.kernel.masking import SECRET_KINDS
from payment_sandbox.kernel.times import Period
from payment_sandbox.orders.commands import Resend
from payment_sandbox.orders.refusals import Invalid, Unknown, Violation
from payment_sandbox.orders.webhooks import Delivery, DeliveryState
from payment_sandbox.projects.epoch import Epoch, unannounced
from payment_sandbox.projects.journal import ReachedStatus
from payment_sandbox.projects.order_logs import OrderLog, order_logs
from payment_sandbox.projects.outbox import HeldDeliveries, QueuedDelivery
from payment_sandbox.projects.project import Project


def find_delivery(project: Project, delivery_id: str) -> Delivery:
    """Find a webhook with its attempts.

    Raises:
        Unknown: the project has no such webhook.
    """
    delivery = project.epoch.store.delivery(delivery_id)
    if delivery is None:
        raise Unknown(f"there is no webhook {delivery_id!r} in this project")
    return delivery


def unsent_webhooks(epoch: Epoch) -> list[Delivery]:
    """Return the webhooks that no listener took, and those without an address, oldest first.

    After webhooks were dropped, those without an address are unknown.
    """
    unsent = chain.from_iterable(log.derive(unsent_of) for log in order_logs(epoch).values())
    known = [each for each in unsent if each.url or not epoch.store.deliveries_dropped]
    return sorted(known, key=lambda delivery: delivery.created)


def unsent_of(log: OrderLog) -> list[Delivery]:
    """Return the unsent webhooks of an order and its refunds."""
    untaken = [each for each in log.webhooks if each.state is DeliveryState.UNSENT]
    return untaken + [
        Delivery(reached.id, reached.order_id, "", reached.status, reached.at, DeliveryState.UNSENT)
        for reached in unannounced(log.of(ReachedStatus), log.webhooks)
        if reached.order_id in log.orders
    ]


def deliver_unsent(project: Project, url: str) -> list[Delivery]:
    """Send all unsent webhooks to an address, with retries as usual, and wait for the answers."""
    epoch = project.epoch
    with project.edit(epoch) as edit:
        unsent = [
            each._replace(
                id=each.id if each.url else edit.ids.uuid("delivery"), url=url, state=DeliveryState.PENDING
            )
            for each in unsent_webhooks(epoch)
        ]
        for delivery in unsent:
            edit.store_delivery(delivery)
            edit.send(delivery.id)
    project.settle(epoch=epoch, orders=[delivery.order_id for delivery in unsent])
    known = (epoch.store.delivery(delivery.id) for delivery in unsent)
    return [delivery for delivery in known if delivery is not None]


def redeliver(
    project: Project,
    delivery_id: str,
    *,
    url: str | None = None,
    body: str | None = None,
    after: str | None = None,
) -> Delivery:
    """Make another attempt, now or ``after`` a period, even if the delivery has ended (CTL-22).

    An attempt now skips the queue, and this call waits for the response. The outcome of an attempt with
    another URL or body does not affect the state of the delivery.

    Raises:
        Unknown: the project has no such delivery.
        Invalid: the body contains a secret, and would be stored until it is sent.
    """
    delivery = find_delivery(project, delivery_id)
    if after is not None:
        if body is not None and project.masking.mask_text(body) != body:
            message = f"must not contain {SECRET_KINDS} if sent later, because it is stored until then"
            raise Invalid([Violation("body", message)])
        with project.edit() as edit:
            command = Resend(delivery.order_id, delivery_id, 0, url, body)
            edit.schedule(Period.parse(after).after(edit.now), command)
        return delivery
    outbox = project.epoch.outbox
    held = HeldDeliveries(outbox)
    outbox.put(QueuedDelivery(delivery_id, delivery.order_id, True, url, body), held)
    outbox.send_held(held)
    sent = project.epoch.store.delivery(delivery_id)
    if sent is None:
        raise Unknown(f"webhook {delivery_id!r} was dropped to make room for newer webhooks")
    return sent
