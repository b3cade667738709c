"""What happened in a project, filtered."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from payment_sandbox.kernel.moments import timestamp
from payment_sandbox.projects.project import Project
from payment_sandbox.web.answers.control import delivery_record, journal_record
from payment_sandbox.web.routes import same_path

JOURNAL_FILTERS: Final = ("method", "path", "status", "order_id")


def webhooks(project: Project, order_id: str | None, state: str | None) -> Iterator[dict[str, Any]]:
    """Webhooks with their attempts, oldest first."""
    return (
        delivery_record(delivery, project.masking)
        for delivery in project.epoch.store.deliveries()
        if order_id in (None, delivery.order_id) and state in (None, delivery.state)
    )


def journal(project: Project, query: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    """Requests and their responses, oldest first."""
    wanted = {key: query[key] for key in JOURNAL_FILTERS if key in query}
    decisions = project.epoch.journal.decisions
    records = (
        journal_record(entry, decisions.get(entry.transaction_id or ""), project.masking)
        for entry in project.epoch.journal.entries()
    )
    return (
        shown for shown in records if all(_same(key, str(shown[key]), value) for key, value in wanted.items())
    )


def _same(key: str, shown: str, wanted: str) -> bool:
    if key == "method":
        return shown == wanted.upper()
    return same_path(shown, wanted) if key == "path" else shown == wanted


def statuses(project: Project, order_id: str | None) -> list[dict[str, Any]]:
    """The statuses that orders and their attempts have reached, oldest first."""
    return [
        {
            "order_id": reached.order_id,
            "payment_method": reached.payment_method,
            "status": reached.status,
            "at": timestamp(reached.at),
            "real_at": timestamp(reached.real_at),
        }
        for reached in list(project.epoch.journal.statuses)
        if order_id in (None, reached.order_id)
    ]


def failures(project: Project, order_id: str | None) -> list[dict[str, Any]]:
    """Scheduled events that failed, oldest first."""
    return [
        {**failure._asdict(), "at": timestamp(failure.at), "real_at": timestamp(failure.real_at)}
        for failure in list(project.epoch.journal.failures)
        if order_id in (None, failure.order_id)
    ]


def returns(project: Project, order_id: str | None) -> list[dict[str, Any]]:
    """Customers' returns to the shop, oldest first."""
    return [
        {"order_id": visit.order_id, "at": timestamp(visit.at), "real_at": timestamp(visit.real_at)}
        for visit in list(project.epoch.journal.returns)
        if order_id in (None, visit.order_id)
    ]


def besides(project: Project, order_id: str | None) -> dict[str, list[dict[str, Any]]]:
    """The journal's other lists: returns to the shop, statuses, and events that failed."""
    return {
        "returns": returns(project, order_id),
        "statuses": statuses(project, order_id),
        "failures": failures(project, order_id),
    }
