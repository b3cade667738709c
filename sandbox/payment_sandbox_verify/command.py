"""The commands that compare another server, or its recorded traffic, with the sandbox."""

import json
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NoReturn
from urllib.parse import urlsplit

import click

from payment_sandbox.cli.noted import GITHUB, JSON, SARIF, Annotation, format_findings, format_option
from payment_sandbox.cli.options import LOOPBACK, Port, SecondsOption, fail, is_server_url, say
from payment_sandbox.cli.remote.calling import trust_authority
from payment_sandbox.kernel.patterns import printable

if TYPE_CHECKING:
    from payment_sandbox.client.receiver import WebhookReceiver
    from payment_sandbox_verify.comparing import Compared
    from payment_sandbox_verify.probing import Progress
    from payment_sandbox_verify.service import Service

DIFFERENCES: Final = "differences.yaml"
CLEAN_UP: Final = "to cancel or refund them: payment-sandbox verify --url {url} --key ... --clean-up"
RATE: Final = 5.0
a_file = click.Path(path_type=Path, dir_okay=False)


def _names(context: click.Context, parameter: click.Parameter, given: tuple[str, ...]) -> dict[str, str]:
    """Parse values such as ``bank-redirect-nl=my-bank-button``."""
    from payment_sandbox.methods import NAMES

    names: dict[str, str] = {}
    for text in given:
        name, _, theirs = text.partition("=")
        if name not in NAMES or not theirs:
            raise click.BadParameter(
                f"{text!r} is not of the form bank-redirect-nl=my-bank-button; methods are {', '.join(NAMES)}"
            )
        if theirs in names.values():
            raise click.BadParameter(f"{theirs!r} can be the name of only one method")
        names[name] = theirs
    return names


method_names = click.option(
    "--method",
    "methods",
    multiple=True,
    callback=_names,
    metavar="NAME=THEIRS",
    help="The account's own name of a payment method; may be given several times.",
)


@click.command(
    epilog=f"Example: payment-sandbox verify --url https://api.provider.example --key test_key "
    f"--differences {DIFFERENCES}"
)
@click.option("--url", required=True, help="The server: the provider's test mode, or another sandbox.")
@click.option("--key", required=True, envvar="SANDBOX_API_KEY", help="The API key of a test account.")
@click.option("--against", metavar="URL", help="A running sandbox to compare with; by default, a new one.")
@click.option("--against-key", default="sandbox-key", show_default=True, help="The API key of that sandbox.")
@click.option("--differences", type=a_file, help="Write settings that reproduce the differences here.")
@click.option("--clean-up", is_flag=True, help="Only clean up the orders that remain from earlier runs.")
@click.option("--yes-live", is_flag=True, help="Continue in live mode, without moving money.")
@click.option(
    "--test", "is_test", is_flag=True, help="The server is in test mode, but its orders have no flag for it."
)
@click.option(
    "--rate",
    type=SecondsOption(0.1, 1000),
    help="Maximum calls per second; 5 by default, unlimited for a server on this machine.",
)
@click.option("--by-hand", is_flag=True, help="Ask you to pay in a browser where a program cannot pay.")
@click.option("--webhook-url", help="The public URL at which the server reaches this machine with webhooks.")
@click.option(
    "--webhook-port",
    type=Port(0, 65535),
    default=0,
    help="The local port that receives webhooks; 0 selects a free port.",
)
@click.option("--patient", is_flag=True, help="Also wait for webhook retries, which takes another half hour.")
@click.option("--ca", type=a_file, help="A file of certificates to trust for HTTPS.")
@method_names
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON.")
@format_option
def verify(
    url: str,
    key: str,
    against: str | None,
    against_key: str,
    differences: Path | None,
    yes_live: bool,
    is_test: bool,
    as_json: bool,
    form: str,
    clean_up: bool,
    **how: Any,
) -> None:
    """Check a server of this API against every rule that a caller can observe, and list the differences.

    The command creates test orders and cancels or refunds them; it stops if they are not test orders. The
    exit code is 1 if a rule differs.
    """
    from payment_sandbox_verify.checks import NotVerified
    from payment_sandbox_verify.comparing import compare

    if differences is not None and not differences.absolute().parent.is_dir():
        fail(f"cannot write {differences}: its folder does not exist")
    with (
        _service("--url", url, key, how) as service,
        _open_reference(against, against_key, how) as other,
        _stop_between_calls(service),
    ):
        try:
            if clean_up:
                _clean_up(service)
            live = _is_live(service, is_test=is_test, yes_live=yes_live)
            compared = compare(service, live=live, against=other, progress=_progress())
        except NotVerified as why:
            fail(printable(str(why)))
    _report_and_exit(compared, differences, JSON if as_json else form, made_orders=True)


