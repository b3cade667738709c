"""The commands that compare another server, recorded traffic, or evidence with the sandbox."""

import json
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NoReturn
from urllib.parse import urlsplit

import click

from payment_sandbox.cli.annotations import GITHUB, JSON, SARIF, Annotation, format_findings, format_option
from payment_sandbox.cli.options import LOOPBACK, Port, SecondsOption, fail, is_server_url, say
from payment_sandbox.cli.remote.calling import CommandRun, remote, trust_authority
from payment_sandbox.kernel.patterns import make_printable

if TYPE_CHECKING:
    from payment_sandbox_verify.inbox import Inbox
    from payment_sandbox_verify.player import Player
    from payment_sandbox_verify.reporting import Comparison
    from payment_sandbox_verify.service import Service
    from payment_sandbox_verify.verifying import Progress

DIFFERENCES_FILE: Final = "differences.yaml"
SKIPPED_SHOWN_MAX: Final = 10
CLEAN_UP_ADVICE: Final = "to cancel or refund them: payment-sandbox verify --url {url} --key ... --clean-up"
CALLS_PER_SECOND: Final = 5.0
file_path = click.Path(path_type=Path, dir_okay=False)


def _parse_method_names(
    context: click.Context, parameter: click.Parameter, values: tuple[str, ...]
) -> dict[str, str]:
    """Parse values such as ``bank-redirect-nl=my-bank-button``."""
    from payment_sandbox.methods import METHOD_NAMES

    names: dict[str, str] = {}
    for text in values:
        name, _, account_name = text.partition("=")
        if name not in METHOD_NAMES or not account_name:
            raise click.BadParameter(
                f"{text!r} is not of the form bank-redirect-nl=my-bank-button; "
                f"the methods are {', '.join(METHOD_NAMES)}"
            )
        if account_name in names.values():
            raise click.BadParameter(f"{account_name!r} can be the name of only one method")
        names[name] = account_name
    return names


method_names = click.option(
    "--method",
    "methods",
    multiple=True,
    callback=_parse_method_names,
    metavar="NAME=THEIRS",
    help="The account's own name for a payment method; may be given several times.",
)


@click.command(
    epilog=f"Example: payment-sandbox verify --url https://api.provider.example --key test_key "
    f"--differences {DIFFERENCES_FILE}"
)
@click.option("--url", required=True, help="The server: the provider's test mode, or another sandbox.")
@click.option("--key", required=True, envvar="SANDBOX_API_KEY", help="The API key of a test account.")
@click.option("--against", metavar="URL", help="A running sandbox to compare with; by default, a new one.")
@click.option("--against-key", default="sandbox-key", show_default=True, help="The API key of that sandbox.")
@click.option("--differences", type=file_path, help="Write settings that reproduce the differences here.")
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
@click.option("--by-hand", is_flag=True, help="Ask you to pay in a browser when a program cannot.")
@click.option("--webhook-url", help="The public URL at which this machine receives the server's webhooks.")
@click.option(
    "--webhook-port",
    type=Port(0, 65535),
    default=0,
    help="The local port that receives webhooks; 0 selects a free port.",
)
@click.option("--patient", is_flag=True, help="Also wait for webhook retries, which takes another half hour.")
@click.option("--ca", type=file_path, help="A file of certificates to trust for HTTPS.")
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
    **options: Any,
) -> None:
    """Play one conversation on a server that implements this API and on a sandbox, and list where their
    answers differ.

    The command creates test orders and cancels or refunds them; it stops if they are not test orders. The
    exit code is 1 if the server deviates from a rule.
    """
    from payment_sandbox_verify.answer import NotVerified
    from payment_sandbox_verify.reporting import compare

    if differences is not None and not differences.absolute().parent.is_dir():
        fail(f"cannot write {differences}: its folder does not exist")
    with (
        _connect("--url", url, key, options) as player,
        _open_reference(against, against_key, options) as other,
        _stop_between_calls(player.service),
    ):
        try:
            if clean_up:
                _clean_up(player.service)
            live = _is_live(player.service, is_test=is_test, yes_live=yes_live)
            compared = compare(player, live=live, against=other, progress=_progress_printer())
        except NotVerified as error:
            fail(make_printable(str(error)))
    _report_and_exit(compared, differences, JSON if as_json else form, has_created_orders=True)


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


