"""The commands for scenarios, faults, settings, projects and clocks."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from payment_sandbox.cli.options import fail
from payment_sandbox.cli.remote.assignments import read_assignments
from payment_sandbox.cli.remote.command_run import (
    CommandRun,
    format_value,
    group,
    remote,
)
from payment_sandbox.kernel.patterns import make_printable
from payment_sandbox.projects.settings import DEFAULT_SETTINGS, NewProjectForm
from payment_sandbox.scenarios.scenario_forms import FaultForm, OrderWebhookRuleForm

if TYPE_CHECKING:
    from payment_sandbox.web.answers.records import Clock, Project

SCENARIO_SUFFIXES: Final = (".yaml", ".yml", ".json")


@remote("scenario", example="scenario second-try-works")
@click.argument("name_or_file", required=False)
@click.option("--list", "listed", is_flag=True, help="List the available scenarios.")
def scenario(call: CommandRun, name_or_file: str | None, listed: bool) -> None:
    """Show the active scenario, or switch to one by name or file."""
    if listed and name_or_file is not None:
        raise click.UsageError("give a name, or --list")
    if listed:
        catalogue = call.sandbox.call("GET", "/control/scenarios/")
        heads = ("name", "what happens")
        call.table(
            catalogue,
            lambda shown: ((each["name"], each["description"]) for each in shown["items"]),
            heads,
            "no scenarios",
        )
        return
    if name_or_file is None:
        active = call.sandbox.active_scenario()
    elif Path(name_or_file).suffix in SCENARIO_SUFFIXES:
        active = call.sandbox.scenario_text(call.read(Path(name_or_file)))
    else:
        active = call.sandbox.scenario(name_or_file)
    call.show(active, lambda answer: f"{answer['name']}: {answer.get('description', 'no description')}")


@remote(
    "faults",
    example="faults method=POST path=/v1/orders/ status=503",
)
@click.argument("parts", nargs=-1, metavar="[NAME=VALUE]...")
@click.option("--webhook", is_flag=True, help="Set a webhook fault, such as status=completed answer=503.")
@click.option("--clear", is_flag=True, help="Remove all faults first.")
def faults(call: CommandRun, parts: tuple[str, ...], webhook: bool, clear: bool) -> None:
    """Show the faults, or add one.

    Conditions are method, path and nth, or for webhooks, status and attempt. Effects are status,
    phase, latency, reset, hang, truncate and rate_limit, or, for webhooks, answer, timeout, drop,
    duplicate, together, delay and swap.
    """
    before = call.sandbox.faults() if clear else call.sandbox.active_faults()
    rules: dict[str, Any] = {"faults": list(before["faults"]), "webhooks": list(before["webhooks"])}
    if parts:
        rules["webhooks" if webhook else "faults"].append(_parse_fault(parts, webhook=webhook))
        rules = {**call.sandbox.faults(**rules)}
    call.table(rules, _fault_rows, ("of", "when", "then"), "no faults")


def _fault_rows(answer: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    for kind in answer:
        yield from (
            (kind, _format_assignments(item.get("when")), _format_assignments(item["then"]))
            for item in answer[kind]
        )


def _parse_fault(parts: Sequence[str], *, webhook: bool) -> dict[str, Any]:
    """Build a fault from the words on the command line, which are conditions and effects."""
    rule: Mapping[str, Any] = (OrderWebhookRuleForm if webhook else FaultForm)().fields
    when, then = rule["when"].schema, rule["then"].schema
    conditions = [part for part in parts if re.split("[.=]", part)[0] in when.fields]
    effects = [part for part in parts if part not in conditions]
    return {"when": read_assignments(conditions, when, {}), "then": read_assignments(effects, then, {})}


def _format_assignments(item: Mapping[str, Any] | None) -> str:
    return " ".join(f"{name}={format_value(value)}" for name, value in (item or {}).items()) or "always"


@remote(
    "settings",
    example="settings mode=live webhook_url=http://localhost:3000/webhook",
)
@click.argument("pairs", nargs=-1, metavar="[NAME=VALUE]...")
def settings(call: CommandRun, pairs: tuple[str, ...]) -> None:
    """Show the project's settings, or change some; null clears a setting."""
    project = call.sandbox.project()
    if pairs:
        project = call.sandbox.change_settings(**_read_settings(pairs, project["settings"]))
    call.table(project["settings"], lambda answer: answer.items(), ("setting", "value"), "")


def _read_settings(pairs: Sequence[str], before: Mapping[str, Any]) -> dict[str, Any]:
    """Read settings; null stands for the default value."""
    changed = read_assignments(pairs, NewProjectForm(), before)
    defaults = DEFAULT_SETTINGS.document
    return {name: defaults.get(name) if value is None else value for name, value in changed.items()}


