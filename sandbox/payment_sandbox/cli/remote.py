"""The commands that speak to a running server: what a person wants to read, or JSON for a program."""

import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn
from urllib.parse import quote

import click

from payment_sandbox.orders.actions import ACTIONS

URL_DEFAULT = "http://127.0.0.1:8080"
KEY_DEFAULT = "sandbox-key"

as_json = click.option("--json", "as_json", is_flag=True, help="Print the answer as JSON.")


def call(method: str, path: str, body: Any = None, mimetype: str = "application/json") -> Any:
    """One call to the server at ``SANDBOX_URL`` with ``SANDBOX_API_KEY``; a refusal ends the command."""
    with _opened(method, path, body, mimetype) as answer:
        return json.load(answer)


@contextmanager
def _opened(
    method: str, path: str, body: Any = None, mimetype: str = "application/json", timeout: int = 60
) -> Iterator[Any]:
    from http.client import HTTPException
    from urllib.error import HTTPError, URLError
    from urllib.request import ProxyHandler, Request, build_opener

    url = os.environ.get("SANDBOX_URL", URL_DEFAULT).rstrip("/")
    headers = {"Authorization": _authorization(path), "Content-Type": mimetype}
    data = body if isinstance(body, bytes) else json.dumps(body).encode() if body is not None else None
    try:
        request = Request(url + path, data, headers, method=method)  # noqa: S310 (the user's own address)
        with build_opener(ProxyHandler({})).open(request, timeout=timeout) as answer:
            yield answer
    except HTTPError as refused:
        _fail(f"{refused.code}: {_sentence(refused.read())}")
    except (URLError, HTTPException, OSError, ValueError) as error:
        _fail(f"no sandbox answers at {url} ({error}); start one, or set SANDBOX_URL")


def _authorization(path: str) -> str:
    from base64 import b64encode

    token = os.environ.get("SANDBOX_CONTROL_TOKEN")
    if token is not None and path.startswith("/control/projects/"):
        return f"Bearer {token}"
    key = os.environ.get("SANDBOX_API_KEY", KEY_DEFAULT)
    return f"Basic {b64encode(f'{key}:'.encode()).decode()}"


def _sentence(body: bytes) -> str:
    try:
        return str(json.loads(body)["error"]["value"])
    except (ValueError, KeyError, TypeError):
        return "the answer is no sandbox's"


def _fail(sentence: str) -> NoReturn:
    print(f"payment-sandbox: {sentence}", file=sys.stderr)
    sys.exit(2)


def _given(options: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if value is not None}


def show(answer: Any, as_json: bool, readable: Callable[[Any], str]) -> None:
    """Print an answer."""
    if as_json:
        print(json.dumps(answer, indent=2))
        return
    try:
        print(readable(answer))
    except (KeyError, TypeError, AttributeError):
        _fail("the answer is no sandbox's")


def scenario_names(context: click.Context, parameter: click.Parameter, begun: str) -> list[str]:
    """The ready scenarios, for a shell that completes."""
    from payment_sandbox.scenarios.catalogue import ready_folder, scenario_files

    return [path.stem for path in scenario_files(ready_folder()) if path.stem.startswith(begun)]


@click.command()
@click.argument("url", required=False)
@as_json
def health(url: str | None, as_json: bool) -> None:
    """Ask whether a server is ready."""
    if url is not None:
        os.environ["SANDBOX_URL"] = url
    show(call("GET", "/health/"), as_json, lambda found: f"{found['status']}, version {found['version']}")


@click.command()
@click.option("--by", help="Advance by a period, such as PT30M.")
@click.option("--to", help="Advance to a time.")
@click.option("--until", type=click.Choice(["next", "idle"]), help="Advance to the next event, or the last.")
@click.option("--freeze", is_flag=True, help="Let it stand.")
@click.option("--rate", type=float, help="Let it run, this many seconds per second.")
@as_json
def clock(freeze: bool, rate: float | None, as_json: bool, **aims: str | None) -> None:
    """Read the clock, or move it."""
    aim = _given(aims)
    if bool(aim) + freeze + (rate is not None) > 1:
        raise click.UsageError("give one of: --by, --to, --until, --freeze, --rate")
    if aim:
        show(call("POST", "/control/clock/advance/", aim), as_json, _advanced)
    elif freeze or rate is not None:
        change = {"mode": "frozen"} if freeze else {"mode": "running", "rate": rate}
        show(call("PATCH", "/control/clock/", change), as_json, _clock)
    else:
        show(call("GET", "/control/clock/"), as_json, _clock)


def _clock(found: Mapping[str, Any]) -> str:
    rate = f", {found['rate']:g} seconds per second" if found["mode"] == "running" else ""
    return f"{found['now']} ({found['mode']}{rate})"


def _advanced(found: Mapping[str, Any]) -> str:
    lines = [f"{event['at']}  {event['label']}" for event in found["events"]]
    stopped = " (stopped on the way, advance again)" if found.get("stopped") else ""
    return "\n".join([*lines, f"It is {found['to']} now{stopped}."])


