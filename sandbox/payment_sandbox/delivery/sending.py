"""Sending one webhook: the request, its receiver, the effects of faults, and the record of what came."""

import json
import logging
from collections.abc import Callable
from datetime import datetime
from functools import partial
from typing import Any, Final, NamedTuple

from payment_sandbox.delivery.receivers import (
    DeliveryOutcome,
    Destination,
    PreparedAttempt,
    Receiver,
    destination_of,
    listener_of,
)
from payment_sandbox.kernel.masking import Masking
from payment_sandbox.kernel.times import timestamp
from payment_sandbox.orders.commands import AttemptDelivery
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
from payment_sandbox.projects.epoch import Epoch, ProcessedEvent
from payment_sandbox.projects.journal import truncate_masked
from payment_sandbox.projects.outbox import Outbox, QueuedDelivery
from payment_sandbox.projects.project import Project, ProjectReset, weakly
from payment_sandbox.projects.settings import Settings
from payment_sandbox.projects.store import NotStored
from payment_sandbox.scenarios.effects import NO_EFFECT, Delay, Swap, WebhookEffect
from payment_sandbox.version import __version__

REPLY_LENGTHS_MAX: Final = {"body": ATTEMPT_BODY_BYTES, "error": 500, "warning": 500, "traceback": 8192}
"""The length of the texts of a stored reply, in characters."""
WEBHOOK_HEADERS: Final = {
    "Content-Type": "application/json",
    "Accept": "*/*",
    "User-Agent": f"payment-sandbox/{__version__}",
}
NO_LISTENER: Final = "not sent: no listener is connected"
RETRY_SECONDS: float = 0.5

log = logging.getLogger(__name__)


class ProjectSender:
    """Sends the webhooks of a project; the sender of its outboxes."""

    def __init__(
        self,
        project: Project,
        find_receiver: Callable[[Destination, str], Receiver],
        run: Callable[[Callable[[], None]], object],
    ) -> None:
        """Send to the receivers that ``find_receiver`` returns for their addresses."""
        self._find_project = weakly(project)
        self._project_id = project.project_id
        self._destination = destination_of(project)
        self._find_receiver = partial(find_receiver, self._destination)
        self.run = run
        self.monotonic_seconds = project.services.real.monotonic_seconds
        self.on_idle = partial(project.events.publish, "idle")

    def sends_on_waiting_thread(self) -> bool:
        """Whether the thread that waits for the webhooks sends them."""
        return self._destination.on_waiting_thread

    def wake(self) -> None:
        """Wake the waiting calls of the listener."""
        listener_of(self._find_project()).wake()

    def send(self, outbox: Outbox, queued: QueuedDelivery) -> bool:
        """Give one webhook to its receiver, and record the answer; return False if nobody takes it now.

        The answer to a webhook whose epoch has ended is discarded.
        """
        try:
            project = self._find_project()
            epoch = project.epoch
            while epoch.outbox is outbox and not outbox.is_closed:
                attempt = _prepare(project, epoch, queued)
                if attempt is None:
                    break
                if (reply := attempt.effect.reply) is not None:  # it is decided, and nothing is sent
                    outcomes = [DeliveryOutcome(reply, attempt.real_at)]
                elif attempt.request.url == epoch.state.settings.forward_to:
                    outcomes = listener_of(project).post(attempt)
                else:
                    outcomes = self._find_receiver(attempt.request.url).post(attempt)
                for copy, outcome in enumerate(outcomes):
                    _until_stored(outbox, _record_attempt, attempt, outcome, copy > 0)
                    if outcome.on_recorded is not None:
                        outcome.on_recorded()
                if outcomes or _until_stored(outbox, _record_unsent, attempt):
                    return bool(outcomes)
        except ProjectReset:
            pass
        except Exception:  # the next webhook must still be delivered
            log.exception("webhook %s of project %s was not delivered", queued.delivery_id, self._project_id)
        return True


def _until_stored(outbox: Outbox, work: Callable[..., bool | None], *arguments: Any) -> bool | None:
    """Run ``work``, and retry until the result is stored.

    Without the retry, the next webhook could overtake this webhook, or the shop could get it twice.
    """
    while True:
        try:
            return work(*arguments)
        except NotStored as failed:
            if outbox.pause(RETRY_SECONDS):
                raise ProjectReset(str(failed)) from failed
            log.warning("storing a webhook attempt failed, retrying: %s", failed)


