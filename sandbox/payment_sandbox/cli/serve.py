"""The command that serves the sandbox."""

import gc
import json
import logging
import os
import secrets
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import nullcontext, suppress
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import urlsplit

import click
from click.core import ParameterSource

from payment_sandbox.cli.options import (
    LOOPBACK,
    PORT_DEFAULT,
    NumberOption,
    Port,
    check_options,
    fail,
    host_names,
    print_once,
    scenario_names,
    trust_of_option,
)
from payment_sandbox.cli.workers import PARENT_VARIABLE, Workers, stop_with_stdin
from payment_sandbox.kernel.masking import mask
from payment_sandbox.kernel.patterns import make_printable
from payment_sandbox.loading import load_module
from payment_sandbox.orders.refusals import Invalid
from payment_sandbox.version import __version__

if TYPE_CHECKING:
    import ssl

    from payment_sandbox.cli.activity import Activity
    from payment_sandbox.projects.settings import Settings
    from payment_sandbox.serving.config import Security
    from payment_sandbox.serving.server import Server

FIRST_ORDER: Final = (
    '{"currency": "EUR", "amount": 1295, "transactions": [{"payment_method": "credit-card"}]}'
)


class Announcement(NamedTuple):
    """The data to print when a server is ready."""

    server: "Server"
    host: str
    token: str | None
    stands_in_for: Sequence[str] = ()  # host names of providers

    @property
    def control_token(self) -> str | None:
        """The token, if other machines can reach the server."""
        return None if self.host in LOOPBACK else self.token


def announce(announcement: Announcement, *, as_json: bool) -> None:
    """Print the address of the server, and a first call."""
    if as_json:
        print_once(f"{json.dumps(_ready_data(announcement))}\n")
    else:
        print_once("".join(f"{line}\n" for line in _ready_lines(announcement)))


def remove_ready(path: Path | None) -> None:
    """Remove the stale ready file left by an earlier start."""
    if path is None:
        return
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        fail(f"--ready-file: cannot replace {path}: {str(error.strerror).lower()}")


def write_ready(path: Path | None, server: "Server") -> None:
    """Write the ready file atomically, because a waiting program may read the file at once."""
    if path is None:
        return
    part = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        part.write_text(json.dumps(_connection_data(server)))
        part.replace(path)
    except OSError as error:
        server.stop()
        fail(f"--ready-file: cannot write {path}: {error.strerror}")


def _connection_data(server: "Server") -> dict[str, Any]:
    """Return the connection data for programs; ``listening`` is the local address, ``url`` may be public."""
    data = {
        "url": server.url,
        "listening": server.local_url,
        "pid": os.getpid(),
        "version": __version__,
    }
    authority = server.security.authority
    return {**data, "ca_file": str(authority)} if authority is not None else data


def _ready_data(announcement: Announcement) -> dict[str, Any]:
    from payment_sandbox.projects.registry import FIRST_API_KEY

    data = {"message": "ready", **_connection_data(announcement.server), "api_key": FIRST_API_KEY}
    if announcement.control_token is not None:
        data["control_token"] = announcement.control_token
    if announcement.server.ignored:
        data["ignored"] = announcement.server.ignored
    return data


def _ready_lines(announcement: Announcement) -> Iterator[str]:
    from payment_sandbox.projects.registry import FIRST_API_KEY  # deferred, for a fast --help

    server = announcement.server
    yield f"Payment sandbox {__version__} on {server.url}, API key {FIRST_API_KEY}. Try:"
    yield ""
    trusted = f"--cacert {server.security.authority} " if server.security.authority is not None else ""
    address = f"{server.url}/v1/orders/"
    yield f"  curl {trusted}-u {FIRST_API_KEY}: {address} -H 'Content-Type: application/json' \\"
    yield f"    -d '{FIRST_ORDER}'"
    yield ""
    yield f"Then open {server.url}/ in a browser: the dashboard shows the order and leads to its payment."
    yield f"Documentation: {server.url}/docs/"
    yield from _tls_lines(server)
    yield from _stand_in_lines(announcement)
    yield from _network_lines(announcement)
    yield from _project_lines(server)
    yield from (f"Ignored: {sentence}." for sentence in server.ignored)
    yield ""


