"""The history of a project: filtered pages of records, and the report of a failed test."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import Any, Final, NamedTuple, TypeVar

from payment_sandbox.judge import Finding, review
from payment_sandbox.judge.history import TimelineEntry, history
from payment_sandbox.kernel.times import timestamp
from payment_sandbox.operations.redelivery import unsent_webhooks
from payment_sandbox.orders.refusals import Invalid, Violation
from payment_sandbox.orders.webhooks import Delivery, DeliveryState
from payment_sandbox.projects.default_scenario import DEFAULT_NAME
from payment_sandbox.projects.journal import (
    RETURN,
    LoggedFailure,
    LoggedRequest,
    PerformedAction,
    ReachedStatus,
    to_plain_data,
)
from payment_sandbox.projects.project import Project
from payment_sandbox.scenarios.sentences import fault_in_words
from payment_sandbox.web.answers import records
from payment_sandbox.web.answers.control import (
    delivery_record,
    delivery_summary,
    journal_record,
    journal_summary,
)
from payment_sandbox.web.answers.page_urls import is_same_path

NOT_IN_LIST: Final = "is not in this list; the item may have been dropped"
NOT_IN_JOURNAL: Final = "is not in the journal; the request may have been dropped"

Record = TypeVar("Record", Delivery, LoggedRequest, PerformedAction)


class Page(NamedTuple):
    """The newest items, or the newest before the id ``before``; at most ``limit``."""

    limit: int | None = None
    before: str | None = None


class RequestFilter(NamedTuple):
    """Conditions for requests, which must all hold; None means any."""

    method: str | None = None
    path: str | None = None
    status: int | None = None
    order_id: str | None = None

    def matches(self, entry: LoggedRequest) -> bool:
        """Whether a request meets all conditions."""
        return (
            (self.method is None or self.method.upper() == entry.method)
            and (self.path is None or is_same_path(entry.path, self.path))
            and self.status in (None, entry.status)
            and self.order_id in (None, entry.order_id)
        )


WHOLE: Final = Page()
ANY_REQUEST: Final = RequestFilter()


def webhooks(
    project: Project,
    order_id: str | None = None,
    state: str | None = None,
    page: Page = WHOLE,
    *,
    is_summary: bool = False,
) -> Iterator[records.Webhook]:
    """Return webhooks with their attempts, newest last.

    Raises:
        Invalid: no webhook has the id ``before``.
    """
    store, serialize = project.epoch.store, delivery_summary if is_summary else delivery_record
    deliveries = store.deliveries() if order_id is None else store.deliveries_of(order_id)
    if state == DeliveryState.UNSENT:
        unsent = unsent_webhooks(project.epoch)
        deliveries = [each for each in unsent if order_id in (None, each.order_id)]
    shown = newest_page(deliveries, page, lambda each: state in (None, each.state, each.outcome))
    return (serialize(delivery, project.masking) for delivery in shown)


def newest_page(
    items: Sequence[Record],
    page: Page,
    matches: Callable[[Record], bool] = lambda item: True,
    dropped: str = NOT_IN_LIST,
) -> list[Record]:
    """Return a page of the matching items, newest last.

    Raises:
        Invalid: no item has the id ``before``.
    """
    newest_first = reversed(items)
    if page.before is not None and all(item.id != page.before for item in newest_first):  # skips newer items
        raise Invalid([Violation("before", dropped)])
    return list(islice(filter(matches, newest_first), page.limit))[::-1]


def journal(
    project: Project,
    wanted: RequestFilter = ANY_REQUEST,
    page: Page = WHOLE,
    *,
    is_summary: bool = False,
) -> Iterator[records.JournalEntry]:
    """Return requests with their responses, newest last.

    Raises:
        Invalid: no request has the id ``before``.
    """
    shown = newest_page(project.epoch.journal.of(LoggedRequest), page, wanted.matches, NOT_IN_JOURNAL)
    if is_summary:
        return map(journal_summary, shown)
    return (request_record(project, entry) for entry in shown)


def request_record(project: Project, entry: LoggedRequest) -> records.JournalEntry:
    """Serialize a request and its response, with the scenario's decision for the created attempt."""
    return journal_record(entry, project.epoch.journal.explanation(entry.transaction_id))


def other_lists(project: Project, order_id: str | None) -> dict[str, list[Any]]:
    """Return the journal's other lists, oldest first: returns to the shop, statuses, and failed events."""
    log = project.epoch.journal
    returns: list[records.Return] = [
        {"order_id": action.order_id or "", "at": timestamp(action.at), "real_at": timestamp(action.real_at)}
        for action in log.actions(frozenset((order_id,)) if order_id is not None else None)
        if action.action == RETURN
    ]
    return {
        "returns": returns,
        "statuses": [
            to_plain_data(each) for each in log.of(ReachedStatus) if order_id in (None, each.order_id)
        ],
        "failures": [
            to_plain_data(each) for each in log.of(LoggedFailure) if order_id in (None, each.order_id)
        ],
    }


MISSING_WEBHOOK_RULE: Final = "HOOK-03"
"""The rule for findings about status changes that no webhook reported."""
NO_CALLS_ADVICE: Final = (
    "no call with this project's key has arrived",
    "    Give the shop's client the address of the sandbox and this key. Redirect a client with"
    " a hard-coded address",
    "    with intercept(address) in Python, and with serve --stand-in-for HOST in other languages.",
)
OTHER_CALLS_HEADING: Final = "calls with another key, or without a key, since this project started:"
WRONG_KEY_ADVICE: Final = "    Give the shop's client the key of this project."
OTHER_CALLS_SHOWN_MAX: Final = 5