@click.command()
@click.argument("order_id")
@click.argument("actor", type=click.Choice(list(ACTIONS)))
@click.argument("action")
@click.option("--card", help="The test card that pays.")
@click.option("--amount", type=int, help="Cents of a bank credit.")
@click.option("--payment-method", help="The method that a customer chooses.")
@click.option("--issuer-id", help="The bank that a customer chooses.")
@click.option("--authorization", help="How wallet-google authorizes.")
@click.option("--reason", help="Why it fails.")
@as_json
def act(order_id: str, actor: str, action: str, as_json: bool, **how: Any) -> None:
    """Let somebody act: act ORDER_ID customer pay."""
    body = {
        "actor": actor,
        "action": action,
        **{key: value for key, value in how.items() if value is not None},
    }
    answer = call("POST", f"/control/orders/{quote(order_id, safe='')}/act/", body)
    show(answer, as_json, lambda found: f"order {found['id']} is {found['status']}")


@click.command()
@click.argument("name_or_file", required=False, shell_complete=scenario_names)
@click.option("--list", "listed", is_flag=True, help="Show the scenarios there are.")
@as_json
def scenario(name_or_file: str | None, listed: bool, as_json: bool) -> None:
    """Show the active scenario, or switch to one by name or file."""
    if listed and name_or_file is not None:
        raise click.UsageError("give a name, or --list")
    if listed:
        show(call("GET", "/control/scenarios/"), as_json, _catalogue)
        return
    answer = _switched(name_or_file) if name_or_file is not None else call("GET", "/control/scenario/")
    show(answer, as_json, lambda found: f"{found['name']}: {found.get('description', 'no description')}")


def _switched(name_or_file: str) -> Any:
    path = Path(name_or_file)
    if path.suffix:
        try:
            return call("PUT", "/control/scenario/", path.read_bytes(), "application/yaml")
        except OSError as error:
            _fail(f"cannot read {path}: {error.strerror}")
    return call("PUT", "/control/scenario/", {"name": name_or_file})


def _catalogue(found: Mapping[str, Any]) -> str:
    return "\n".join(f"{item['name']:30} {item['description']}" for item in found["items"])


@click.command()
@click.option("--order-id", help="Of one order only.")
@click.option("--state", type=click.Choice(["pending", "delivered", "failed"]), help="In one state only.")
@as_json
def webhooks(as_json: bool, **query: str | None) -> None:
    """List webhooks and how their attempts ended."""
    from urllib.parse import urlencode

    asked = urlencode(_given(query))
    show(call("GET", f"/control/webhooks/?{asked}"), as_json, _deliveries)


def _deliveries(found: Mapping[str, Any]) -> str:
    lines = []
    for item in found["items"]:
        lines.append(f"{item['state']:9} {item['order_id']}  {item['url']}")
        lines += [
            f"  {attempt['at']}  {attempt['error'] or (attempt['response'] or {}).get('status', 'dropped')}"
            for attempt in item["attempts"]
        ]
    return "\n".join(lines) or "no webhooks"


@click.command()
@as_json
def projects(as_json: bool) -> None:
    """List the projects of the server."""

    def line(item: Mapping[str, Any]) -> str:
        settings = item["settings"]
        return f"{item['project_id']}  {settings['mode']}  {item['clock']['now']}  {settings['name']}"

    def readable(found: Mapping[str, Any]) -> str:
        return "\n".join(map(line, found["items"]))

    show(call("GET", "/control/projects/"), as_json, readable)


@click.command()
@as_json
def reset(as_json: bool) -> None:
    """Make the project as it was at the start."""
    show(call("POST", "/control/reset/"), as_json, lambda found: f"project {found['project_id']} is fresh")


@click.command()
@as_json
def watch(as_json: bool) -> None:
    """Show all that happens in the project, as it happens; Ctrl-C ends it."""
    with _opened("GET", "/control/events/", timeout=3600) as stream:
        kind = ""
        for raw in stream:
            word, _, text = raw.decode().rstrip("\n").partition(": ")
            kind = text if word == "event" else kind
            if word == "data":
                print(text if as_json else f"{kind:8} {_happened(json.loads(text))}", flush=True)


def _happened(data: Mapping[str, Any]) -> str:
    label = data.get("label")
    return (
        label
        if label is not None
        else "  ".join(_plain(value) for value in data.values() if value is not None)
    )


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


@click.command()
@as_json
def review(as_json: bool) -> None:
    """Say what the integration does wrong, as the project's journal tells; exit code 1 when it does."""
    from payment_sandbox.client.client import SandboxClient, SandboxError
    from payment_sandbox.client.review import review as look_through

    url = os.environ.get("SANDBOX_URL", URL_DEFAULT)
    try:
        found = look_through(SandboxClient(url, os.environ.get("SANDBOX_API_KEY", KEY_DEFAULT)))
    except SandboxError as error:
        _fail(str(error))
    except OSError:
        _fail(f"no sandbox answers at {url}; start one, or set SANDBOX_URL")
    shown = [finding._asdict() for finding in found]
    show(shown, as_json, lambda _: "\n".join(map(str, found)) or "nothing to mend")
    sys.exit(1 if found else 0)


COMMANDS = (health, clock, act, scenario, webhooks, projects, reset, watch, review)