def _is_live(service: "Service", *, is_test: bool, yes_live: bool) -> bool:
    """Whether the server may be in live mode; exits unless the options allow that."""
    from payment_sandbox_verify.verifying import is_live

    live_mode = is_live(service)
    if live_mode is None and not (is_test or yes_live):
        fail(f"the orders of {service.url} have no flag for test mode: add --test, or --yes-live")
    live = not is_test if live_mode is None else live_mode
    if live and not yes_live:
        fail(f"{service.url} does not create test orders; to continue in live mode, add --yes-live")
    return live


def _progress() -> "Progress | None":
    """Return a callback that shows progress and remaining time, if stderr is a terminal."""
    from payment_sandbox.serving.realtime import monotonic_seconds

    if not sys.stderr.isatty():
        return None
    started = monotonic_seconds()

    def say(done: int, of: int) -> None:
        left = f", about {(monotonic_seconds() - started) / done * (of - done):.0f} s left" if done else ""
        end = "\n" if done + 1 == of else ""
        print(f"\r{done + 1} of {of} probes{left}   ", end=end, file=sys.stderr, flush=True)

    return say


def _clean_up(service: "Service") -> NoReturn:
    """Cancel or refund the orders of earlier runs, and exit."""
    from payment_sandbox_verify.service import MARK, REFUNDED

    count = len(service.created_orders.read())
    remaining = {order_id: left for order_id, left in service.clean_up().items() if left != REFUNDED}
    say(f"{count - len(remaining)} of {count} orders are cleaned up")
    if service.created_orders.is_unsure:
        say(f"another order may remain, as a run stopped before an answer: search for {MARK!r}")
    for order_id, left in remaining.items():
        say(f"{order_id}: {left}")
    sys.exit(1 if remaining else 0)


