"""The report of a failed test: a history as text, with the findings of the review."""

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Final

from payment_sandbox.judge import Finding, review
from payment_sandbox.judge.evidence import status_in
from payment_sandbox.judge.history import TimelineEntry, history
from payment_sandbox.kernel.times import timestamp
from payment_sandbox.orders.webhooks import Delivery
from payment_sandbox.projects.default_scenario import DEFAULT_NAME
from payment_sandbox.projects.epoch import Epoch
from payment_sandbox.projects.journal import LoggedRequest
from payment_sandbox.scenarios.model import Decision
from payment_sandbox.scenarios.sentences import fault_in_words

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
NOTED_HEADERS: Final = {"Sandbox-Ignored-Fields": "ignored", "Sandbox-Warnings": "warning"}


def report(epoch: Epoch, order_id: str | None = None, other_calls: Sequence[str] = ()) -> str:
    """Format the history of an order with its refunds, or of the project, and the review findings.

    Causes come before their effects. ``other_calls`` are calls without a project or with another key; they
    may come from other tests on the same server.

    Raises:
        Unknown: there is no such order.
    """
    items = history(epoch, order_id)
    lines = [f"sandbox time is {epoch.now().isoformat()}, scenario {epoch.state.scenario.name}"]
    lines += _timeline_lines(epoch, items)
    if order_id is None and other_calls:
        shown = (f"    {sentence}" for sentence in other_calls[-OTHER_CALLS_SHOWN_MAX:])
        lines += (OTHER_CALLS_HEADING, *shown, WRONG_KEY_ADVICE)
    elif order_id is None and not items:
        lines += NO_CALLS_ADVICE
    orders = {None, *(item.order_id for item in items)}
    findings = (finding for finding in review(epoch) if order_id is None or finding.order_id in orders)
    return "\n".join(chain(lines, *map(_finding_lines, findings)))


def _timeline_lines(epoch: Epoch, items: Sequence[TimelineEntry]) -> Iterator[str]:
    answers = {item.cause: item for item in items if item.kind == "webhook-response"}
    for item in items:
        for index, line in enumerate(_entry_lines(epoch, item, answers.get(item.id))):
            yield f"{timestamp(item.at)}  {line}" if index == 0 else f"    {line}"


def _finding_lines(finding: Finding) -> Iterator[str]:
    heading = "" if finding.rule == MISSING_WEBHOOK_RULE else f"review: {finding.rule} "
    yield f"{heading}{finding.problem}"
    yield f"    {finding.advice}"
    if finding.is_open and finding.amount:
        yield f"    Risk: {finding.risk}."


def _entry_lines(epoch: Epoch, item: TimelineEntry, answer: TimelineEntry | None) -> Iterator[str]:
    label, order_id = item.label, item.order_id
    match item.kind, item.record:
        case "request", LoggedRequest() as entry:
            yield from _request_lines(epoch, entry)
        case "status", _:
            yield f"order {order_id} is {label}"
        case "attempt-status", _:
            yield label.replace(":", f" of order {order_id} is", 1)
        case "action", _:
            yield f"{item.sender} of {order_id} {label} ({item.detail})"
        case "webhook", Delivery() as delivery:
            yield from _webhook_lines(item, answer, delivery.url)
        case "agenda-event", _:
            yield f"{label} of {order_id}"
        case "failure", _:
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


def _request_lines(epoch: Epoch, entry: LoggedRequest) -> Iterator[str]:
    status, error = status_in(entry) if entry.method == "GET" else None, entry.error()
    read = f": {status}" if status is not None else ""
    rule = f", rule {entry.rule}" if entry.rule else ""
    fault = f", fault: {fault_in_words(entry.fault.document)}" if entry.fault is not None else ""
    yield f"{entry.method} {entry.path} -> {entry.status}{read}{rule}{fault}"
    if error is not None:
        yield f"  {error}"
    headers = dict(entry.response_headers)
    yield from (f"  {word}: {headers[name]}" for name, word in NOTED_HEADERS.items() if name in headers)
    decision = epoch.journal.explanation(entry.transaction_id)
    if decision is not None:
        yield from _decision_lines(decision)


def _decision_lines(decision: Decision) -> Iterator[str]:
    nearest = decision.get("nearest")
    if decision["rule"] is not None:
        yield f"  rule {decision['rule'] + 1} of scenario {decision['scenario']} decided"
    elif nearest and decision["scenario"] != DEFAULT_NAME:  # the default rules need trigger values
        differs = "; ".join(
            f"{difference['condition']} expected {difference['expected']}, was {difference['actual']}"
            for difference in nearest["differs"]
        )
        yield f"  no rule matched; nearest is rule {nearest['rule'] + 1}: {differs}"
