"""A project's agenda: scheduled events, failed ones, and the removal of obsolete entries."""

from contextlib import suppress
from datetime import datetime
from typing import Final

from payment_sandbox.kernel.timeline import DueItem
from payment_sandbox.kernel.times import timestamp
from payment_sandbox.operations.due_commands import handler_of
from payment_sandbox.orders.commands import Command
from payment_sandbox.orders.order import Order
from payment_sandbox.projects.epoch import CLEANUP_LENGTH_MIN, AgendaItem, Epoch, ProcessedEvent
from payment_sandbox.projects.jobs import JOB_KIND, Job
from payment_sandbox.projects.project import Project, ProjectReset

CLEANUP_BATCH_SIZE: Final = 20  # each order adds a few entries


def event(due: DueItem[Command], error: str | None = None) -> ProcessedEvent:
    """Format an agenda entry for a response; a failed entry has an ``error``."""
    shown: ProcessedEvent = {
        "at": timestamp(due.at),
        "kind": due.item.kind,
        "order_id": due.item.order_id,
        "label": due.item.label,
    }
    return shown if error is None else {**shown, "failed": error}


def entries_of(epoch: Epoch, order: Order) -> list[DueItem[Command]]:
    """List the agenda entries of an order and its refunds."""
    ids = {order.id, *(refund.refund_id for refund in order.refunds)}
    return [due for due in epoch.timeline if due.item.order_id in ids and applies(epoch, due)]


def agenda(epoch: Epoch) -> list[AgendaItem]:
    """List the failed entries, then the scheduled entries by time (CTL-17)."""
    failed = sorted(epoch.failed_commands.values(), key=lambda failed_command: failed_command.due[:2])
    due = [event(due) for due in epoch.timeline if applies(epoch, due)]
    if epoch.jobs:
        due = sorted([*due, *map(job_event, epoch.jobs.by_next_run())], key=lambda shown: shown["at"])
    return [*(event(failed_command.due, failed_command.error) for failed_command in failed), *due]


def job_event(job: Job, error: str | None = None) -> ProcessedEvent:
    """Format a run of a shop's job as an agenda entry without an order."""
    shown: ProcessedEvent = {"at": timestamp(job.at), "kind": JOB_KIND, "order_id": "", "label": job.label}
    return shown if error is None else {**shown, "failed": error}


def is_something_due(epoch: Epoch) -> bool:
    """Whether an entry is due or overdue, or an advance is running."""
    return epoch.is_advancing or next_due(epoch, epoch.now()) is not None


def must_catch_up(project: Project) -> bool:
    """Whether due events of a running clock must run before a request is handled."""
    epoch = project.epoch
    if not epoch.state.clock.running or epoch.is_advancing:
        return False
    head = epoch.timeline.head()
    return head is not None and head.at <= epoch.now()


def next_due(epoch: Epoch, until: datetime | None = None) -> DueItem[Command] | None:
    """Find the first entry up to ``until`` (None: any time) that still applies."""
    for due in epoch.timeline.in_order():
        if until is not None and due.at > until:
            return None
        if applies(epoch, due):
            return due
    return None


def applies(epoch: Epoch, due: DueItem[Command]) -> bool:
    """Whether an entry still has an effect."""
    return handler_of(due.item).applies(epoch, due.item, due.at)


def _is_over(epoch: Epoch, due: DueItem[Command]) -> bool:
    return handler_of(due.item).is_over(epoch, due.item, due.at)


def clean_up_agenda(project: Project, epoch: Epoch) -> None:
    """Check a few entries of a long agenda; often half are obsolete, because orders end early.

    Obsolete entries are removed together, once all entries have been checked.
    """
    with suppress(ProjectReset), project.blocking_edits(epoch):
        batch = epoch.timeline.batch(epoch.checked_entries, CLEANUP_BATCH_SIZE)
        epoch.obsolete_entries += [due.sequence for due in batch if _is_over(epoch, due)]
        epoch.checked_entries += CLEANUP_BATCH_SIZE
        if epoch.checked_entries < len(epoch.timeline):
            return
        epoch.timeline.remove(epoch.obsolete_entries)
        epoch.finished_entries += epoch.obsolete_entries
        epoch.cleanup_length = max(CLEANUP_LENGTH_MIN, 2 * len(epoch.timeline))
        epoch.checked_entries, epoch.obsolete_entries = 0, []
