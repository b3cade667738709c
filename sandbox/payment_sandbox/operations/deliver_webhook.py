"""Delivery of webhooks: the request, the effects of faults, and the record of the response."""

import json
from datetime import datetime
from typing import Final, NamedTuple

from payment_sandbox.kernel.masking import SECRET_KINDS, Masking
from payment_sandbox.kernel.times import Period, timestamp
from payment_sandbox.orders.commands import AttemptDelivery, Resend
from payment_sandbox.orders.refusals import Invalid, Unknown, Violation
from payment_sandbox.orders.webhooks import (
    ATTEMPT_BODY_BYTES,
    MANUAL_ATTEMPT,
    RETRY_AFTER,
    Delivery,
    DeliveryState,
    Reply,
    WebhookAttempt,
    WebhookRequest,
)
from payment_sandbox.projects.edit import Edit
from payment_sandbox.projects.epoch import Epoch, ProcessedEvent, State
from payment_sandbox.projects.journal import truncate_masked
from payment_sandbox.projects.outbox import OutboxEntry, QueuedDelivery, ResendChanges
from payment_sandbox.projects.project import Project
from payment_sandbox.projects.relay import AttemptLabel, OfferedAttempt, OfferedOrder, create_label
from payment_sandbox.projects.settings import Settings
from payment_sandbox.scenarios.effects import NO_EFFECT, Delay, OneByOne, Swap, Together, WebhookEffect
from payment_sandbox.version import __version__

REPLY_LENGTHS_MAX: Final = {"error": 500, "warning": 500, "traceback": 8192}
"""The length of the texts of a stored reply, in characters."""
ATTEMPT_BYTES: Final = 500 + ATTEMPT_BODY_BYTES
"""The approximate size of a stored attempt: its request, and the body of the reply."""
WEBHOOK_HEADERS: Final = {
    "Content-Type": "application/json",
    "Accept": "*/*",
    "User-Agent": f"payment-sandbox/{__version__}",
}


class PreparedAttempt(NamedTuple):
    """A prepared attempt; with a ``reply``, the outcome is decided and nothing is sent.

    With a ``label``, a listener delivers the attempt.
    """

    entry: OutboxEntry
    request: WebhookRequest
    at: datetime
    real_at: datetime
    label: AttemptLabel | None = None
    effect: WebhookEffect = NO_EFFECT
    status: str = ""  # of the order, for a listener

    @property
    def copies(self) -> int:
        """The number of copies to send."""
        return self.effect.copies

    @property
    def reply(self) -> Reply | None:
        """The decided outcome; None if the attempt must be sent."""
        return self.effect.reply

    def are_parallel(self, *, over_network: bool) -> bool:
        """Whether copies are sent in parallel, by default only over the network."""
        if isinstance(self.effect, Together):
            return True
        return over_network and not isinstance(self.effect, OneByOne)


def prepare_attempt(project: Project, epoch: Epoch, entry: OutboxEntry) -> PreparedAttempt | None:
    """Prepare an attempt; return None if nothing needs to be sent now. Only a postponement changes state.

    Raises:
        ProjectReset: the webhook belongs to an epoch that has ended.
    """
    queued = entry.queued
    with project.with_newest_state(epoch):
        if not epoch.store.must_send(queued):
            return None
        delivery = epoch.store.delivery(queued.delivery_id)
        is_over = delivery is None or _is_over(delivery, queued)
        effect = NO_EFFECT if delivery is None or is_over else _choose_effect(epoch, delivery, queued)
        if delivery is not None and not is_over and not _is_postponed(epoch.state, delivery, queued, effect):
            return _prepare(project, epoch, entry, delivery, effect)
    if _finish_or_postpone(project, epoch, queued, effect):
        return None
    return prepare_attempt(project, epoch, entry)  # another webhook has been swapped in the meantime


def _prepare(
    project: Project, epoch: Epoch, entry: OutboxEntry, delivery: Delivery, effect: WebhookEffect
) -> PreparedAttempt | None:
    """Build the attempt; return None if the webhook waits for a listener."""
    settings, real_at, queued = epoch.state.settings, project.services.real.wall_now(), entry.queued
    request = _build_request(project, delivery, queued.changed)
    prepared = PreparedAttempt(entry, request, epoch.now(), real_at, None, effect)
    if request.url == settings.forward_to and effect.reply is None:
        label = _create_label(project, epoch, delivery, queued)
        prepared = prepared._replace(label=label, status=delivery.status)
        if epoch.outbox.await_listener(entry, project.relay.is_connected):
            epoch.store.stop_sending()
            _publish_waiting_event(project, delivery)
            return None
    epoch.store.reserve_attempt(queued)
    return prepared


def _finish_or_postpone(
    project: Project, epoch: Epoch, queued: QueuedDelivery, effect: WebhookEffect
) -> bool:
    """Postpone or finish a delivery; return False if the webhook must be sent now."""
    with project.edit(epoch, is_due=True) as edit:
        delivery = edit.delivery(queued.delivery_id)
        if delivery is not None and not _is_over(delivery, queued):
            if not _is_postponed(edit.state, delivery, queued, effect):
                return False
            _postpone(edit, delivery, effect)
        edit.finish_job(queued)
        return True


