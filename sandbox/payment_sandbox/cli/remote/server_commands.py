"""The commands for the server, events, findings and replays."""

import json
import sys
from collections import defaultdict
from typing import Annotated, Any, Final

import click

from payment_sandbox import judge
from payment_sandbox.cli.options import say
from payment_sandbox.cli.remote.command_run import CommandRun, format_value, remote
from payment_sandbox.client.client import SandboxClient
from payment_sandbox.client.errors import SandboxError
from payment_sandbox.kernel.patterns import make_printable
from payment_sandbox.projects.events import Event

TIMED_OUT: Final = 408
NOT_READY: Final = 503
STANDBY: Final = "standby"
EVENT_SENTENCES: Final = {
    "request": "{method} {path}  {status}  {error}",
    "action": "{actor} {action}  order {order_id}",
    "status": "order {order_id}  {before} -> {after}",
    "clock": "{now}",
}


@remote("health")
def health(call: CommandRun, address: Annotated[str | None, "[URL]"] = None) -> None:
    """Check whether a server is ready; a standby is not, so the exit code is 1."""
    try:
        answer = call.sandbox.health()
    except SandboxError as refused:
        if refused.status != NOT_READY:
            raise
        say(STANDBY)
        sys.exit(1)
    call.show(answer, "{status}, version {version}")


@remote("watch --json")
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


@remote("wait --order last --status completed --timeout 5", call=SandboxClient.wait)
def wait(
    call: CommandRun,
    *,
    webhook: Annotated[str | None, "Wait for an answer to a webhook of this order."] = None,
    **state: Any,
) -> None:
    """Wait for a status, a webhook or an idle project; exit code 1 on timeout."""
    has_order = state["order_id"] is not None
    if has_order != (state["status"] is not None) or not (has_order or webhook or state["idle"]):
        raise click.UsageError("give --order with --status, --webhook, or --idle")
    state["webhook"] = call.order_id(webhook) if webhook is not None else None
    try:
        reached: Any = call.sandbox.wait(**state)
    except SandboxError as refused:
        if refused.status != TIMED_OUT:
            raise
        say(refused.value, to_stderr=True)
        sys.exit(1)
    call.show(reached, lambda shown: ", ".join(f"{name} is {format_value(shown[name])}" for name in shown))


@remote("journal --method POST --status 400", call=SandboxClient.journal)
def journal(call: CommandRun, **filters: Any) -> None:
    """List the shop's requests to the merchant API with their responses."""
    filters["method"] = (filters["method"] or "").upper() or None
    columns = "at method path status rule refused=response.error.value ignored"
    call.table(call.sandbox.journal(**filters), columns, "no requests")


@remote("review --all-projects")
def review(
    call: CommandRun,
    *,
    all_projects: Annotated[bool, "Review all projects; may need the control token."] = False,
) -> None:
    """List the integration's mistakes; exit code 1 if there are any."""
    own = {"name": "", "findings": call.sandbox.reviewed()["items"]} if not all_projects else None
    reviews: list[Any] = [own] if own is not None else list(call.sandbox.all_findings())
    found = [(judge.Finding.from_data(item), each["name"]) for each in reviews for item in each["findings"]]

    def readable(shown: list[dict[str, Any]]) -> str:
        texts = []
        for finding, (_, test) in zip(shown, found, strict=True):  # a test is named like its project
            finding["page"] = f"{call.sandbox.base_url}{finding['page']}"
            texts.append(
                f"{judge.Finding(**finding)}" + (f"\n  Test: {make_printable(test)}" if test else "")
            )
        return "\n".join(texts) or "no mistakes found"

    call.show([finding._asdict() for finding, _ in found], readable)
    sys.exit(1 if any(not finding.healed for finding, _ in found) else 0)
