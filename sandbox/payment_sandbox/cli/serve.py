"""The command that serves the sandbox."""

import json
import logging
import os
import secrets
import signal
import sys
import threading
from collections.abc import Sequence
from contextlib import nullcontext, suppress
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any, Final

import click
from click.core import ParameterSource

from payment_sandbox.cli import activity, server_process
from payment_sandbox.cli.options import LOOPBACK, PORT_DEFAULT, NumberOption, Port, print_once
from payment_sandbox.kernel.masking import mask
from payment_sandbox.kernel.patterns import make_printable
from payment_sandbox.serving.threads import start

log = logging.getLogger("payment_sandbox")


class MaskedFormatter(logging.Formatter):
    """Formats a record as a masked line, with the traceback below it."""

    def __init__(self) -> None:
        super().__init__("%(levelname)s %(name)s: %(message)s")

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 (the name in logging)
        """Return the line of a record, escaped, so that untrusted text cannot forge a line."""
        return make_printable(super().formatMessage(record))

    def format(self, record: logging.LogRecord) -> str:
        """Return the masked text of a record."""
        return "\n".join(map(make_printable, mask(super().format(record)).split("\n")))


class JsonFormatter(logging.Formatter):
    """Formats a record, its traceback included, as one JSON object on one line."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line of a record."""
        data = {
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": mask(record.getMessage()),
        }
        if record.exc_info:
            data["traceback"] = mask(self.formatException(record.exc_info))
        return json.dumps(data)


def set_up_logs(log_format: str) -> None:
    """Log to standard error, uncaught exceptions included."""
    handler = logging.StreamHandler()
    handler.setFormatter(JsonFormatter() if log_format == "json" else MaskedFormatter())
    logging.basicConfig(handlers=[handler], level=logging.WARNING, force=True)
    logging.captureWarnings(capture=True)
    sys.excepthook = _on_uncaught
    threading.excepthook = lambda failed: _on_uncaught(*failed[:3])


def _on_uncaught(*failed: Any) -> None:
    if not issubclass(failed[0], (KeyboardInterrupt, SystemExit)):
        log.critical("unexpected error", exc_info=failed)


HTTPS_PORT: Final = 443
STANDBY_SECONDS: Final = 0.1  # between two looks whether a standby has taken over
WARM_UP_AFTER_SECONDS: Final = 0.5  # so that the first requests are answered first

ONE_FILE: Final = click.Path(path_type=Path, dir_okay=False)
PATHS: Final = click.Path(path_type=Path)


