"""The commands that call a running server; they print readable text, or JSON for programs."""

import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import click

from payment_sandbox.orders.actions import ACTIONS

if TYPE_CHECKING:
    from payment_sandbox.client.answers import Clock, Project, ScenarioSummary, Webhook
    from payment_sandbox.client.client import SandboxClient
    from payment_sandbox.client.clock import Advance
    from payment_sandbox.client.errors import SandboxError

URL_DEFAULT = "http://127.0.0.1:8080"
KEY_DEFAULT = "sandbox-key"

SKIPPED_SHOWN_MAX = 10

Found = TypeVar("Found")

as_json = click.option("--json", "as_json", is_flag=True, help="Print the response as JSON.")


@contextmanager
def client(file: Path | None = None) -> "Iterator[SandboxClient]":
    """Create a client from ``SANDBOX_URL`` and ``SANDBOX_API_KEY``; a refusal ends the command.

    Mistakes in ``file`` are reported with line and column.
    """
    import requests

    from payment_sandbox.client.client import SandboxClient, SandboxError

    url = os.environ.get("SANDBOX_URL", URL_DEFAULT).rstrip("/")
    url = url if "://" in url else f"http://{url}"
    key = os.environ.get("SANDBOX_API_KEY", KEY_DEFAULT)
    made = SandboxClient(url, key, control_token=os.environ.get("SANDBOX_CONTROL_TOKEN"))
    try:
        yield made
    except SandboxError as refused:
        _fail(*_refused(refused, file))
    except (requests.RequestException, ValueError) as error:
        _fail(f"no sandbox answers at {url} ({error}); start one, or set SANDBOX_URL")
    finally:
        made.close()


def _refused(refused: "SandboxError", file: Path | None) -> list[str]:
    """One line, or one per mistake of a file."""
    placed = [found for found in refused.violations if found.line is not None]
    if file is None or not placed:
        return [f"{refused.status}: {refused.value}"]
    return [found.in_file(file) for found in placed]


def _fail(*sentences: str) -> NoReturn:
    for sentence in sentences:
        print(f"payment-sandbox: {sentence}", file=sys.stderr)
    sys.exit(2)


def show(found: Found, as_json: bool, readable: "Callable[[Found], str]") -> None:
    """Print a response."""
    try:
        print(json.dumps(found, indent=2) if as_json else readable(found))
    except (KeyError, TypeError, AttributeError):
        _fail("the server is not a payment sandbox")


def scenario_names(context: click.Context, parameter: click.Parameter, begun: str) -> list[str]:
    """Return the ready-made scenarios, for shell completion."""
    from payment_sandbox.scenarios.catalogue import ready_folder, scenario_files

    return [path.stem for path in scenario_files(ready_folder()) if path.stem.startswith(begun)]


@click.command()
@click.argument("url", required=False)
@as_json
def health(url: str | None, as_json: bool) -> None:
    """Check whether a server is ready."""
    if url is not None:
        os.environ["SANDBOX_URL"] = url
    with client() as sandbox:
        show(sandbox.health(), as_json, lambda found: f"{found['status']}, version {found['version']}")


@click.command()
@click.option("--by", help="Advance by a period, such as PT30M.")
@click.option("--to", help="Advance to a time.")
@click.option("--until", type=click.Choice(["next", "idle"]), help="Advance to the next event or until idle.")
@click.option("--freeze", is_flag=True, help="Freeze the clock.")
@click.option("--rate", type=float, help="Run the clock at this many seconds per second.")
@as_json
def clock(freeze: bool, rate: float | None, as_json: bool, **aim: str | None) -> None:
    """Show the clock, or move it."""
    is_aimed = any(value is not None for value in aim.values())
    if is_aimed + freeze + (rate is not None) > 1 or sum(value is not None for value in aim.values()) > 1:
        raise click.UsageError("give one of: --by, --to, --until, --freeze, --rate")
    with client() as sandbox:
        if is_aimed:
            _show_advance(sandbox.clock.advance(aim["by"], to=aim["to"], until=aim["until"]), as_json)
            return
        if freeze:
            sandbox.clock.freeze()
        if rate is not None:
            sandbox.clock.run(rate)
        show(sandbox.clock.read(), as_json, _clock)


def _clock(found: "Clock") -> str:
    rate = f", {found['rate']:g} seconds per second" if found["mode"] == "running" else ""
    return f"{found['now']} ({found['mode']}{rate})"


def _show_advance(advance: "Advance", as_json: bool) -> None:
    show(advance.answer, as_json, _advanced)


def _advanced(answer: Mapping[str, Any]) -> str:
    lines = [f"{event['at']}  {event['label']}" for event in answer["events"]]
    stopped = " (stopped early, advance again)" if answer.get("stopped") else ""
    return "\n".join([*lines, f"It is now {answer['to']}{stopped}."])


@click.command()
@click.argument("order_id")
@click.argument("actor", type=click.Choice(list(ACTIONS)))
@click.argument("action")
@click.option("--card", help="The test card that pays.")
@click.option("--amount", type=int, help="Amount of a bank credit in cents.")
@click.option("--payment-method", help="The method that a customer chooses.")
@click.option("--issuer-id", help="The bank that a customer chooses.")
@click.option("--authorization", help="How wallet-google authorizes.")
@click.option("--reason", help="Why it fails.")
@as_json
def act(order_id: str, actor: str, action: str, as_json: bool, **how: Any) -> None:
    """Perform an action: act ORDER_ID customer pay."""
    given = {key: value for key, value in how.items() if value is not None}
    with client() as sandbox:
        order = sandbox.act(order_id, actor, action, **given)
        show(order, as_json, lambda found: f"order {found['id']} is {found['status']}")


