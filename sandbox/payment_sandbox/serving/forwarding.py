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
    project.relay.offer(offers)
    is_answered = False
    try:
        for offer in offers:
            reply = offer.wait()
            if reply is not None:
                record_attempt(project, epoch, prepared, reply, is_copy=is_answered)
                is_answered = True
                offer.end(is_recorded=True)
    finally:
        project.relay.withdraw(offers)
        for offer in offers:
            offer.end(is_recorded=False)
    if not is_answered:
        _keep(project, epoch, prepared)


def _keep(project: Project, epoch: Epoch, prepared: PreparedAttempt) -> None:
    """Keep a webhook for the next listener, or try again if there is one, or none is wanted any more."""
    with project.exclusively(epoch):  # the setting cannot change meanwhile
        is_wanted = project.settings.forward_to is not None
        is_left = is_wanted and project.relay.leave_unanswered(epoch, prepared.queued)
    if not is_left:
        project.put(epoch, prepared.queued)
