"""What happened in a project, filtered and page by page."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, Final, TypeVar

from payment_sandbox.kernel.times import timestamp
from payment_sandbox.orders.refusals import Invalid, Violation
from payment_sandbox.orders.webhooks import Delivery
from payment_sandbox.projects.journal import RETURN, JournalEntry, PerformedAction, as_plain
from payment_sandbox.projects.project import Project
from payment_sandbox.web.addresses import same_path
from payment_sandbox.web.answers import records
from payment_sandbox.web.answers.control import (
    delivery_record,
    delivery_summary,
    journal_record,
    journal_summary,
)

PAGED: Final = ("limit", "before", "summary")
"""Without these, the journal is answered as a whole, with its other lists."""

Record = TypeVar("Record", Delivery, JournalEntry, PerformedAction)


def webhooks(project: Project, query: Mapping[str, str]) -> Iterator[records.Webhook]:
    """Webhooks with their attempts, newest last.

    Raises:
        Invalid: there is none with the id ``before``.
    """
    order_id, state, store = query.get("order_id"), query.get("state"), project.epoch.store
    shown = delivery_summary if "summary" in query else delivery_record
    deliveries = store.deliveries() if order_id is None else store.deliveries_of(order_id)
    wanted = (each for each in reversed(deliveries) if state in (None, each.state, each.outcome))
    page = newest_page(wanted, query, lambda known: any(known == delivery.id for delivery in deliveries))
    return (shown(delivery, project.masking) for delivery in page)


def newest_page(
    newest_first: Iterable[Record], query: Mapping[str, str], is_known: Callable[[str], bool]
) -> list[Record]:
    """The newest ones up to the limit, or those before the one with the id ``before``; newest last.

    Raises:
        Invalid: there is none with the id ``before``.
    """
    before, limit = query.get("before"), query.get("limit")
    if before is not None and not is_known(before):
        raise Invalid([Violation("before", "is not the id of an item of this list (any more)")])
    items = _after(iter(newest_first), before) if before is not None else newest_first
    return list(islice(items, int(limit) if limit is not None else None))[::-1]


def _after(newest_first: Iterator[Record], before: str) -> Iterator[Record]:
    is_begun = False
    for item in newest_first:
        if is_begun:
            yield item
        is_begun = is_begun or item.id == before


def journal(project: Project, query: Mapping[str, str]) -> Iterator[records.JournalEntry]:
    """Requests and their responses, newest last.

    Raises:
        Invalid: there is none with the id ``before``.
    """
    epoch, before = project.epoch, query.get("before")
    is_summary = "summary" in query
    if before is not None and epoch.journal.find(before) is None:
        raise Invalid([Violation("before", "is not the id of a request in the journal (any more)")])
    if "limit" not in query and before is None:
        entries = epoch.journal.entries(_wanted(query), with_bodies=not is_summary)
    else:
        wanted = _wanted(query)
        is_of_page = before is None

        def is_wanted(entry: JournalEntry) -> bool:
            nonlocal is_of_page
            takes = is_of_page and wanted(entry)
            is_of_page = is_of_page or entry.id == before
            return takes

        newest = epoch.journal.entries(is_wanted, newest_first=True, with_bodies=not is_summary)
        limit = query.get("limit")
        entries = reversed(list(islice(newest, int(limit) if limit is not None else None)))
    if is_summary:
        return map(journal_summary, entries)
    return (request_record(project, entry) for entry in entries)


def request_record(project: Project, entry: JournalEntry) -> records.JournalEntry:
    """A request and its response, with the scenario's decision for the attempt it created."""
    return journal_record(entry, project.epoch.journal.explanation(entry.transaction_id))


def _wanted(query: Mapping[str, str]) -> Callable[[JournalEntry], bool]:
    method, path = query.get("method", "").upper(), query.get("path")
    status, order_id = query.get("status"), query.get("order_id")

    def is_wanted(entry: JournalEntry) -> bool:
        return (
            method in ("", entry.method)
            and (path is None or same_path(entry.path, path))
            and status in (None, str(entry.status))
            and order_id in (None, entry.order_id)
        )

    return is_wanted


def statuses(project: Project, order_id: str | None) -> list[dict[str, Any]]:
    """The statuses that orders and their attempts have reached, oldest first."""
    return [
        as_plain(reached)
        for reached in list(project.epoch.journal.statuses)
        if order_id in (None, reached.order_id)
    ]


def failures(project: Project, order_id: str | None) -> list[dict[str, Any]]:
    """Scheduled events that failed, oldest first."""
    return [
        as_plain(failure)
        for failure in list(project.epoch.journal.failures)
        if order_id in (None, failure.order_id)
    ]


def returns(project: Project, order_id: str | None) -> list[records.Return]:
    """Customers' returns to the shop, oldest first."""
    return [
        {"order_id": taken.order_id or "", "at": timestamp(taken.at), "real_at": timestamp(taken.real_at)}
        for taken in project.epoch.journal.actions(frozenset((order_id,)) if order_id is not None else None)
        if taken.action == RETURN
    ]


def other_lists(project: Project, order_id: str | None) -> dict[str, list[Any]]:
    """The journal's other lists: returns to the shop, statuses, and events that failed."""
    return {
        "returns": returns(project, order_id),
        "statuses": statuses(project, order_id),
        "failures": failures(project, order_id),
    }