def _build_request(project: Project, delivery: Delivery, changes: ResendChanges) -> WebhookRequest:
    url = changes.url or standard_url(project.settings, delivery)
    return WebhookRequest(url, WEBHOOK_HEADERS, (changes.body or standard_body(project, delivery)).encode())


def standard_url(settings: Settings, delivery: Delivery) -> str:
    """Return the URL of a webhook."""
    return settings.forward_to or delivery.url


def standard_body(project: Project, delivery: Delivery) -> str:
    """Build the body of a webhook."""
    return json.dumps(
        {"event": "status_changed", "order_id": delivery.order_id, "project_id": project.project_id}
    )


def create_offers(prepared: PreparedAttempt, label: AttemptLabel) -> list[OfferedAttempt]:
    """Build the offers of an attempt to a listener, one for each copy."""
    order = OfferedOrder(prepared.entry.queued.order_id, prepared.status)
    return [
        OfferedAttempt(label._replace(copy=copy), order, prepared.request, prepared.at)
        for copy in range(1, prepared.copies + 1)
    ]


def _create_label(project: Project, epoch: Epoch, delivery: Delivery, queued: QueuedDelivery) -> AttemptLabel:
    webhook = f"{project.identity.origin}-{epoch.number}-{delivery.id}"
    return create_label(webhook, delivery.next_number, by_hand=queued.forced)


def _publish_waiting_event(project: Project, delivery: Delivery) -> None:
    label = "a webhook waits for the command listen"
    project.publish(
        "waiting",
        at=timestamp(project.now()),
        order_id=delivery.order_id,
        delivery_id=delivery.id,
        url=project.settings.forward_to,
        label=label,
    )


def _is_over(delivery: Delivery, queued: QueuedDelivery) -> bool:
    return delivery.state is not DeliveryState.PENDING and not queued.forced


def record_attempt(
    project: Project, epoch: Epoch, prepared: PreparedAttempt, reply: Reply, *, is_copy: bool = False
) -> None:
    """Record an attempt, and schedule a retry if needed; copies need no retry.

    This also sends the webhooks deferred until now by a ``swap``.

    Raises:
        ProjectReset: the webhook belongs to an epoch that has ended; its result is discarded.
    """
    queued = prepared.entry.queued
    with project.edit(epoch, prepared.at, is_due=True) as edit:
        if not is_copy and not epoch.store.is_pending(queued):
            return  # another server has resent and recorded the webhook
        edit.finish_job(queued)
        delivery = edit.delivery(queued.delivery_id)
        if delivery is None:  # dropped in the meantime, to make room for newer webhooks
            return
        is_changed, state = queued.is_changed, delivery.state
        number = MANUAL_ATTEMPT if is_changed else delivery.next_number - is_copy
        attempt = _mask_attempt(
            project.masking, WebhookAttempt(number, prepared.at, prepared.real_at, prepared.request, reply)
        )
        if not is_copy and not is_changed:
            _count_match(edit, delivery, prepared.effect)
        delivery, next_at = delivery.record_attempt(attempt, is_copy=is_copy or is_changed)
        if is_changed:
            delivery = delivery._replace(state=state)  # the shop has not received the original webhook
        edit.store_delivery(delivery)
        if next_at is not None:
            edit.schedule(next_at, AttemptDelivery(delivery.order_id, delivery.id, number + 1))
        _publish_attempt(edit, delivery, attempt, next_at)
        edit.release_swapped()


def _publish_attempt(
    edit: Edit, delivery: Delivery, attempt: WebhookAttempt, next_at: datetime | None
) -> None:
    reply = attempt.reply
    shown = _build_event(delivery, attempt.number, attempt.at, reply)
    edit.advance_log.append(shown)
    edit.publish(
        "webhook",
        **shown,
        state=delivery.state,
        number=attempt.number,
        url=attempt.request.url,
        order_status=delivery.status,
        status=reply.status,
        error=reply.error,
        warning=reply.warning,
        fault=reply.fault,
        next_at=timestamp(next_at) if next_at is not None else None,
        duration_ms=round(reply.duration_ms, 3),
    )


def _mask_attempt(masking: Masking, attempt: WebhookAttempt) -> WebhookAttempt:
    """Prepare an attempt for storage: mask secrets, and truncate long bodies; the headers are ours."""
    url, headers, body = attempt.request
    body = masking.mask_record(body)[:ATTEMPT_BODY_BYTES].decode(errors="ignore").encode()
    reply = _truncate(masking.mask_record(attempt.reply), attempt.reply)
    return attempt._replace(request=WebhookRequest(masking.mask_text(url), headers, body), reply=reply)


def _truncate(masked: Reply, unmasked: Reply) -> Reply:
    """Truncate the strings of a masked reply; truncation before masking could leave part of a secret."""
    truncated = {
        name: truncate_masked(getattr(masked, name), text, length_max)
        for name, length_max in REPLY_LENGTHS_MAX.items()
        if (text := getattr(unmasked, name)) is not None
    }
    return masked._replace(**truncated)