def _tls_lines(server: "Server") -> Iterator[str]:
    from payment_sandbox.serving.binding import LOOPBACK, url_of

    if server.security.tls is None:
        return
    plain = url_of(LOOPBACK, server.port)
    yield f"The same port serves https and http: {url_of('localhost', server.port, 'https')}/, {plain}/"
    authority = server.security.authority
    if authority is not None:
        yield f"Let your browser and your shop trust {authority}; see {server.url}/docs/operation/#https."


def _stand_in_lines(announcement: Announcement) -> Iterator[str]:
    """Yield the commands to redirect a shop from the provider to the sandbox and back."""
    for name in announcement.stands_in_for:
        line = f"127.0.0.1 {name}"
        pattern = line.replace(".", r"\.")
        yield f"The sandbox stands in for {name}. To redirect a shop on this machine, and to undo that:"
        yield f"  echo '{line}' | sudo tee -a /etc/hosts"
        yield f"  sudo sed -i '/^{pattern}$/d' /etc/hosts"


def _network_lines(announcement: Announcement) -> Iterator[str]:
    from payment_sandbox.serving.binding import ALL_INTERFACES, own_addresses, url_of

    if announcement.control_token is None:
        return
    server = announcement.server
    scheme = server.url.partition(":")[0]
    host = announcement.host
    addresses = own_addresses() if host in ALL_INTERFACES else [host]
    urls = [
        url_of(address, server.port, scheme) for address in addresses if ":" in host or ":" not in address
    ]
    if urls:  # 0.0.0.0 covers no IPv6 address
        yield f"Other devices in your network reach the sandbox at {', '.join(urls)};"
        yield "add --allow-host NAME for a host name of your own."
    yield f"What a server that others can reach needs in front: {server.url}/docs/security/"
    yield f"Links to pages and QR codes use {server.url}"
    yield "The dashboard asks for the API key, or, to create projects, for the control token:"
    yield f"  control token {announcement.control_token}"


def _project_lines(server: "Server") -> Iterator[str]:
    projects = server.registry.all()
    if len(projects) > 1:
        yield f"Projects: {', '.join(project.settings.name or project.project_id for project in projects)}."
    about = [_webhook_line(project.settings, is_alone=len(projects) == 1) for project in projects]
    yield from filter(None, about)
    if allowed_hosts := server.services.courier.allowed_hosts:
        yield f"Webhooks go only to {', '.join(allowed_hosts)}; other hosts get none."
    if not any(about):
        yield "Webhooks go to the webhook_url of each order; serve --webhook-url URL sets one for all."


def _webhook_line(settings: "Settings", *, is_alone: bool) -> str | None:
    """Return a sentence on the webhook address of a project; None if only orders set an address."""
    name = "" if is_alone else f" of {settings.name}"
    if settings.forward_to is not None:
        return f"Webhooks{name} wait for payment-sandbox listen, which forwards them to {settings.forward_to}"
    return f"Webhooks{name} go to {settings.webhook_url}" if settings.webhook_url is not None else None


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
SWITCH_INTERVAL_SECONDS: Final = 0.001  # the longest time a thread may hold the interpreter lock
DRAIN_NOTICE_SECONDS: Final = 1.2  # long enough for a load balancer with two health checks per second
WARM_UP_AFTER_SECONDS: Final = 0.5  # so that the first requests are answered first

file_path = click.Path(path_type=Path, dir_okay=False)


