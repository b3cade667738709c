"""The timeline of a project as text, for the report of a failed test."""

from collections.abc import Collection, Iterator
from typing import Final

from payment_sandbox.client.client import SandboxClient
from payment_sandbox.client.errors import ends_at_caller
from payment_sandbox.operations.review import Finding
from payment_sandbox.projects.default_scenario import DEFAULT
from payment_sandbox.web.answers import records as answers

__all__ = ["Finding", "Review", "review"]

__tracebackhide__ = ends_at_caller


class Review(list[Finding]):
    """The findings of a review; a correct integration gets none."""

    def assert_clean(self, ignore: Collection[str] = ()) -> None:
        """Fail if there are mistakes, with all of them in full; ``ignore`` lists rules that do not count.

        Hints do not count either, nor do mistakes that were put right, such as by a retry.

        Raises:
            AssertionError: there are mistakes.
        """
        problems = self.problems(ignore)
        if problems:
            raise AssertionError(problems)

    def problems(self, ignore: Collection[str] = ()) -> str:
        """All mistakes in full, as text; empty if there are none."""
        problems = [each for each in self if each.is_open and each.rule not in ignore]
        if not problems:
            return ""
        count = "a mistake" if len(problems) == 1 else f"{len(problems)} mistakes"
        listed = "\n\n".join(map(str, problems))
        return f"the review found {count} in the integration:\n\n{listed}"


def review(client: SandboxClient) -> Review:
    """Review a project's history; a correct integration gets no findings."""
    items = client.call("GET", "/control/review/")["items"]
    return Review(map(Finding.read, items))


UNTOLD: Final = "HOOK-03"
"""The rule of findings about statuses that nobody was told."""


def timeline(client: SandboxClient) -> Iterator[str]:
    """Yield requests and responses, actions, statuses, webhooks, and what went wrong; causes come first."""
    journal = {entry["id"]: entry for entry in client.journal()}
    urls = {webhook["id"]: webhook["url"] for webhook in client.webhooks()}
    items = client.timeline()
    yield f"sandbox time is {client.clock.now.isoformat()}, scenario {client.project()['scenario']}"
    answered = {item["cause"]: item for item in items if item["kind"] == "webhook-response"}
    for item in items:
        for index, line in enumerate(_lines(item, answered, journal, urls)):
            yield f"{item['at']}  {line}" if index == 0 else f"    {line}"
    for finding in review(client):
        yield from _finding(finding)


def _finding(finding: Finding) -> Iterator[str]:
    if finding.rule == UNTOLD:
        yield finding.problem
    else:
        yield f"review: {finding.rule} {finding.problem}"
        yield f"    {finding.advice}"


def _lines(
    item: answers.Happening,
    answered: dict[str | None, answers.Happening],
    journal: dict[str, answers.JournalEntry],
    urls: dict[str, str],
) -> Iterator[str]:
    kind, label, order_id = item["kind"], item["label"], item["order_id"]
    if kind == "request" and item["id"] in journal:
        yield from _request(journal[item["id"]])
    elif kind == "status":
        yield f"order {order_id} is {label}"
    elif kind == "attempt-status":
        yield f"{label.replace(':', f' of order {order_id} is', 1)}"
    elif kind == "action":
        yield f"{item['from']} of {order_id} {label} ({item['detail']})"
    elif kind == "webhook":
        yield from _webhook(item, answered.get(item["id"]), urls.get(item["id"].partition("/")[0], ""))
    elif kind == "agenda-event":
        yield f"{label} of {order_id}"
    elif kind == "failure":
        yield f"{label} for {order_id}: {item['detail']}"


def _webhook(item: answers.Happening, answer: answers.Happening | None, url: str) -> Iterator[str]:
    """An attempt with its answer; one that a fault withheld from the shop has none."""
    number = item["label"].partition(":")[0].removeprefix("webhook")
    head = f"webhook {item['id'][:8]} for {item['order_id']}{number}"
    if answer is None:
        yield f"{head}: {item['label'].rpartition(' · ')[2]}, never sent to {url}"
        return
    took = f" in {answer['duration_ms']} ms" if answer.get("duration_ms") is not None else ""
    yield f"{head}: {answer['label']} from {url}{took}"
    for line in (answer["detail"] or "").splitlines():
        yield f"  {line}"


def _request(entry: answers.JournalEntry) -> Iterator[str]:
    rule = f", rule {entry['rule']}" if entry["rule"] else ""
    fault = f", fault {entry['fault']}" if entry["fault"] else ""
    yield f"{entry['method']} {entry['path']} -> {entry['status']}{rule}{fault}"
    error = entry["response"].get("error") if isinstance(entry["response"], dict) else None
    if error is not None:
        yield f"  {error['type']}: {error['value']}"
    answered = entry["headers"]["response"]
    for name, word in (("Sandbox-Ignored-Fields", "ignored"), ("Sandbox-Warnings", "warning")):
        if name in answered:
            yield f"  {word}: {answered[name]}"
    if entry["decision"] is not None:
        yield from _decision(entry["decision"])


def _decision(decision: answers.Decision) -> Iterator[str]:
    nearest = decision.get("nearest")
    if decision["rule"] is not None:
        yield f"  rule {decision['rule'] + 1} of scenario {decision['scenario']} decided"
    elif nearest and decision["scenario"] != DEFAULT:  # that no trigger value was used is no news
        differs = "; ".join(
            f"{difference['condition']} expected {difference['expected']}, was {difference['actual']}"
            for difference in nearest["differs"]
        )
        yield f"  no rule matched; nearest is rule {nearest['rule'] + 1}: {differs}"
