"""Delivers a webhook through a listener, which is nearer to the shop than the server."""

from payment_sandbox.operations.deliver_webhook import PreparedAttempt, offers_of, record_attempt
from payment_sandbox.projects.epoch import Epoch
from payment_sandbox.projects.project import Project
from payment_sandbox.projects.relay import Label


def forward(project: Project, epoch: Epoch, prepared: PreparedAttempt, label: Label) -> None:
    """Offer an attempt and its copies to the listener, and record what the shop answered.

    If the listener has gone, the webhook waits for the next one: that is no attempt.

    Raises:
        ProjectReset: the webhook belongs to an epoch that has ended.
    """
    offers = offers_of(prepared, label)
    for offer in offers:
        project.relay.offer(offer)
    is_answered = False
    try:
        for offer in offers:
            reply = offer.wait()
            if reply is not None:
                record_attempt(project, epoch, prepared, reply, is_copy=is_answered)
                is_answered = True
                offer.end(is_recorded=True)
    finally:
        for offer in offers:
            project.relay.withdraw(offer)
            offer.end(is_recorded=False)
    if not is_answered:
        project.relay.leave_again(epoch, prepared.queued)