@click.command(epilog="Example: payment-sandbox serve --webhook-url http://localhost:3000/webhook")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option(
    "--port", default=PORT_DEFAULT, show_default=True, type=Port(0, 65535), help="Port; 0 picks a free one."
)
@click.option("--webhook-url", help="The webhook address of the first project.")
@click.option(
    "--clock",
    default="running",
    show_default=True,
    help="running, frozen or frozen@<time>, for all projects.",
)
@click.option("--seed", type=NumberOption(0), help="Make identifiers and keys reproducible.")
@click.option(
    "--scenarios",
    "scenario_folders",
    multiple=True,
    type=click.Path(path_type=Path),
    help="A folder of scenario files; may be given several times.",
)
@click.option("--scenario", shell_complete=scenario_names, help="The scenario of the first project.")
@click.option(
    "--allow-host",
    "allow_hosts",
    multiple=True,
    help="Another host name of this server; may be given several times.",
)
@click.option("--public-url", help="The URL at which merchants and payers reach this server.")
@click.option(
    "--stand-in-for",
    "stands_in_for",
    multiple=True,
    callback=host_names,
    metavar="HOST",
    help="The provider's host name, for shops with a hard-coded one; may be given several times.",
)
@click.option("--tls", is_flag=True, help="Serve https in addition to http, with a generated certificate.")
@click.option("--tls-cert", type=file_path, help="Serve https with this certificate.")
@click.option("--tls-key", type=file_path, help="The key of that certificate.")
@click.option("--webhook-ca", type=file_path, help="Additional certificates to trust for webhooks.")
@click.option(
    "--deliver-to",
    multiple=True,
    metavar="HOST",
    help="Send webhooks only to this host; may be given several times.",
)
@click.option("--webhook-insecure", is_flag=True, help="Send webhooks without checking certificates.")
@click.option(
    "--project",
    "project_files",
    multiple=True,
    type=click.Path(path_type=Path),
    help="A YAML file of projects with fixed keys; may be given several times.",
)
@click.option(
    "--state",
    help="An SQLite file for the state, which survives restarts; or the postgresql:// address of a "
    "database that several servers share.",
)
@click.option(
    "--workers",
    default=1,
    show_default=True,
    type=NumberOption(1, 64),
    help="Number of processes on this port; more than one needs a database.",
)
@click.option("--max-projects", type=NumberOption(1), help="Maximum number of projects.")
@click.option("--max-orders", type=NumberOption(1), help="Maximum number of orders per project.")
@click.option("--max-megabytes", type=NumberOption(1), help="Maximum data per project, in megabytes.")
@click.option("--max-megabytes-in-all", type=NumberOption(1), help="Maximum data per server, in megabytes.")
@click.option("--control-token", help="Required to create and list projects.")
@click.option("--ready-file", type=file_path, help="A JSON file to write when ready.")
@click.option("--stop-with-stdin", is_flag=True, help="Stop when standard input ends, as for a test runner.")
@click.option("--log-format", type=click.Choice(["text", "json"]), default="text", show_default=True)
@click.option("--quiet", is_flag=True, help="Print no lines about calls, webhooks and statuses.")
def serve(
    host: str,
    port: int,
    ready_file: Path | None,
    log_format: str,
    quiet: bool,
    workers: int,
    **options: Any,
) -> None:
    """Serve the sandbox until Ctrl-C or SIGTERM; print a line for each call, webhook and status change."""
    hosts = options.pop("stands_in_for")
    port = _apply_provider_options(hosts, port, options) if hosts else port
    check_options(host, {**options, "workers": workers})
    is_child = PARENT_VARIABLE in os.environ
    with_stdin = options.pop("stop_with_stdin") or is_child
    options["control_token"] = _control_token(host, options["control_token"])
    stopped = StopRequest()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stopped.set())
    set_up_logs(log_format)
    remove_ready(None if is_child else ready_file)
    activity = None if quiet else _create_activity(log_format)
    security, is_worker = _security_settings(host, options), workers > 1 or is_child
    server = _start_server(host, port, observer=activity, security=security, is_worker=is_worker, **options)
    others = Workers(workers - 1, server.port, options["control_token"])
    if with_stdin:
        stop_with_stdin(stopped.set)
    if not is_child:
        write_ready(ready_file, server)
        announcement = Announcement(server, host, options["control_token"], hosts)
        announce(announcement, as_json=log_format == "json")
    with activity or nullcontext():
        others.start()
        _warm_up(server, stopped)
        stopped.wait()
        others.terminate()
        server.stop(DRAIN_NOTICE_SECONDS)
        others.join()


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


def _control_token(host: str, token: str | None) -> str | None:
    """Return the token from the option, or a new token if other machines can reach the server."""
    return token or (None if host in LOOPBACK else secrets.token_urlsafe(24))


def _warm_up(server: "Server", stopped: StopRequest) -> None:
    """Preload the modules for pages and threads shortly after startup."""
    if not stopped.wait(WARM_UP_AFTER_SECONDS):
        server.app.parts()
        load_module("requests")  # sends webhooks


def _name_variables(command: click.Command) -> None:
    """Give every option an environment variable, because service containers in CI take no arguments."""
    for parameter in command.params:
        if isinstance(parameter, click.Option) and parameter.envvar is None:
            parameter.envvar = f"SANDBOX_{parameter.opts[0].removeprefix('--').replace('-', '_').upper()}"


_name_variables(serve)


def _create_activity(log_format: str) -> "Activity":
    from payment_sandbox.cli.activity import (
        Activity,
        format_json,
        text_formatter,
    )  # deferred, for a fast --help

    return Activity(format_json if log_format == "json" else text_formatter(is_coloured=sys.stdout.isatty()))


