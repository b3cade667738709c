"""The command that serves the sandbox."""

import gc
import secrets
import signal
import sys
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Any, Final

import click

from payment_sandbox.cli.announcing import Announced, announce, forget_ready, write_ready
from payment_sandbox.cli.completions import scenario_names
from payment_sandbox.cli.failing import fail
from payment_sandbox.cli.logs import set_up as set_up_logs
from payment_sandbox.cli.options import LOOPBACK, PORT_DEFAULT, Number, Port, check_options
from payment_sandbox.orders.refusals import Invalid

if TYPE_CHECKING:
    import ssl

    from payment_sandbox.cli.activity import Activity
    from payment_sandbox.serving.server import Security, Server

WARM_UP_AFTER_SECONDS: Final = 0.5  # first requests go first

a_file = click.Path(path_type=Path, dir_okay=False)


@click.command(epilog="Example: payment-sandbox serve --webhook-url http://localhost:3000/webhook")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option(
    "--port", default=PORT_DEFAULT, show_default=True, type=Port(0, 65535), help="Port; 0 picks a free one."
)
@click.option("--webhook-url", help="Where the first project sends webhooks.")
@click.option(
    "--clock",
    default="running",
    show_default=True,
    help="running, frozen or frozen@<time>, for all projects.",
)
@click.option("--seed", type=Number(0), help="Makes identifiers and keys the same in every run.")
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
@click.option("--tls", is_flag=True, help="Speak https besides http, with a certificate of its own.")
@click.option("--tls-cert", type=a_file, help="Speak https with this certificate instead.")
@click.option("--tls-key", type=a_file, help="The key of that certificate.")
@click.option("--webhook-ca", type=a_file, help="Certificates of shops to trust, besides the usual ones.")
@click.option("--webhook-insecure", is_flag=True, help="Do not check the certificates of shops.")
@click.option(
    "--project",
    "project_files",
    multiple=True,
    type=click.Path(path_type=Path),
    help="A YAML file of projects with fixed keys; may be given several times.",
)
@click.option("--state", type=a_file, help="An SQLite file that stores every change, to restart from.")
@click.option("--control-token", help="Required to create and list projects.")
@click.option("--ready-file", type=a_file, help="A JSON file to write when ready.")
@click.option("--log-format", type=click.Choice(["text", "json"]), default="text", show_default=True)
@click.option("--quiet", is_flag=True, help="Print no lines about calls, webhooks and statuses.")
def serve(
    host: str,
    port: int,
    ready_file: Path | None,
    log_format: str,
    quiet: bool,
    **options: Any,
) -> None:
    """Serve the sandbox until Ctrl-C or SIGTERM; print a line for each call, webhook and status change."""
    check_options(host, options)
    security = _security(host, options)
    is_local = host in LOOPBACK
    if not is_local and not options["control_token"]:
        options["control_token"] = secrets.token_urlsafe(24)
    stopped = Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stopped.set())
    set_up_logs(log_format)
    forget_ready(ready_file)
    activity = None if quiet else _activity(log_format)
    server = _start(host, port, observer=activity, security=security, **options)
    write_ready(ready_file, server)
    announced = Announced(server, host, None if is_local else options["control_token"])
    announce(announced, as_json=log_format == "json")
    if activity is not None:
        activity.start()
    if not stopped.wait(WARM_UP_AFTER_SECONDS):
        from payment_sandbox.serving.wire import warm_up  # here, so that --help is fast

        warm_up()
        stopped.wait()
    server.stop()
    if activity is not None:
        activity.stop()


def _name_variables(command: click.Command) -> None:
    """Let every option be given in the environment, because service containers in CI take no arguments."""
    for parameter in command.params:
        if isinstance(parameter, click.Option) and parameter.envvar is None:
            parameter.envvar = f"SANDBOX_{parameter.opts[0].removeprefix('--').replace('-', '_').upper()}"


_name_variables(serve)


def _activity(log_format: str) -> "Activity":
    from payment_sandbox.cli.activity import Activity, as_json, as_text  # here, so that --help is fast

    return Activity(as_json if log_format == "json" else as_text(is_coloured=sys.stdout.isatty()))


def _start(host: str, port: int, **options: Any) -> "Server":
    gc.disable()  # until everything is loaded: collecting takes time and would find nothing
    from payment_sandbox.serving.binding import PortTaken  # here, so that --help is fast
    from payment_sandbox.serving.http import raise_open_files_limit
    from payment_sandbox.serving.server import Server
    from payment_sandbox.storage.format import StateRefused

    raise_open_files_limit()
    try:
        server = Server(host, port, freeze_memory=True, **options)
    except PortTaken as refused:
        fail(_with_neighbour(str(refused), host, port))
    except StateRefused as refused:
        fail(str(refused))
    except Invalid as invalid:
        fail(*(violation.placed() for violation in invalid.violations))
    gc.freeze()
    gc.enable()
    server.start()
    return server


def _with_neighbour(refused: str, host: str, port: int) -> str:
    """The refusal of a taken port, and whether a sandbox has it."""
    from payment_sandbox.client.client import SandboxClient  # here, because most servers find their port free
    from payment_sandbox.serving.binding import EVERYWHERE, LOOPBACK, url_of

    url = url_of(LOOPBACK if host in EVERYWHERE else host, port)
    sandbox = SandboxClient(url, "", timeout_seconds=1.0)
    try:
        version = sandbox.health()["version"]
    except Exception:  # whatever it is, it is no sandbox
        return refused
    finally:
        sandbox.close()
    return f"{refused}; a payment sandbox, version {version}, already runs there: {url}/"


def _security(host: str, options: dict[str, Any]) -> "Security":
    """The TLS of the server and of its webhooks; takes their options out."""
    from payment_sandbox.serving.server import Security
    from payment_sandbox.serving.sessions import Trust
    from payment_sandbox.serving.tls import CertificateRefused, authority_file

    given = [options.pop(name) for name in ("tls", "tls_cert", "tls_key", "webhook_ca", "webhook_insecure")]
    wants_own, certificate, key, receivers, is_insecure = given
    trusted = None
    try:
        tls = _server_tls(host, wants_own, certificate, key, options)
    except CertificateRefused as refused:
        fail(str(refused))
    try:
        if receivers is not None or is_insecure:
            trusted = Trust.of(receivers, insecure=is_insecure)
    except CertificateRefused as refused:
        fail(f"--webhook-ca: {refused}")
    return Security(tls, trusted, authority_file() if wants_own else None)


def _server_tls(
    host: str, wants_own: bool, certificate: Path | None, key: Path | None, options: dict[str, Any]
) -> "ssl.SSLContext | None":
    from urllib.parse import urlsplit

    from payment_sandbox.serving.tls import given_context, own_context, served_names

    if wants_own and certificate is not None:
        fail("--tls makes a certificate, and --tls-cert gives one: use one of the two")
    if key is not None and certificate is None:
        fail("--tls-key needs --tls-cert, the certificate that it belongs to")
    if certificate is not None:
        return given_context(certificate, key)
    if not wants_own:
        return None
    public_host = urlsplit(options["public_url"] or "").hostname
    return own_context(served_names(host, public_host, options["allow_hosts"]))
