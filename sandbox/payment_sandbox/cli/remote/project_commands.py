"""The commands for scenarios, faults, settings, projects and clocks."""

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import click

from payment_sandbox.cli.options import Group, fail
from payment_sandbox.cli.remote.assignments import read_assignments
from payment_sandbox.cli.remote.command_run import CommandRun, format_table, format_value, remote
from payment_sandbox.client.client import SCENARIO_SUFFIXES
from payment_sandbox.kernel.patterns import make_printable
from payment_sandbox.projects.settings import DEFAULT_SETTINGS, NewProjectForm
from payment_sandbox.scenarios.scenario_forms import FaultForm, OrderWebhookRuleForm
from payment_sandbox.web.answers.records import Clock

Assignments = Annotated[tuple[str, ...], "[NAME=VALUE]..."]


@remote("scenario second-try-works")
def scenario(
    call: CommandRun,
    name_or_file: str | None = None,
    *,
    list_: Annotated[bool, "List the available scenarios."] = False,
) -> None:
    """Show the active scenario, or switch to one by name or file."""
    if list_ and name_or_file is not None:
        raise click.UsageError("give a name, or --list")
    if list_:
        catalogue = call.sandbox.call("GET", "/control/scenarios/")
        call.table(catalogue, "name description", "no scenarios")
        return
    if name_or_file is None:
        active = call.sandbox.active_scenario()
    elif name_or_file.endswith(SCENARIO_SUFFIXES):
        active = call.sandbox.scenario_text(call.read(Path(name_or_file)))
    else:
        active = call.sandbox.scenario(name_or_file)
    call.show(active, lambda answer: f"{answer['name']}: {answer.get('description', 'no description')}")


@remote("faults method=POST path=/v1/orders/ status=503")
def faults(
    call: CommandRun,
    parts: Assignments = (),
    *,
    webhook: Annotated[bool, "Set a webhook fault, such as status=completed answer=503."] = False,
    clear: Annotated[bool, "Remove all faults first."] = False,
) -> None:
    """Show the faults, or add one.

    Conditions are method, path and nth, or for webhooks, status and attempt. Effects are status,
    phase, latency, reset, hang, truncate and rate_limit, or, for webhooks, answer, timeout, drop,
    duplicate, together, delay and swap.
    """
    rules: dict[str, Any] = {**(call.sandbox.faults() if clear else call.sandbox.active_faults())}
    if parts:
        kind, form = ("webhooks", OrderWebhookRuleForm()) if webhook else ("faults", FaultForm())
        added = _read_fault(parts, form.fields)
        rules = {**call.sandbox.faults(**{**rules, kind: [*rules[kind], added]})}
    call.show(rules, _format_faults)


def _format_faults(rules: Mapping[str, Any]) -> str:
    rows = [
        (kind, _as_words(rule.get("when")), _as_words(rule["then"])) for kind in rules for rule in rules[kind]
    ]
    return format_table(rows, ("of", "when", "then"), "no faults")


def _as_words(values: Mapping[str, Any] | None) -> str:
    return " ".join(f"{name}={format_value(value)}" for name, value in (values or {}).items()) or "always"


def _read_fault(parts: Sequence[str], rule: Mapping[str, Any]) -> dict[str, Any]:
    """Read a fault from the words on the command line, which are conditions and effects."""
    when, then = rule["when"].schema, rule["then"].schema
    conditions = [part for part in parts if re.split("[.=]", part)[0] in when.fields]
    effects = [part for part in parts if part not in conditions]
    return {"when": read_assignments(conditions, when, {}), "then": read_assignments(effects, then, {})}


@remote("settings mode=live webhook_url=http://localhost:3000/webhook")
def settings(call: CommandRun, pairs: Assignments = ()) -> None:
    """Show the project's settings, or change some; null clears a setting."""
    project = call.sandbox.project()
    if pairs:
        project = call.sandbox.change_settings(**_read_settings(pairs, project["settings"]))
    heads = ("setting", "value")
    call.show(project["settings"], lambda shown: format_table([*shown.items()], heads, ""))