@contextmanager
def _stop_between_calls(service: "Service") -> Iterator[None]:
    """Stop at an interrupt between two calls; the file lists the remaining orders."""
    from payment_sandbox_verify.created import CreatedOrders, created_orders_file

    service.created_orders = CreatedOrders(service.url, created_orders_file())

    def interrupt(*signal_and_frame: Any) -> None:
        if service.is_interrupted or not service.is_creating:
            raise KeyboardInterrupt
        service.is_interrupted = True

    before = {number: signal.signal(number, interrupt) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    except KeyboardInterrupt:
        count = len(service.created_orders.orders)
        rest = f"{count} orders remain; {CLEAN_UP.format(url=service.url)}" if count else "no orders remain"
        fail(f"stopped; {rest}")
    finally:
        service.created_orders.close()
        for number, handler in before.items():
            signal.signal(number, handler)


@click.command("import-journal", epilog="Example: payment-sandbox import-journal shop.har")
@click.argument("file", type=a_file)
@click.option("--differences", type=a_file, help="Write settings that reproduce the differences here.")
@method_names
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON.")
@format_option
def import_journal(
    file: Path, differences: Path | None, methods: dict[str, str], as_json: bool, form: str
) -> None:
    """Replay the calls of a HAR file in the sandbox, and report where the recorded answers differ.

    A browser or a proxy records the file between your shop and the real service. The exit code is 1 if an
    answer differs.
    """
    from payment_sandbox_verify.comparing import compare_recording
    from payment_sandbox_verify.recorded import HarRefused, read_har

    try:
        recorded = read_har(file, methods)
    except OSError as error:
        fail(f"cannot read {file}: {error.strerror}")
    except HarRefused as refused:
        fail(f"{file}: {refused}")
    compared = compare_recording(recorded, file.name, methods)
    _report_and_exit(compared, differences, JSON if as_json else form, made_orders=False)


def _report_and_exit(compared: "Compared", file: Path | None, form: str, *, made_orders: bool) -> NoReturn:
    """Print the results, write the settings, and exit."""
    from payment_sandbox_verify.comparing import as_data, format_settings_file

    if file is not None:
        _write(file, format_settings_file(compared, file.name))
    if form == JSON:
        say(*json.dumps(as_data(compared), indent=2).split("\n"))
    elif form in (GITHUB, SARIF):
        noted = [Annotation(each.rule, each.how) for each in compared.differing]
        say(*format_findings(noted, form, "verify"))
    else:
        say(*_report(compared, file, made_orders=made_orders))
    sys.exit(1 if compared.differing else 0)


def _report(compared: "Compared", file: Path | None, *, made_orders: bool) -> list[str]:
    from payment_sandbox_verify.comparing import counts, describe_clean_up, lines

    report = [*lines(compared.theirs.reports, compared.ours.reports), "", counts(compared.theirs)]
    report += [describe_clean_up(compared.theirs)] if made_orders else []
    report += [f"not compared: {skipped}" for skipped in compared.skipped]
    count = len(compared.differing)
    if count and file is not None:
        copied = count - len(compared.not_copied)
        report.append(f"{file} reproduces {copied} of {count}: payment-sandbox serve --project {file}")
    elif count:
        report.append(f"--differences {DIFFERENCES} writes settings for a sandbox with this behaviour")
    return report


def _write(file: Path, text: str) -> None:
    try:
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        fail(f"cannot write {file}: {error.strerror}")


@contextmanager
def _open_reference(url: str | None, key: str, how: dict[str, Any]) -> "Iterator[Service | None]":
    if url is None:
        yield None
        return
    with _service("--against", url, key, {**how, "webhook_url": None, "methods": {}}) as service:
        yield service


@contextmanager
def _service(option: str, url: str, key: str, how: dict[str, Any]) -> "Iterator[Service]":
    """Connect to the service at a URL, with a payer and a receiver of its webhooks."""
    import requests

    from payment_sandbox_verify.service import UNLIMITED, Pace, pause
    from payment_sandbox_verify.verifying import service_at

    if "://" not in url:
        url = f"{'http' if url.partition(':')[0] in LOOPBACK else 'https'}://{url}"
    if not is_server_url(url):
        fail(f"{option}: {url!r} is not an address such as https://api.provider.example")
    is_here = urlsplit(url).hostname in LOOPBACK
    receiver = _receiver(how["webhook_url"], how["webhook_port"], is_here=is_here)
    pace = Pace(how["rate"] or (UNLIMITED if is_here else RATE))
    with requests.Session() as session:
        session.trust_env = not is_here
        trust_authority(session, url, how["ca"])
        ask = _ask if how["by_hand"] else None
        try:
            service = service_at(
                url,
                key,
                session,
                pause=pause,
                pace=pace,
                receiver=receiver,
                ask=ask,
                names=how["methods"],
            )
            service.is_patient = how["patient"]
            yield service
        finally:
            if receiver is not None:
                receiver.close()


def _receiver(url: str | None, port: int, *, is_here: bool) -> "WebhookReceiver | None":
    """Open a receiver of webhooks; a server on this machine reaches it without a tunnel."""
    from payment_sandbox.client.receiver import WebhookReceiver

    if url is None and not is_here:
        return None
    try:
        host = "127.0.0.1" if url is None else "0.0.0.0"  # noqa: S104 (a tunnel ends here)
        return WebhookReceiver(host, port, url)
    except OSError as error:
        fail(f"--webhook-port {port}: {error.strerror}")


def _ask(what: str) -> bool:
    """Ask a person to do something in a browser."""
    say(f"Please {what}", to_stderr=True)
    return click.confirm("Done?", default=True, err=True)