def _prepare(project: Project, epoch: Epoch, queued: QueuedDelivery) -> PreparedAttempt | None:
    """Prepare an attempt; return None if nothing needs to be sent now."""
    settings, delivery = epoch.state.settings, epoch.store.delivery(queued.delivery_id)
    if delivery is None or _is_over(delivery, queued):
        return None
    effect = _choose_effect(epoch, delivery, queued)
    if isinstance(effect, Delay | Swap) and _until_stored(
        epoch.outbox, _postpone, project, epoch, queued, effect
    ):
        return None
    url = queued.url or standard_url(settings, delivery)
    body = queued.body or standard_body(project, delivery)
    request = WebhookRequest(url, WEBHOOK_HEADERS, body.encode())
    at, real_at = epoch.now(), project.services.real.wall_now()
    timeout_seconds = settings.webhook_timeout
    return PreparedAttempt(project, epoch, queued, delivery, request, at, real_at, effect, timeout_seconds)


def _postpone(project: Project, epoch: Epoch, queued: QueuedDelivery, effect: Delay | Swap) -> bool:
    """Postpone an attempt by a delay, or until the next webhook has been sent (SCN-06).

    Each attempt is postponed at most once, and no manual resend. A swapped webhook waits as long as a retry
    does, so that the end of an advance does not decide its place. Return False if the webhook must be sent
    now.
    """
    with project.edit(epoch) as edit:
        delivery = edit.delivery(queued.delivery_id)
        if delivery is None or _is_over(delivery, queued):
            return True
        is_swap = isinstance(effect, Swap)
        if queued.forced or delivery.is_postponed or (is_swap and edit.state.swapped):
            return False
        _count_match(edit, delivery, effect)
        edit.store_delivery(delivery._replace(postponed=True, postponed_number=delivery.next_number))
        period = effect.period if isinstance(effect, Delay) else RETRY_AFTER
        due = AttemptDelivery(delivery.order_id, delivery.id, delivery.next_number)
        edit.schedule(period.after(edit.now), due)
        if is_swap:
            edit.state = edit.state._replace(swapped=(delivery.id,))
        return True


def standard_url(settings: Settings, delivery: Delivery) -> str:
    """Return the URL of a webhook."""
    return settings.forward_to or delivery.url


def standard_body(project: Project, delivery: Delivery) -> str:
    """Build the body of a webhook."""
    return json.dumps(
        {"event": "status_changed", "order_id": delivery.order_id, "project_id": project.project_id}
    )


def _is_over(delivery: Delivery, queued: QueuedDelivery) -> bool:
    return delivery.state is not DeliveryState.PENDING and not queued.forced


def _record_unsent(attempt: PreparedAttempt) -> bool:
    """Mark a webhook as unsent; return False if a listener has connected, or forwarding is off.

    A resend with changes is not repeated later, so it counts as a failed attempt.
    """
    project, queued = attempt.project, attempt.queued
    if queued.is_changed:
        _record_attempt(attempt, DeliveryOutcome(Reply(0.0, error=NO_LISTENER), attempt.real_at))
        return True
    with project.edit(attempt.epoch, attempt.at) as edit:
        if listener_of(project).is_connected or edit.settings.forward_to != attempt.request.url:
            return False
        delivery = edit.delivery(queued.delivery_id)
        if delivery is not None:
            edit.store_delivery(delivery._replace(state=DeliveryState.UNSENT))
        edit.publish(
            "waiting",
            at=timestamp(edit.now),
            order_id=queued.order_id,
            delivery_id=queued.delivery_id,
            url=attempt.request.url,
            label="a webhook waits for the command listen",
        )
        return True