@click.command(epilog="Example: payment-sandbox serve --webhook-url http://localhost:3000/webhook")
@click.option("--host", default="127.0.0.1", help="Address to listen on.")
@click.option("--port", default=PORT_DEFAULT, type=Port(0, 65535), help="Port; 0 picks a free one.")
@click.option("--webhook-url", help="The webhook address of the first project.")
@click.option("--clock", default="running", help="running, frozen or frozen@<time>, for all projects.")
@click.option("--seed", type=NumberOption(0), help="Make identifiers and keys reproducible.")
@click.option(
    "--scenarios", "scenario_folders", multiple=True, type=PATHS, help="A folder of scenario files."
)
@click.option("--scenario", help="The scenario of the first project.")
@click.option("--allow-host", "allow_hosts", multiple=True, help="Another host name of this server.")
@click.option("--public-url", help="The URL at which merchants and payers reach this server.")
@click.option(
    "--stand-in-for",
    "stands_in_for",
    multiple=True,
    metavar="HOST",
    help="The provider's host name, for shops with a hard-coded one.",
)
@click.option("--tls", is_flag=True, help="Serve https instead of http, with a generated certificate.")
@click.option("--webhook-ca", type=ONE_FILE, help="Additional certificates to trust for webhooks.")
@click.option("--deliver-to", multiple=True, metavar="HOST", help="Send webhooks only to this host.")
@click.option("--webhook-insecure", is_flag=True, help="Send webhooks without checking certificates.")
@click.option(
    "--project", "project_files", multiple=True, type=PATHS, help="Projects with fixed keys, in YAML."
)
@click.option("--state", metavar="FILE|URL", help="An SQLite file or a postgresql:// URL for the state.")
@click.option("--max-projects", type=NumberOption(1), help="Maximum number of projects.")
@click.option("--control-token", help="Required to create and list projects.")
@click.option("--ready-file", type=ONE_FILE, help="A JSON file, written once the server is ready.")
@click.option("--stop-with-stdin", is_flag=True, help="Stop when standard input ends, as for a test runner.")
@click.option("--log-format", type=click.Choice(["text", "json"]), default="text")
@click.option("--quiet", is_flag=True, help="Print no lines about calls and webhooks.")
def serve(
    host: str,
    port: int,
    ready_file: Path | None,
    log_format: str,
    quiet: bool,
    **options: Any,
) -> None:
    """Serve the sandbox until Ctrl-C or SIGTERM; print a line for each call and webhook."""
    server_process.check_options(host, options)
    hosts = options.pop("stands_in_for")
    port = _apply_provider_options(hosts, port, options) if hosts else port
    with_stdin = options.pop("stop_with_stdin")
    if not options["control_token"]:  # other machines need one
        options["control_token"] = None if host in LOOPBACK else secrets.token_urlsafe(24)
    stopped = StopRequest()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stopped.set())
    set_up_logs(log_format)
    as_json = log_format == "json"
    printer = None if quiet else activity.Activity(as_json=as_json)
    server = server_process.start_server(host, port, observer=printer, **options)
    if with_stdin:
        start(Thread(target=_stop_with_stdin, args=(stopped,), name="stdin", daemon=True))
    if not _wait_for_place(server, stopped, as_json=as_json):
        server.stop()
        return
    announced = server_process.describe(server, host, options["control_token"], hosts, as_json=as_json)
    with server_process.ready_file(ready_file, server), printer or nullcontext():
        print_once(announced)
        if not stopped.wait(WARM_UP_AFTER_SECONDS):
            server_process.warm_up(server)
        stopped.wait()
        server.stop()


def _wait_for_place(server: "server_process.Server", stopped: "StopRequest", *, as_json: bool) -> bool:
    """Wait while another server has the state; return False if this one is to stop first."""
    if not server.sandbox.is_current():
        print_once(server_process.describe_standby(server, as_json=as_json))
    while not server.sandbox.is_current():
        if stopped.wait(STANDBY_SECONDS):
            return False
    return True


def _remove_stale_file(context: click.Context, _: object, path: Path | None) -> Path | None:
    """Remove the ready file of an earlier start, before any reason not to start is found."""
    if not context.resilient_parsing:
        server_process.remove_ready(path)
    return path


class StopRequest:
    """A request to stop, which signal handlers may set: an ``Event`` would deadlock in its own lock."""

    def __init__(self) -> None:
        self._requests: SimpleQueue[None] = SimpleQueue()  # its put may interrupt any other call
        self._is_set = False

    def set(self) -> None:
        """Request the stop."""
        self._requests.put(None)

    def wait(self, timeout: float | None = None) -> bool:
        """Wait for the request on one thread, and return whether it was made."""
        if not self._is_set:
            with suppress(Empty):
                self._requests.get(timeout=timeout)
                self._is_set = True
        return self._is_set


def _stop_with_stdin(stopped: StopRequest) -> None:
    while os.read(sys.stdin.fileno(), 1):
        pass
    stopped.set()


for option in serve.params:
    if isinstance(option, click.Option):  # service containers in CI take no arguments, but an environment
        option.envvar = f"SANDBOX_{option.opts[0].removeprefix('--').replace('-', '_').upper()}"
        option.show_default = not option.is_flag
        if option.multiple:
            option.help = f"{(option.help or '').rstrip('.')}; may be given several times."
    if option.name == "ready_file":
        option.is_eager, option.callback = True, _remove_stale_file


def _apply_provider_options(hosts: Sequence[str], port: int, options: dict[str, Any]) -> int:
    """Set the TLS, host name and URL options for replacing a provider; return the port."""
    options["tls"] = True
    options["allow_hosts"] = (*options["allow_hosts"], *hosts)
    source = click.get_current_context().get_parameter_source("port")
    port = HTTPS_PORT if source is ParameterSource.DEFAULT else port
    if options["public_url"] is None and port:
        options["public_url"] = f"https://{hosts[0]}" + ("" if port == HTTPS_PORT else f":{port}")
    return port