def report(project: Project, order_id: str | None = None, other_calls: Sequence[str] = ()) -> str:
    """Format the history of an order with its refunds, or of the project, and the review findings.

    Causes come before their effects. ``other_calls`` are calls without a project or with another key; they
    may come from other tests on the same server.

    Raises:
        Unknown: there is no such order.
    """
    epoch = project.epoch
    items = history(epoch, order_id)
    lines = [f"sandbox time is {epoch.now().isoformat()}, scenario {epoch.state.scenario.name}"]
    if items or order_id is not None:
        lines += _timeline_lines(project, items)
    elif not other_calls:
        lines += NO_CALLS_ADVICE
    lines += _other_calls_lines(other_calls) if order_id is None else ()
    orders = {None, *(item.order_id for item in items)}
    shown = (finding for finding in review(epoch) if order_id is None or finding.order_id in orders)
    return "\n".join(chain(lines, *map(_finding_lines, shown)))


def _other_calls_lines(other_calls: Sequence[str]) -> Iterator[str]:
    if other_calls:
        yield OTHER_CALLS_HEADING
        yield from (f"    {sentence}" for sentence in other_calls[-OTHER_CALLS_SHOWN_MAX:])
        yield WRONG_KEY_ADVICE


def _timeline_lines(project: Project, items: Sequence[TimelineEntry]) -> Iterator[str]:
    entries = {entry["id"]: entry for entry in journal(project)}
    urls = {webhook.id: webhook.url for webhook in project.epoch.store.deliveries()}
    answers = {item.cause: item for item in items if item.kind == "webhook-response"}
    for item in items:
        for index, line in enumerate(_entry_lines(item, answers, entries, urls)):
            yield f"{timestamp(item.at)}  {line}" if index == 0 else f"    {line}"


def _finding_lines(finding: Finding) -> Iterator[str]:
    yield (
        finding.problem
        if finding.rule == MISSING_WEBHOOK_RULE
        else f"review: {finding.rule} {finding.problem}"
    )
    yield f"    {finding.advice}"
    if finding.is_open and finding.amount:
        yield f"    Risk: {finding.risk}."


def _entry_lines(
    item: TimelineEntry,
    answers: Mapping[str | None, TimelineEntry],
    entries: Mapping[str, records.JournalEntry],
    urls: Mapping[str, str],
) -> Iterator[str]:
    kind, label, order_id = item.kind, item.label, item.order_id
    if kind == "request" and item.id in entries:
        yield from _request_lines(entries[item.id])
    elif kind == "status":
        yield f"order {order_id} is {label}"
    elif kind == "attempt-status":
        yield f"{label.replace(':', f' of order {order_id} is', 1)}"
    elif kind == "action":
        yield f"{item.sender} of {order_id} {label} ({item.detail})"
    elif kind == "webhook":
        yield from _webhook_lines(item, answers.get(item.id), urls.get(item.id.partition("/")[0], ""))
    elif kind == "agenda-event":
        yield f"{label} of {order_id}"
    elif kind == "failure":
        yield f"{label} for {order_id}: {item.detail}"


def _webhook_lines(item: TimelineEntry, answer: TimelineEntry | None, url: str) -> Iterator[str]:
    """Yield the lines of an attempt and its answer; an attempt withheld by a fault has no answer."""
    number = item.label.partition(":")[0].removeprefix("webhook")
    head = f"webhook {item.id[:8]} for {item.order_id}{number}"
    if answer is None:
        yield f"{head}: {item.label.rpartition(' · ')[2]}, never sent to {url}"
        return
    took = f" in {answer.duration_ms} ms" if answer.duration_ms is not None else ""
    yield f"{head}: {answer.label} from {url}{took}"
    for line in (answer.detail or "").splitlines():
        yield f"  {line}"


def _request_lines(entry: records.JournalEntry) -> Iterator[str]:
    rule = f", rule {entry['rule']}" if entry["rule"] else ""
    fault = f", fault: {fault_in_words(entry['fault'])}" if entry["fault"] else ""
    answer = entry["response"] if isinstance(entry["response"], dict) else {}
    error = answer.get("error")
    read = f": {answer['status']}" if entry["method"] == "GET" and "status" in answer else ""
    yield f"{entry['method']} {entry['path']} -> {entry['status']}{read}{rule}{fault}"
    if error is not None:
        yield f"  {error['type']}: {error['value']}"
    headers = entry["headers"]["response"]
    for name, word in (("Sandbox-Ignored-Fields", "ignored"), ("Sandbox-Warnings", "warning")):
        if name in headers:
            yield f"  {word}: {headers[name]}"
    if entry["decision"] is not None:
        yield from _decision_lines(entry["decision"])


def _decision_lines(decision: records.Decision) -> Iterator[str]:
    nearest = decision.get("nearest")
    if decision["rule"] is not None:
        yield f"  rule {decision['rule'] + 1} of scenario {decision['scenario']} decided"
    elif nearest and decision["scenario"] != DEFAULT_NAME:  # the default rules need trigger values
        differs = "; ".join(
            f"{difference['condition']} expected {difference['expected']}, was {difference['actual']}"
            for difference in nearest["differs"]
        )
        yield f"  no rule matched; nearest is rule {nearest['rule'] + 1}: {differs}"
