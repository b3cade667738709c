"""The commands for the server, events, findings and replays."""

import json
import sys
from collections import defaultdict
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import click

from payment_sandbox import judge
from payment_sandbox.cli.options import SecondsOption, say, short_time
from payment_sandbox.cli.remote.command_run import CommandRun, format_value, remote
from payment_sandbox.client import project_review
from payment_sandbox.client.errors import SandboxError
from payment_sandbox.kernel.patterns import make_printable
from payment_sandbox.projects.events import Event

if TYPE_CHECKING:
    from payment_sandbox.web.answers.records import JournalEntry

TIMED_OUT: Final = 408
NOT_READY: Final = 503
STANDBY: Final = "standby"
EVENT_SENTENCES: Final = {
    "request": "{method} {path}  {status}  {error}",
    "action": "{actor} {action}  order {order_id}",
    "status": "order {order_id}  {before} -> {after}",
    "clock": "{now}",
}


@remote("health", example="health")
@click.argument("address", required=False, metavar="[URL]")
def health(call: CommandRun) -> None:
    """Check whether a server is ready; a standby is not, so the exit code is 1."""
    try:
        answer = call.sandbox.health()
    except SandboxError as refused:
        if refused.status != NOT_READY:
            raise
        say(STANDBY)
        sys.exit(1)
    call.show(answer, lambda answer: f"{answer['status']}, version {answer['version']}")


@remote("watch", example="watch --json")
def watch(call: CommandRun) -> None:
    """Stream the project's events until Ctrl-C."""
    for event in call.sandbox.events():
        line = json.dumps(event.data) if call.as_json else f"{event.kind:8} {_event_text(event)}"
        say(line)
        sys.stdout.flush()
    say("The events have ended: the server stopped, or the project was deleted.", to_stderr=True)


def _event_text(event: Event) -> str:
    """Describe an event without the internals that its JSON has."""
    label = event.data.get("label")
    if label is not None:
        return str(label)
    values = {name: format_value(value) for name, value in event.data.items()}
    return EVENT_SENTENCES.get(event.kind, "").format_map(defaultdict(str, values)).strip()


@remote("wait", example="wait --order last --status completed --timeout 5")
@click.option("--order", help="Wait until this order has the --status.")
@click.option("--status", help="The status to wait for.")
@click.option("--webhook", help="Wait for an answer to a webhook of this order.")
@click.option("--idle", is_flag=True, help="Wait until no event is pending and no webhook is in flight.")
@click.option("--timeout", default=10.0, show_default=True, type=SecondsOption(0, 60), help="Real seconds.")
def wait(
    call: CommandRun, order: str | None, status: str | None, webhook: str | None, idle: bool, timeout: float
) -> None:
    """Wait for a status, a webhook or an idle project; exit code 1 on timeout."""
    if (order is None) != (status is None) or not (order or webhook or idle):
        raise click.UsageError("give --order with --status, --webhook, or --idle")
    try:
        state = call.sandbox.wait(
            order_id=call.order_id(order) if order is not None else None,
            status=status,
            webhook=call.order_id(webhook) if webhook is not None else None,
            idle=idle,
            timeout_seconds=timeout,
        )
    except SandboxError as refused:
        if refused.status != TIMED_OUT:
            raise
        say(refused.value, to_stderr=True)
        sys.exit(1)
    call.show(
        state, lambda answer: ", ".join(f"{name} is {format_value(value)}" for name, value in answer.items())
    )


@remote("journal", example="journal --method POST --status 400")
@click.option("--method", help="Only requests with this HTTP method.")
@click.option("--path", help="Only requests to this path.")
@click.option("--status", type=int, help="Only requests answered with this status.")
@click.option("--order", help="Only requests about this order.")
def journal(
    call: CommandRun, method: str | None, path: str | None, status: int | None, order: str | None
) -> None:
    """List the shop's requests to the merchant API with their responses."""
    order_id = call.order_id(order) if order is not None else None
    method = method.upper() if method is not None else None
    entries = call.sandbox.journal(method=method, path=path, status=status, order_id=order_id)

    def row(item: "JournalEntry") -> tuple[object, ...]:
        refused = item["response"].get("error") if isinstance(item["response"], dict) else None
        note = f"{refused['type']}: {refused['value']}" if refused else ", ".join(item["ignored"])
        return short_time(item["at"]), item["method"], item["path"], item["status"], item["rule"], note

    heads = ("at", "method", "path", "status", "rule", "refused or ignored")
    call.table(entries, lambda answer: map(row, answer), heads, "no requests")


@remote("review", example="review --all-projects")
@click.option("--all-projects", is_flag=True, help="Review all projects; may need the control token.")
def review(call: CommandRun, all_projects: bool) -> None:
    """List the integration's mistakes; exit code 1 if there are any."""
    named = _fetch_findings(call, all_projects=all_projects)
    tests = [make_printable(name) for name, _ in named]
    call.show(
        [finding._asdict() for _, finding in named],
        lambda answer: (
            "\n".join(map(partial(_finding_text, call.sandbox.base_url), answer, tests))
            or "no mistakes found"
        ),
    )
    sys.exit(1 if any(not finding.healed for _, finding in named) else 0)


def _finding_text(base_url: str, finding: dict[str, Any], test: str) -> str:
    text = str(judge.Finding(**{**finding, "page": f"{base_url}{finding['page']}"}))
    return f"{text}\n  Test: {test}" if test else text


def _fetch_findings(call: CommandRun, *, all_projects: bool) -> "list[tuple[str, judge.Finding]]":
    """Return the findings, those of all projects with the name of theirs, which is that of the test."""
    if not all_projects:
        return [("", finding) for finding in project_review.review(call.sandbox)]
    reviews: list[Any] = list(call.sandbox.all_findings())
    return [(each["name"], judge.Finding.from_data(item)) for each in reviews for item in each["findings"]]