def _start_server(
    host: str,
    port: int,
    *,
    max_projects: int | None,
    max_orders: int | None,
    max_megabytes: int | None,
    max_megabytes_in_all: int | None,
    **options: Any,
) -> "Server":
    gc.disable()  # while modules load, because collection would only cost time
    from payment_sandbox.projects.quotas import MEGABYTE, Quotas
    from payment_sandbox.serving.binding import PortInUse  # deferred, for a fast --help
    from payment_sandbox.serving.config import ServerConfig
    from payment_sandbox.serving.http import raise_open_files_limit
    from payment_sandbox.serving.server import build
    from payment_sandbox.storage.codec import NotStored, StateRefused

    raise_open_files_limit()
    bytes_max, bytes_max_in_all = (each and each * MEGABYTE for each in (max_megabytes, max_megabytes_in_all))
    quotas = Quotas(max_projects, max_orders, bytes_max, bytes_max_in_all)
    try:
        server = build(ServerConfig(host=host, port=port, freeze_memory=True, quotas=quotas, **options))
    except PortInUse as refused:
        fail(_add_occupant(str(refused), host, port))
    except StateRefused as refused:
        fail(str(refused))
    except Invalid as invalid:
        fail(*(violation.as_line() for violation in invalid.violations))
    gc.freeze()
    gc.enable()
    sys.setswitchinterval(SWITCH_INTERVAL_SECONDS)
    try:
        server.start()
    except NotStored as failed:
        fail(str(failed))
    return server


def _add_occupant(refused: str, host: str, port: int) -> str:
    """Add a sentence to the refusal of a port in use if a sandbox occupies the port."""
    from payment_sandbox.client.client import SandboxClient  # deferred: rarely needed
    from payment_sandbox.serving.binding import ALL_INTERFACES, LOOPBACK, url_of

    url = url_of(LOOPBACK if host in ALL_INTERFACES else host, port)
    sandbox = SandboxClient(url, "", timeout_seconds=1.0)
    try:
        version = sandbox.health()["version"]
    except Exception:  # any failure means that the program is not a sandbox
        return refused
    finally:
        sandbox.close()
    return f"{refused}; a payment sandbox, version {version}, already runs at {url}/"


def _apply_provider_options(hosts: Sequence[str], port: int, options: dict[str, Any]) -> int:
    """Set the TLS, host name and URL options for replacing a provider; return the port."""
    options["tls"] = options["tls_cert"] is None
    options["allow_hosts"] = (*options["allow_hosts"], *hosts)
    source = click.get_current_context().get_parameter_source("port")
    port = HTTPS_PORT if source is ParameterSource.DEFAULT else port
    if options["public_url"] is None and port:
        options["public_url"] = f"https://{hosts[0]}" + ("" if port == HTTPS_PORT else f":{port}")
    return port


def _security_settings(host: str, options: dict[str, Any]) -> "Security":
    """Return the TLS settings of the server and its webhooks; remove their options."""
    from payment_sandbox.serving.config import Security
    from payment_sandbox.serving.tls import CertificateRefused, authority_file

    values = [options.pop(name) for name in ("tls", "tls_cert", "tls_key", "webhook_ca", "webhook_insecure")]
    is_generated, certificate, key, receivers, is_insecure = values
    try:
        tls = _server_tls_context(host, is_generated, certificate, key, options)
    except CertificateRefused as refused:
        fail(str(refused))
    trusted = trust_of_option("--webhook-ca", receivers, is_insecure=is_insecure)
    return Security(tls, trusted, authority_file() if is_generated else None)


def _server_tls_context(
    host: str, is_generated: bool, certificate: Path | None, key: Path | None, options: dict[str, Any]
) -> "ssl.SSLContext | None":

    from payment_sandbox.serving.tls import certificate_names, context_from_files, create_own_context

    if is_generated and certificate is not None:
        fail("--tls generates a certificate, and --tls-cert names one: use one of the two")
    if key is not None and certificate is None:
        fail("--tls-key needs --tls-cert, the certificate of the key")
    if certificate is not None:
        return context_from_files(certificate, key)
    if not is_generated:
        return None
    public_host = urlsplit(options["public_url"] or "").hostname
    return create_own_context(certificate_names(host, public_host, options["allow_hosts"]))
