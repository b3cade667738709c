"""What an action would do, found out without doing it."""

from payment_sandbox.operations.act import perform_on_attempt
from payment_sandbox.orders.actions import Action
from payment_sandbox.orders.refusals import Refusal
from payment_sandbox.projects.edit import Edit
from payment_sandbox.projects.project import Project


def status_after(project: Project, order_id: str, transaction_id: str, action: Action) -> str | None:
    """The status that the order would have; None if the action is not possible."""
    epoch = project.epoch
    edit = Edit(epoch, epoch.now())  # it is never applied
    try:
        return perform_on_attempt(edit, order_id, transaction_id, action).status
    except Refusal:
        return None