def _progress_printer() -> "Progress | None":
    """Return a callback that shows progress and remaining time, if stderr is a terminal."""
    from payment_sandbox.serving.realtime import monotonic_seconds

    if not sys.stderr.isatty():
        return None
    started = monotonic_seconds()

    def show(finished: int, total: int) -> None:
        per_scene = (monotonic_seconds() - started) / max(finished, 1)
        remaining = f", about {per_scene * (total - finished):.0f} s left" if finished else ""
        end = "\n" if finished + 1 == total else ""
        print(f"\r{finished + 1} of {total} scenes{remaining}   ", end=end, file=sys.stderr, flush=True)

    return show


def _clean_up(service: "Service") -> NoReturn:
    """Cancel or refund orders from earlier runs, and exit."""
    from payment_sandbox_verify.samples import MARKER
    from payment_sandbox_verify.service import REFUNDED_OR_VOIDED

    count = len(service.created_orders.read())
    remaining = {
        order_id: remainder
        for order_id, remainder in service.clean_up().items()
        if remainder != REFUNDED_OR_VOIDED
    }
    say(f"{count - len(remaining)} of {count} orders are cleaned up")
    if service.created_orders.has_unknown_order:
        say(f"another order may remain, as a run stopped before its answer: search for {MARKER!r}")
    for order_id, remainder in remaining.items():
        say(f"{order_id}: {remainder}")
    sys.exit(1 if remaining else 0)