@group("projects", example="projects")
def projects(call: CommandRun) -> None:
    """List the projects of the server, create one, or delete the project of --key."""

    def row(item: "Project") -> tuple[object, ...]:
        chosen = item["settings"]
        return item["project_id"], chosen["mode"], item["clock"]["now"], chosen["name"], chosen["webhook_url"]

    heads = ("id", "mode", "clock", "name", "webhook_url")
    answer = call.sandbox.call("GET", "/control/projects/")
    call.table(answer, lambda answer: map(row, answer["items"]), heads, "no projects")


@remote("create", example="projects create name=Shop clock=frozen", parent=projects)
@click.argument("pairs", nargs=-1, metavar="[NAME=VALUE]...")
def create(call: CommandRun, pairs: tuple[str, ...]) -> None:
    """Create a project, and print its API key, which is shown only once."""
    created = call.sandbox.new_project(_read_settings(pairs, DEFAULT_SETTINGS.document))
    lines = "project {project_id}\nkey {api_key}"
    call.show(created, lambda answer: lines.format(**answer))


@remote("delete", example="projects delete --key KEY --yes", parent=projects)
@click.option("--yes", is_flag=True, help="Skip the confirmation.")
def delete(call: CommandRun, yes: bool) -> None:
    """Delete the project of --key, and revoke the key."""
    project = call.sandbox.project()
    name = project["settings"]["name"] or project["project_id"]
    if not yes and not click.confirm(f"Delete project {make_printable(name)} with all its orders?", err=True):
        fail("nothing was deleted")
    call.sandbox.delete_project()
    call.show({"deleted": project["project_id"]}, lambda answer: f"project {answer['deleted']} is deleted")


@remote("prune", example="projects prune --unused-for P7D", parent=projects)
@click.option(
    "--unused-for", required=True, metavar="PERIOD", help="Real time since the last call, such as P7D."
)
def prune(call: CommandRun, unused_for: str) -> None:
    """Delete all projects without a recent call, except the first one of the server."""
    deleted = call.sandbox.prune_projects(unused_for)
    nothing = f"no project was unused for {unused_for}"
    call.show({"deleted": deleted}, lambda answer: "\n".join(answer["deleted"]) or nothing)


@remote("snapshot", example="snapshot > state.json")
def snapshot(call: CommandRun) -> None:
    """Print a snapshot of the whole project, as JSON."""
    call.as_json = True
    call.show(call.sandbox.snapshot(), str)


@remote("restore", example="restore state.json")
@click.argument("state", type=click.Path(path_type=Path, dir_okay=False))
def restore(call: CommandRun, state: Path) -> None:
    """Restore a snapshot of this or another project from a file."""
    try:
        document = json.loads(call.read(state))
    except (ValueError, RecursionError) as error:
        fail(f"{state} is not JSON: {error}")
    call.show(call.sandbox.restore(document), lambda answer: f"project {answer['project_id']} is restored")


@remote("reset", example="reset")
def reset(call: CommandRun) -> None:
    """Reset the project to its initial state."""
    call.show(call.sandbox.reset(), lambda answer: f"project {answer['project_id']} has been reset")


@remote("clock", example="clock --by PT30M")
@click.option("--by", help="Advance by a period, such as PT30M.")
@click.option("--to", help="Advance to a time.")
@click.option("--until", type=click.Choice(["next", "idle"]), help="Advance to the next event or until idle.")
@click.option("--freeze", is_flag=True, help="Freeze the clock.")
@click.option("--rate", type=float, help="Run the clock at this many sandbox seconds per real second.")
def clock(call: CommandRun, freeze: bool, rate: float | None, **aim: str | None) -> None:
    """Show the clock, or move it."""
    aims = [name for name, value in aim.items() if value is not None]
    if len(aims) + freeze + (rate is not None) > 1:
        raise click.UsageError("give one of: --by, --to, --until, --freeze, --rate")
    if aims:
        call.show(
            call.sandbox.clock.advance(aim["by"], to=aim["to"], until=aim["until"]).answer, _format_advance
        )
        return
    if freeze:
        call.sandbox.clock.freeze()
    elif rate is not None:
        call.sandbox.clock.run(rate)
    call.show(call.sandbox.clock.read(), _format_clock)


def _format_clock(clock: "Clock") -> str:
    rate = f", {clock['rate']:g} times as fast as real time" if clock["rate"] != 1 else ""
    rate = rate if clock["mode"] == "running" else ""
    return f"{clock['now']} ({clock['mode']}{rate})"


def _format_advance(answer: Mapping[str, Any]) -> str:
    lines = [f"{event['at']}  {event['label']}" for event in answer["events"]]
    stopped = " (stopped early; advance again)" if answer.get("stopped") else ""
    return "\n".join([*lines, f"It is now {answer['to']}{stopped}."])
