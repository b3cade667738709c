"""The timeline of a project, causes before effects, for the report of a failed test."""

from collections.abc import Iterator
from typing import Final, NamedTuple

from payment_sandbox.client import answers
from payment_sandbox.client.client import SandboxClient

ANSWER_SHOWN: Final = 160  # characters of a shop's response to a webhook


class Moment(NamedTuple):
    """A line of the timeline with its real time, by which lines are sorted, and its sandbox time."""

    real_at: str
    at: str
    line: str


def timeline(client: SandboxClient) -> Iterator[str]:
    """Yield requests and responses, statuses, returns to the shop, and webhooks."""
    journal = client.happened()
    moments = [moment for entry in journal["items"] for moment in _exchange(entry)]
    moments += _statuses(journal["statuses"])
    moments += [
        Moment(visit["real_at"], visit["at"], f"the customer of {visit['order_id']} returned to the shop")
        for visit in journal["returns"]
    ]
    moments += [
        Moment(failure["real_at"], failure["at"], f"{failure['label']} FAILED: {failure['error']}")
        for failure in journal["failures"]
    ]
    moments += [moment for webhook in client.webhooks() for moment in _attempts(webhook)]
    yield f"sandbox time is {client.clock.now.isoformat()}, scenario {client.project()['scenario']}"
    for moment in sorted(moments, key=lambda moment: moment.real_at):
        yield f"{moment.at}  {moment.line}"


def _statuses(statuses: list[answers.StatusReached]) -> Iterator[Moment]:
    """One line for an order and its attempt if they reach the same status at once."""
    orders = {(item["order_id"], item["real_at"], item["status"]) for item in statuses if _is_order(item)}
    for item in statuses:
        order_id, status = item["order_id"], item["status"]
        is_told = (order_id, item["real_at"], status) in orders
        if _is_order(item):
            yield Moment(item["real_at"], item["at"], f"order {order_id} is {status}")
        elif not is_told:
            line = f"{item['payment_method']} of order {order_id} is {status}"
            yield Moment(item["real_at"], item["at"], line)


def _is_order(item: answers.StatusReached) -> bool:
    return item["payment_method"] is None


def _attempts(webhook: answers.Webhook) -> Iterator[Moment]:
    name = f"webhook {webhook['id'][:8]} for {webhook['order_id']} to {webhook['url']}"
    for attempt in webhook["attempts"]:
        line = f"{name}, try {attempt['number']}: {_outcome(attempt)}"
        yield Moment(attempt["real_at"], attempt["at"], line)


def _outcome(attempt: answers.Attempt) -> str:
    """The shop's status code; its response body too, if it is an error."""
    answer = attempt["response"]
    if answer is None:
        return str(attempt["error"] or attempt["warning"] or "no answer")
    words = " ".join(str(answer["body"]).split())[:ANSWER_SHOWN]
    return f"{answer['status']} {words}" if answer["status"] >= 400 and words else str(answer["status"])


def _exchange(entry: answers.JournalEntry) -> Iterator[Moment]:
    for line in _lines(entry):
        yield Moment(entry["real_at"], entry["at"], line)


def _lines(entry: answers.JournalEntry) -> Iterator[str]:
    rule = f", rule {entry['rule']}" if entry["rule"] else ""
    fault = f", fault {entry['fault']}" if entry["fault"] else ""
    yield f"{entry['method']} {entry['path']} -> {entry['status']}{rule}{fault}"
    error = entry["response"].get("error") if isinstance(entry["response"], dict) else None
    if error is not None:
        yield f"  {error['type']}: {error['value']}"
    if entry["decision"] is not None:
        yield from _decision(entry["decision"])


def _decision(decision: answers.Decision) -> Iterator[str]:
    nearest = decision.get("nearest")
    if decision["rule"] is not None:
        yield f"  rule {decision['rule']} of scenario {decision['scenario']} decided"
    elif nearest:
        differs = "; ".join(
            f"{found['condition']} expected {found['expected']}, was {found['actual']}"
            for found in nearest["differs"]
        )
        yield f"  no rule matched; nearest is rule {nearest['rule']}: {differs}"
