"""The command line: ``payment-sandbox serve`` and the other commands."""

import gc
import json
import os
import secrets
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Any, NoReturn
from urllib.parse import urlsplit

import click

from payment_sandbox.cli.logs import set_up as set_up_logs
from payment_sandbox.cli.remote import COMMANDS, scenario_names
from payment_sandbox.kernel.patterns import Pattern
from payment_sandbox.orders.refusals import Invalid
from payment_sandbox.version import __version__

if TYPE_CHECKING:
    from payment_sandbox.serving.server import Server

PROGRAM = "payment-sandbox"
HOST_NAME = Pattern(r"[A-Za-z0-9_.-]+|[0-9A-Fa-f:.]+")  # or an IPv6 address
WARM_UP_AFTER_SECONDS = 0.5  # first requests go first
LOOPBACK = ("127.0.0.1", "localhost", "::1")


@click.group(invoke_without_command=True)
@click.version_option(__version__, prog_name="payment-sandbox")
@click.pass_context
def commands(context: click.Context) -> None:
    """A sandbox of a payment-orders API, with a clock that you control."""
    if context.invoked_subcommand is None:
        print(context.get_help(), file=sys.stderr)
        context.exit(2)


@commands.command()
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option(
    "--port", default=8080, show_default=True, type=click.IntRange(0, 65535), help="Port; 0 picks a free one."
)
@click.option(
    "--clock",
    default="running",
    show_default=True,
    help="running, frozen or frozen@<time>, for all projects.",
)
@click.option("--seed", type=click.IntRange(0), help="Makes identifiers and keys the same in every run.")
@click.option(
    "--scenarios",
    "scenario_folders",
    multiple=True,
    type=click.Path(path_type=Path),
    help="A folder of scenario files; may be given several times.",
)
@click.option("--scenario", shell_complete=scenario_names, help="The scenario of the first project.")
@click.option("--allow-host", "allow_hosts", multiple=True, help="Another host name of this server.")
@click.option("--public-url", help="The URL at which merchants and payers reach this server.")
@click.option(
    "--project",
    "project_files",
    multiple=True,
    type=click.Path(path_type=Path),
    help="A YAML file of projects with fixed keys; may be given several times.",
)
@click.option(
    "--state",
    type=click.Path(path_type=Path, dir_okay=False),
    help="An SQLite file that stores every change, to restart from.",
)
@click.option("--control-token", envvar="SANDBOX_CONTROL_TOKEN", help="Required to create and list projects.")
@click.option(
    "--ready-file", type=click.Path(path_type=Path, dir_okay=False), help="A JSON file to write when ready."
)
@click.option("--log-format", type=click.Choice(["text", "json"]), default="text", show_default=True)
def serve(
    host: str,
    port: int,
    ready_file: Path | None,
    log_format: str,
    **options: Any,
) -> None:
    """Serve the sandbox until Ctrl-C or SIGTERM."""
    _check(options["clock"], options["public_url"], options["allow_hosts"])
    if host not in LOOPBACK and not options["control_token"]:
        options["control_token"] = secrets.token_urlsafe(24)
    stopped = Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stopped.set())
    set_up_logs(log_format)
    server = _start(host, port, **options)
    if ready_file is not None:
        _write_ready(ready_file, server)
    _announce(server, options["control_token"] if host not in LOOPBACK else None, log_format)
    if not stopped.wait(WARM_UP_AFTER_SECONDS):
        from payment_sandbox.serving.wire import warm_up  # here, so that --help is fast

        warm_up()
        stopped.wait()
    server.stop()


def _start(host: str, port: int, **options: Any) -> "Server":
    gc.disable()  # until everything is loaded: collecting takes time and would find nothing
    from payment_sandbox.serving.binding import PortTaken  # here, so that --help is fast
    from payment_sandbox.serving.http import raise_open_files_limit
    from payment_sandbox.serving.server import Server
    from payment_sandbox.storage.format import StateRefused

    raise_open_files_limit()
    try:
        server = Server(host, port, freeze_memory=True, **options)
    except (PortTaken, StateRefused) as refused:
        _fail(str(refused))
    except Invalid as invalid:
        _fail("\npayment-sandbox: ".join(violation.placed() for violation in invalid.violations))
    gc.freeze()
    gc.enable()
    server.start()
    return server