@contextmanager
def _stop_between_calls(service: "Service") -> Iterator[None]:
    """On an interrupt, stop between two calls; the file lists the remaining orders."""
    from payment_sandbox_verify.created import CreatedOrders, created_orders_file

    service.created_orders = CreatedOrders(service.url, created_orders_file())

    def interrupt(*signal_and_frame: Any) -> None:
        if service.is_interrupted or not service.is_creating:
            raise KeyboardInterrupt
        service.is_interrupted = True

    handlers = {number: signal.signal(number, interrupt) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    except KeyboardInterrupt:
        count = len(service.created_orders.orders)
        advice = CLEAN_UP_ADVICE.format(url=service.url)
        fail(f"stopped; {count} orders remain; {advice}" if count else "stopped; no orders remain")
    finally:
        service.created_orders.close()
        for number, handler in handlers.items():
            signal.signal(number, handler)


@click.command("import-journal", epilog="Example: payment-sandbox import-journal shop.har")
@click.argument("file", type=file_path)
@click.option("--differences", type=file_path, help="Write settings that reproduce the differences here.")
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
    from payment_sandbox_verify.recorded import compare_recording, read_har
    from payment_sandbox_verify.recording import RecordingRefused

    try:
        recorded = read_har(file, methods)
    except OSError as error:
        fail(f"cannot read {file}: {error.strerror}")
    except RecordingRefused as refused:
        fail(f"{file}: {refused}")
    compared = compare_recording(recorded, file.name, methods)
    _report_and_exit(compared, differences, JSON if as_json else form, has_created_orders=False)


@remote("replay", example="replay evidence.json")
@click.argument("file", type=click.Path(path_type=Path, exists=True, dir_okay=False))
def replay(call: CommandRun, file: Path) -> None:
    """Replay the evidence of an order in a new project; exit code 1 if the result differs.

    To get an evidence file, choose "Download evidence" on an order's page in the dashboard.
    """
    from payment_sandbox_verify.answer import NotVerified
    from payment_sandbox_verify.evidence import replay as replay_evidence
    from payment_sandbox_verify.recording import RecordingRefused, read_document

    try:
        outcome = replay_evidence(call.sandbox, read_document(file))
    except RecordingRefused as refused:
        fail(f"{file} cannot be replayed: {refused}")
    except NotVerified as error:
        fail(make_printable(str(error)))
    count = len(outcome.differences)
    address = f"{call.sandbox.base_url}/dashboard/{outcome.project_id}/orders/"
    result = f"{count} difference{'' if count == 1 else 's'}" if count else "no difference"
    lines = [f"not compared: {skipped}" for skipped in outcome.skipped[:SKIPPED_SHOWN_MAX]]
    lines += [f"different: {difference}" for difference in outcome.differences]
    lines.append(f"{outcome.steps} steps, {result}" + (f"; see {address}" if count else ""))
    call.show({**outcome._asdict(), "address": address}, lambda _: "\n".join(map(make_printable, lines)))
    sys.exit(1 if count else 0)


def _report_and_exit(
    compared: "Comparison", file: Path | None, form: str, *, has_created_orders: bool
) -> NoReturn:
    """Print the results, write the settings, and exit."""
    from payment_sandbox_verify.reporting import format_settings_file, report_data

    if file is not None:
        _write_file(file, format_settings_file(compared, file.name))
    if form == JSON:
        say(*json.dumps(report_data(compared), indent=2).split("\n"))
    elif form in (GITHUB, SARIF):
        annotations = [Annotation(each.rule, each.reason) for each in compared.differing]
        say(*format_findings(annotations, form, "verify"))
    else:
        say(*_report_lines(compared, file, has_created_orders=has_created_orders))
    sys.exit(1 if compared.differing else 0)


def _report_lines(compared: "Comparison", file: Path | None, *, has_created_orders: bool) -> list[str]:
    from payment_sandbox_verify.reporting import describe_clean_up, describe_counts, report_lines

    beside = compared.beside.reports if compared.beside is not None else None
    report = [*report_lines(compared.theirs.reports, beside), "", describe_counts(compared.theirs)]
    report += [describe_clean_up(compared.theirs)] if has_created_orders else []
    report += [f"not compared: {skipped}" for skipped in compared.skipped]
    count = len(compared.differing)
    if count and file is not None:
        remaining = {each.rule for each in compared.not_copied}
        copied = sum(each.rule not in remaining for each in compared.differing)
        report.append(f"{file} reproduces {copied} of {count}: payment-sandbox serve --project {file}")
    elif count:
        report.append(f"--differences {DIFFERENCES_FILE} writes settings for a sandbox with this behaviour")
    return report


def _write_file(file: Path, text: str) -> None:
    try:
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        fail(f"cannot write {file}: {error.strerror}")


@contextmanager
def _open_reference(url: str | None, key: str, options: dict[str, Any]) -> "Iterator[Player | None]":
    if url is None:
        yield None
        return
    with _connect("--against", url, key, {**options, "webhook_url": None, "methods": {}}) as player:
        yield player


@contextmanager
def _connect(option: str, url: str, key: str, options: dict[str, Any]) -> "Iterator[Player]":
    """Connect to the service at a URL, with a payer and an inbox for webhooks."""
    import requests

    from payment_sandbox_verify.player import Player
    from payment_sandbox_verify.service import UNLIMITED, Pace, pause
    from payment_sandbox_verify.verifying import service_at

    if "://" not in url:
        url = f"{'http' if url.partition(':')[0] in LOOPBACK else 'https'}://{url}"
    if not is_server_url(url):
        fail(f"{option}: {url!r} is not an address such as https://api.provider.example")
    is_local = urlsplit(url).hostname in LOOPBACK
    inbox = _open_inbox(options["webhook_url"], options["webhook_port"], is_local=is_local)
    pace = Pace(options["rate"] or (UNLIMITED if is_local else CALLS_PER_SECOND))
    with requests.Session() as session:
        session.trust_env = not is_local
        trust_authority(session, url, options["ca"])
        ask = _ask_person if options["by_hand"] else None
        try:
            service = service_at(url, key, session, pause=pause, pace=pace, ask=ask, names=options["methods"])
            player = Player(service, inbox)
            player.is_patient = options["patient"]
            yield player
        finally:
            if inbox is not None:
                inbox.close()


def _open_inbox(url: str | None, port: int, *, is_local: bool) -> "Inbox | None":
    """Open an inbox for webhooks, which a server on this machine reaches without a tunnel."""
    from payment_sandbox_verify.inbox import Inbox

    if url is None and not is_local:
        return None
    try:
        host = "127.0.0.1" if url is None else "0.0.0.0"  # noqa: S104 (a tunnel ends here)
        return Inbox(host, port, url)
    except OSError as error:
        fail(f"--webhook-port {port}: {error.strerror}")


def _ask_person(task: str) -> bool:
    """Ask a person to do something in a browser."""
    say(f"Please {task}", to_stderr=True)
    return click.confirm("Done?", default=True, err=True)