def _record_attempt(sent: PreparedAttempt, outcome: DeliveryOutcome, is_copy: bool = False) -> None:
    """Record an attempt, and schedule a retry if needed; copies need no retry.

    This also sends the webhooks deferred until now by a ``swap``.
    """
    project, queued = sent.project, sent.queued
    with project.edit(sent.epoch, sent.at) as edit:
        delivery = edit.delivery(queued.delivery_id)
        if delivery is None:  # dropped in the meantime, to make room for newer webhooks
            return
        is_changed, state = queued.is_changed, delivery.state
        number = MANUAL_ATTEMPT if is_changed else delivery.next_number - is_copy
        request, reply = _mask(project.masking, sent.request, outcome.reply)
        attempt = WebhookAttempt(number, sent.at, outcome.sent_at, request, reply)
        if sent.effect is not NO_EFFECT and not is_copy:
            _count_match(edit, delivery, sent.effect)
        delivery, next_at = delivery.record_attempt(attempt, is_copy=is_copy or is_changed)
        if is_changed:
            delivery = delivery._replace(state=state)  # the shop has not received the original webhook
        edit.store_delivery(delivery)
        if next_at is not None:
            edit.schedule(next_at, AttemptDelivery(delivery.order_id, delivery.id, number + 1))
        entry = _AttemptEntry(delivery.order_id, delivery, attempt, next_at)
        edit.show("webhook", entry)
        if sent.epoch.advance_log is not None:
            edit.advance_log.append(entry.processed())
        edit.release_swapped()


class _AttemptEntry(NamedTuple):
    """The entry for watchers about an attempt, whose texts are masked."""

    order_id: str
    delivery: Delivery
    attempt: WebhookAttempt
    next_at: datetime | None

    def processed(self) -> ProcessedEvent:
        """Return the fields for the log of an advance."""
        delivery, attempt, reply = self.delivery, self.attempt, self.attempt.reply
        outcome = (
            reply.fault or reply.error or (f"answered {reply.status}" if reply.status else reply.warning)
        )
        return {
            "at": timestamp(attempt.at),
            "kind": "webhook",
            "order_id": delivery.order_id,
            "label": f"webhook attempt {attempt.number} for {delivery.order_id}: {outcome}",
            "delivery_id": delivery.id,
        }

    def summary(self) -> dict[str, Any]:
        """Return the fields for an event."""
        attempt, reply = self.attempt, self.attempt.reply
        return {
            **self.processed(),
            "state": self.delivery.state,
            "number": attempt.number,
            "url": attempt.request.url,
            "order_status": self.delivery.status,
            "status": reply.status,
            "error": reply.error,
            "warning": reply.warning,
            "fault": reply.fault,
            "next_at": timestamp(self.next_at) if self.next_at is not None else None,
            "duration_ms": round(reply.duration_ms, 3),
        }


def _mask(masking: Masking, request: WebhookRequest, reply: Reply) -> tuple[WebhookRequest, Reply]:
    """Mask the secrets of an attempt, then truncate it; truncation first could leave part of a secret."""
    body = masking.mask_text(request.body.decode()).encode()[:ATTEMPT_BODY_BYTES].decode(errors="ignore")
    masked = {
        name: truncate_masked(masking.mask_text(text), text, length_max)
        for name, length_max in REPLY_LENGTHS_MAX.items()
        if (text := getattr(reply, name))
    }
    url = masking.mask_text(request.url)
    request = WebhookRequest(url, request.headers, body.encode())  # the headers are ours
    return request, reply._replace(**masked)


def _choose_effect(epoch: Epoch, delivery: Delivery, queued: QueuedDelivery) -> WebhookEffect:
    """Return the effect of a fault or of the rehearsal on the next attempt; none if it has overrides."""
    if queued.is_changed:
        return NO_EFFECT
    for faults in (epoch.state.faults, epoch.state.scenario_faults):
        if faults.webhooks and (effect := faults.webhook_effect(delivery)) is not None:
            return effect
    return epoch.rehearsal.choose(delivery) or NO_EFFECT


def _count_match(edit: Edit, delivery: Delivery, effect: WebhookEffect) -> None:
    """Count the rule whose effect an attempt has; a postponed attempt was counted when it was postponed."""
    if delivery.is_postponed and isinstance(effect, Delay | Swap):
        return
    if (own := edit.state.faults.count_webhook(delivery)) is not None:
        edit.state = edit.state._replace(faults=own)
    elif (of_scenario := edit.state.scenario_faults.count_webhook(delivery)) is not None:
        edit.state = edit.state._replace(scenario_faults=of_scenario)