@click.command()
@click.argument("name_or_file", required=False, shell_complete=scenario_names)
@click.option("--list", "listed", is_flag=True, help="List the available scenarios.")
@as_json
def scenario(name_or_file: str | None, listed: bool, as_json: bool) -> None:
    """Show the active scenario, or switch to one by name or file."""
    if listed and name_or_file is not None:
        raise click.UsageError("give a name, or --list")
    file = Path(name_or_file) if name_or_file is not None and Path(name_or_file).suffix else None
    with client(file) as sandbox:
        if listed:
            show(sandbox.call("GET", "/control/scenarios/"), as_json, _catalogue)
            return
        if name_or_file is None:
            active = sandbox.active_scenario()
        elif file is None:
            active = sandbox.scenario(name_or_file)
        else:
            active = sandbox.scenario_text(_text(file))
        show(active, as_json, lambda found: f"{found['name']}: {found.get('description', 'no description')}")


def _text(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        _fail(f"cannot read {file}: {error.strerror}")


def _catalogue(found: Mapping[str, "list[ScenarioSummary]"]) -> str:
    return "\n".join(f"{item['name']:30} {item['description']}" for item in found["items"])


@click.command()
@click.option("--order-id", help="Only of this order.")
@click.option("--state", type=click.Choice(["pending", "delivered", "failed"]), help="Only in this state.")
@as_json
def webhooks(as_json: bool, order_id: str | None, state: str | None) -> None:
    """List webhooks and how their attempts ended."""
    with client() as sandbox:
        asked = {"order_id": order_id, "state": state}
        show(sandbox.call("GET", "/control/webhooks/", query=asked), as_json, _deliveries)


def _deliveries(found: Mapping[str, "list[Webhook]"]) -> str:
    lines = []
    for item in found["items"]:
        lines.append(f"{item['state']:9} {item['order_id']}  {item['url']}")
        for attempt in item["attempts"]:
            response = attempt["response"]
            outcome = attempt["error"] or (response["status"] if response is not None else "dropped")
            lines.append(f"  {attempt['at']}  {outcome}")
    return "\n".join(lines) or "no webhooks"


@click.command()
@as_json
def projects(as_json: bool) -> None:
    """List the projects of the server."""

    def line(item: "Project") -> str:
        settings = item["settings"]
        return f"{item['project_id']}  {settings['mode']}  {item['clock']['now']}  {settings['name']}"

    with client() as sandbox:
        found = sandbox.call("GET", "/control/projects/")
        show(found, as_json, lambda found: "\n".join(map(line, found["items"])))


@click.command()
@as_json
def reset(as_json: bool) -> None:
    """Reset the project to its initial state."""
    with client() as sandbox:
        show(sandbox.reset(), as_json, lambda found: f"project {found['project_id']} has been reset")


@click.command()
@as_json
def watch(as_json: bool) -> None:
    """Show the project's events as they happen, until Ctrl-C."""
    with client() as sandbox:
        for event in sandbox.events():
            line = json.dumps(event.data) if as_json else f"{event.kind:8} {_happened(event.data)}"
            print(line, flush=True)


def _happened(data: Mapping[str, Any]) -> str:
    label = data.get("label")
    if label is not None:
        return str(label)
    return "  ".join(_plain(value) for value in data.values() if value is not None)


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


@click.command()
@as_json
def review(as_json: bool) -> None:
    """List the integration's mistakes, found in the project's journal; exit code 1 if there are any."""
    from payment_sandbox.client.review import review as look_through

    with client() as sandbox:
        found = look_through(sandbox)
    shown = [finding._asdict() for finding in found]
    show(shown, as_json, lambda _: "\n".join(map(str, found)) or "no mistakes found")
    sys.exit(1 if found else 0)


@click.command()
@click.argument("file", type=click.Path(path_type=Path, exists=True, dir_okay=False))
def replay(file: Path) -> None:
    """Play the evidence of an order again in a new project; exit code 1 if it goes differently.

    The dashboard saves such a file: "Download evidence" on the page of an order.
    """
    from payment_sandbox.client.replaying import EvidenceRefused
    from payment_sandbox.client.replaying import replay as play

    with client() as sandbox:
        try:
            outcome = play(sandbox, json.loads(file.read_text(encoding="utf-8")))
        except (EvidenceRefused, UnicodeDecodeError, json.JSONDecodeError) as refused:
            _fail(f"{file} cannot be played: {refused}")
    for skipped in outcome.skipped[:SKIPPED_SHOWN_MAX]:
        print(f"not compared: {skipped}")
    for difference in outcome.differences:
        print(f"different: {difference}")
    count = len(outcome.differences)
    told = f"{count} difference{'' if count == 1 else 's'}" if count else "all went the same way"
    address = f"{sandbox.base_url}/dashboard/{outcome.project_id}/orders/"
    print(f"{outcome.steps} steps, {told}; see {address}")
    sys.exit(1 if outcome.differences else 0)


COMMANDS = (health, clock, act, scenario, webhooks, projects, reset, watch, review, replay)