def _check(clock: str, public_url: str | None, allow_hosts: Sequence[str]) -> None:
    from payment_sandbox.projects.clock import ClockStart

    try:
        ClockStart.parse(clock)
    except Invalid as invalid:
        _fail(f"--{invalid}")
    if public_url is not None and not _is_address(public_url):
        _fail(f"--public-url: {public_url!r} is not a URL such as http://pay.example:8080")
    for name in allow_hosts:
        if HOST_NAME.fullmatch(name) is None:
            _fail(f"--allow-host: {name!r} is not a host name such as pay.example, without scheme and port")


def _is_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        return False
    is_plain = not parts.query and not parts.fragment
    return parts.scheme in ("http", "https") and bool(parts.hostname) and is_plain


def _announce(server: "Server", control_token: str | None, log_format: str) -> None:
    from payment_sandbox.projects.registry import FIRST_API_KEY  # here, so that --help is fast

    if log_format == "json":
        made = {"control_token": control_token} if control_token is not None else {}
        ready = {"message": "ready", **_ready(server), "api_key": FIRST_API_KEY, **made}
        print(json.dumps(ready), flush=True)
        return
    lines = [
        f"Payment sandbox {__version__} on {server.url}, API key {FIRST_API_KEY}. Try:",
        "",
        f"  curl -u {FIRST_API_KEY}: {server.url}/v1/orders/ -H 'Content-Type: application/json' \\",
        '    -d \'{"currency": "EUR", "amount": 1295, "transactions": [{"payment_method": "credit-card"}]}\'',
        "",
        f"Then open {server.url}/ in a browser: the dashboard shows the order and leads to its payment.",
        f"Documentation: {server.url}/docs/",
    ]
    if control_token is not None:
        lines.append(
            f"Other devices in your network reach it at {server.url}, too; pages and codes lead there."
        )
        lines.append(
            "The dashboard asks for the API key, or for the control token, which creating projects needs:"
        )
        lines.append(f"  control token {control_token}")
    print("\n".join(lines), flush=True)


def _ready(server: "Server") -> dict[str, Any]:
    """How programs reach the server; ``listening`` is the local address, ``url`` may be public."""
    return {
        "url": server.url,
        "listening": server.local_url,
        "pid": os.getpid(),
        "version": __version__,
    }


def _write_ready(path: Path, server: "Server") -> None:
    """Write the file atomically, because a waiting program may read it at once."""
    part = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        part.write_text(json.dumps(_ready(server)))
        part.replace(path)
    except OSError as error:
        server.stop()
        _fail(f"--ready-file: cannot write {path}: {error.strerror}")


@commands.command()
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
def check(files: tuple[Path, ...]) -> None:
    """Check scenario files: print every mistake, and warn about rules that never match."""
    from payment_sandbox.operations.review_scenario import check_file

    wrong = 0
    for file in files:
        try:
            scenario, warnings = check_file(file)
            lines = [warning._replace(message=f"warning: {warning.message}").placed() for warning in warnings]
            print("\n".join([*lines, f"{file}: {scenario.name} is fine, rules: {len(scenario.rules)}"]))
        except Invalid as invalid:
            wrong += 1
            print("\n".join(violation.placed() for violation in invalid.violations))
    sys.exit(1 if wrong else 0)


@commands.command()
def openapi() -> None:
    """Print the description of both APIs, without a server."""
    from payment_sandbox.serving.server import description

    print(description())


@commands.command()
def schema() -> None:
    """Print the JSON Schema of scenario files, for editors."""
    from payment_sandbox.operations.choose_scenario import file_schema

    print(json.dumps(file_schema(), indent=2))


@commands.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print the script for shell completion: eval "$(payment-sandbox completion bash)"."""
    from click.shell_completion import get_completion_class

    kind = get_completion_class(shell)
    assert kind is not None, "click knows all three"
    print(kind(commands, {}, PROGRAM, f"_{PROGRAM.replace('-', '_')}_COMPLETE".upper()).source())


for _command in COMMANDS:
    commands.add_command(_command)


def _fail(sentence: str) -> NoReturn:
    print(f"payment-sandbox: {sentence}", file=sys.stderr)
    sys.exit(2)


def main() -> NoReturn:
    """Run a command; report usage errors in one line."""
    try:
        code = commands.main(prog_name=PROGRAM, standalone_mode=False)
    except click.ClickException as error:
        _fail(" ".join(error.format_message().split()))
    except OSError as error:
        _fail(f"cannot write: {error.strerror}")
    except click.Abort:
        sys.exit(1)
    sys.exit(code if isinstance(code, int) else 0)