def _choose_effect(epoch: Epoch, delivery: Delivery, queued: QueuedDelivery) -> WebhookEffect:
    """Return the effect of a fault or of the rehearsal on the next attempt; none if it has overrides."""
    if queued.is_changed:
        return NO_EFFECT
    state = epoch.state
    return (
        state.faults.webhook_effect(delivery)
        or state.scenario_faults.webhook_effect(delivery)
        or epoch.rehearsal.webhook(delivery)
        or NO_EFFECT
    )


def _count_match(edit: Edit, delivery: Delivery, effect: WebhookEffect) -> None:
    """Count the rule whose effect an attempt has; a postponed attempt was counted when it was postponed."""
    if effect is NO_EFFECT or (delivery.is_postponed and isinstance(effect, Delay | Swap)):
        return
    if (own := edit.state.faults.count_webhook(delivery)) is not None:
        edit.state = edit.state._replace(faults=own)
    elif (of_scenario := edit.state.scenario_faults.count_webhook(delivery)) is not None:
        edit.state = edit.state._replace(scenario_faults=of_scenario)


def _is_postponed(state: State, delivery: Delivery, queued: QueuedDelivery, effect: WebhookEffect) -> bool:
    """Whether an effect postpones an attempt: at most once, and no manual resend."""
    if queued.forced or delivery.is_postponed:
        return False
    return isinstance(effect, Delay) or (isinstance(effect, Swap) and not state.swapped)


def _postpone(edit: Edit, delivery: Delivery, effect: WebhookEffect) -> None:
    """Postpone a delivery by a delay, or until the next webhook has been sent (SCN-06).

    A swapped webhook waits as long as a retry does, so that the end of an advance does not decide its place.
    """
    _count_match(edit, delivery, effect)
    edit.store_delivery(delivery._replace(postponed=True, postponed_number=delivery.next_number))
    period = effect.period if isinstance(effect, Delay) else RETRY_AFTER
    due = AttemptDelivery(delivery.order_id, delivery.id, delivery.next_number)
    edit.schedule(period.after(edit.now), due)
    if isinstance(effect, Swap):
        edit.state = edit.state._replace(swapped=(delivery.id,))


def _build_event(delivery: Delivery, number: int, at: datetime, reply: Reply) -> ProcessedEvent:
    outcome = reply.fault or reply.error or (f"answered {reply.status}" if reply.status else reply.warning)
    return {
        "at": timestamp(at),
        "kind": "webhook",
        "order_id": delivery.order_id,
        "label": f"webhook attempt {number} for {delivery.order_id}: {outcome}",
        "delivery_id": delivery.id,
    }


def find_delivery(project: Project, delivery_id: str) -> Delivery:
    """Find a webhook with its attempts.

    Raises:
        Unknown: the project has no such webhook.
    """
    delivery = project.epoch.store.delivery(delivery_id)
    if delivery is None:
        raise Unknown(f"there is no webhook {delivery_id!r} in this project")
    return delivery


def find_unsent(epoch: Epoch, webhook_id: str) -> Delivery | None:
    """Find an unsent webhook, which has the id of its status in the journal."""
    return next((each for each in unsent_webhooks(epoch) if each.id == webhook_id), None)


def unsent_webhooks(epoch: Epoch) -> list[Delivery]:
    """Return the webhooks that were not sent because no address was set, oldest first."""
    return [
        Delivery(reached.id, reached.order_id, "", reached.status, reached.at, DeliveryState.UNSENT)
        for reached in epoch.unsent_webhooks()
    ]


def deliver_unsent(project: Project, url: str) -> list[Delivery]:
    """Send all unsent webhooks to an address, with retries as usual, and wait for the answers."""
    epoch = project.epoch
    with project.edit(epoch) as edit:
        unsent = [
            each._replace(id=edit.ids.uuid("delivery"), url=url, state=DeliveryState.PENDING)
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
        QuotaReached: storing another attempt would exceed a quota; nothing is sent.
        Invalid: the body contains a secret, and would be stored until it is sent.
    """
    delivery, changes = find_delivery(project, delivery_id), ResendChanges(url, body)
    if after is not None:
        _resend_later(project, delivery, changes, Period.parse(after))
        return delivery
    order_id = delivery.order_id
    if project.account is not None:
        project.account.refuse_growth(ATTEMPT_BYTES + len((changes.body or "").encode()))
    project.deliver_now(project.epoch, QueuedDelivery(delivery_id, order_id, forced=True, changed=changes))
    sent = project.epoch.store.delivery(delivery_id)
    if sent is None:
        raise Unknown(f"webhook {delivery_id!r} was dropped to make room for newer webhooks")
    return sent


def _resend_later(project: Project, delivery: Delivery, changes: ResendChanges, after: Period) -> None:
    if changes.body is not None and project.masking.mask_text(changes.body) != changes.body:
        message = f"must not contain {SECRET_KINDS} if sent later, because it is stored until then"
        raise Invalid([Violation("body", message)])
    with project.edit() as edit:
        edit.schedule(after.after(edit.now), Resend(delivery.order_id, delivery.id, 0, *changes))