def _read_settings(pairs: Sequence[str], before: Mapping[str, Any]) -> dict[str, Any]:
    """Read settings; null stands for the default value."""
    changed = read_assignments(pairs, NewProjectForm(), before)
    defaults = DEFAULT_SETTINGS.document
    return {name: defaults.get(name) if value is None else value for name, value in changed.items()}


@remote("projects", kind=Group)
def projects(call: CommandRun) -> None:
    """List the projects of the server, create one, or delete the project of --key."""
    columns = "id=project_id mode=settings.mode clock=clock.now name=settings.name"
    listed = call.sandbox.call("GET", "/control/projects/")
    call.table(listed, f"{columns} webhook_url=settings.webhook_url", "no projects")


@remote("projects create name=Shop clock=frozen", parent=projects)
def create(call: CommandRun, pairs: Assignments = ()) -> None:
    """Create a project, and print its API key, which is shown only once."""
    created = call.sandbox.new_project(_read_settings(pairs, DEFAULT_SETTINGS.document))
    call.show(created, "project {project_id}\nkey {api_key}")


@remote("projects delete --key KEY --yes", parent=projects)
def delete(call: CommandRun, *, yes: Annotated[bool, "Skip the confirmation."] = False) -> None:
    """Delete the project of --key, and revoke the key."""
    project = call.sandbox.project()
    name = project["settings"]["name"] or project["project_id"]
    if not yes and not click.confirm(f"Delete project {make_printable(name)} with all its orders?", err=True):
        fail("nothing was deleted")
    call.sandbox.delete_project()
    call.show({"deleted": project["project_id"]}, "project {deleted} is deleted")


@remote("snapshot > state.json")
def snapshot(call: CommandRun) -> None:
    """Print a snapshot of the whole project, as JSON."""
    call.as_json = True
    call.show(call.sandbox.snapshot(), str)


@remote("restore state.json")
def restore(call: CommandRun, state: Path) -> None:
    """Restore a snapshot of this or another project from a file."""
    try:
        document = json.loads(call.read(state))
    except (ValueError, RecursionError) as error:
        fail(f"{state} is not JSON: {error}")
    call.show(call.sandbox.restore(document), "project {project_id} is restored")


@remote("reset")
def reset(call: CommandRun) -> None:
    """Reset the project to its initial state."""
    call.show(call.sandbox.reset(), "project {project_id} has been reset")


@remote("clock --by PT30M")
def clock(
    call: CommandRun,
    *,
    by: Annotated[str | None, "Advance by a period, such as PT30M."] = None,
    to: Annotated[str | None, "Advance to a time."] = None,
    until: Annotated[Literal["next", "idle"] | None, "Advance to the next event or until idle."] = None,
    freeze: Annotated[bool, "Freeze the clock."] = False,
    rate: Annotated[float | None, "Run the clock at this many sandbox seconds per real second."] = None,
) -> None:
    """Show the clock, or move it."""
    given = [value for value in (by, to, until, freeze or None, rate) if value is not None]
    if len(given) > 1:
        raise click.UsageError("give one of: --by, --to, --until, --freeze, --rate")
    if freeze:
        call.sandbox.clock.freeze()
    elif rate is not None:
        call.sandbox.clock.run(rate)
    elif given:
        call.show(call.sandbox.clock.advance(by, to=to, until=until).answer, _format_advance)
        return
    call.show(call.sandbox.clock.read(), _format_clock)


def _format_clock(clock: Clock) -> str:
    is_faster = clock["mode"] == "running" and clock["rate"] != 1
    rate = f", {clock['rate']:g} times as fast as real time" if is_faster else ""
    return f"{clock['now']} ({clock['mode']}{rate})"


def _format_advance(answer: Mapping[str, Any]) -> str:
    lines = [f"{event['at']}  {event['label']}" for event in answer["events"]]
    stopped = " (stopped early; advance again)" if answer.get("stopped") else ""
    return "\n".join([*lines, f"It is now {answer['to']}{stopped}."])
