"""The terminal side of the commands: progress, questions, reports and exit codes."""

import json
import signal
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NoReturn
from urllib.parse import urlsplit

import click
import requests

from payment_sandbox.cli.options import LOOPBACK, fail, is_server_url, say
from payment_sandbox.cli.remote.command_run import trust_authority
from payment_sandbox.kernel.patterns import make_printable
from payment_sandbox.serving.realtime import monotonic_seconds
from payment_sandbox_verify.answer import NotVerified
from payment_sandbox_verify.cleaning import REFUNDED_OR_VOIDED, clean_up
from payment_sandbox_verify.created import CreatedOrders, created_orders_file
from payment_sandbox_verify.inbox import Inbox
from payment_sandbox_verify.payers import ManualPayer
from payment_sandbox_verify.player import Player
from payment_sandbox_verify.reporting import (
    Comparison,
    compare,
    format_settings_file,
    report_data,
    report_lines,
)
from payment_sandbox_verify.samples import MARKER
from payment_sandbox_verify.service import UNLIMITED, Service, pause
from payment_sandbox_verify.verifying import Progress, is_live

CLEAN_UP_ADVICE: Final = "to cancel or refund them: payment-sandbox verify --url {url} --key ... --clean-up"
CALLS_PER_SECOND: Final = 5.0


def verify(options: Mapping[str, Any], *, as_json: bool) -> NoReturn:
    """Compare a server with a sandbox, or clean up the orders of earlier runs."""
    file = options["differences"]
    if file is not None and not file.absolute().parent.is_dir():
        fail(f"cannot write {file}: its folder does not exist")
    with (
        _connect(options) as player,
        _stop_between_calls(player.service),
    ):
        try:
            if options["clean_up"]:
                _clean_up(player.service)
            live = _is_live(player.service, is_test=options["is_test"], yes_live=options["yes_live"])
            compared = compare(player, live=live, progress=_progress_printer())
        except NotVerified as error:
            fail(make_printable(str(error)))
    _report_and_exit(compared, file, as_json=as_json, by_rule=options["by_rule"])


def _is_live(service: Service, *, is_test: bool, yes_live: bool) -> bool:
    """Whether the server may be in live mode; exits unless the options allow that."""
    live_mode = is_live(service)
    if live_mode is None and not (is_test or yes_live):
        fail(f"the orders of {service.url} have no flag for test mode: add --test, or --yes-live")
    live = not is_test if live_mode is None else live_mode
    if live and not yes_live:
        fail(f"{service.url} does not create test orders; to continue in live mode, add --yes-live")
    return live


def _progress_printer() -> Progress | None:
    """Return a callback that shows progress and remaining time, if stderr is a terminal."""
    if not sys.stderr.isatty():
        return None
    started = monotonic_seconds()

    def show(finished: int, total: int) -> None:
        per_scene = (monotonic_seconds() - started) / max(finished, 1)
        remaining = f", about {per_scene * (total - finished):.0f} s left" if finished else ""
        end = "\n" if finished + 1 == total else ""
        print(f"\r{finished + 1} of {total} scenes{remaining}   ", end=end, file=sys.stderr, flush=True)

    return show


def _clean_up(service: Service) -> NoReturn:
    """Cancel or refund orders from earlier runs, and exit."""
    count = len(service.created_orders.read())
    remaining = {key: rest for key, rest in clean_up(service).items() if rest != REFUNDED_OR_VOIDED}
    say(f"{count - len(remaining)} of {count} orders are cleaned up; if a run was killed during a call,")
    say(f"one more may remain: search for {MARKER!r}")
    say(*(f"{order_id}: {make_printable(rest)}" for order_id, rest in remaining.items()))
    sys.exit(1 if remaining else 0)


@contextmanager
def _stop_between_calls(service: Service) -> Iterator[None]:
    """On an interrupt, stop between two calls; the file lists the remaining orders."""
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


def _report_and_exit(compared: Comparison, file: Path | None, *, as_json: bool, by_rule: bool) -> NoReturn:
    """Print the results, write the settings, and exit."""
    if file is not None:
        _write_file(file, format_settings_file(compared, file.name))
    if as_json:
        say(*json.dumps(report_data(compared), indent=2).split("\n"))
    else:
        say(*report_lines(compared, file, by_rule=by_rule))
    sys.exit(1 if compared.differing else 0)


def _write_file(file: Path, text: str) -> None:
    try:
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        fail(f"cannot write {file}: {error.strerror}")


@contextmanager
def _connect(options: Mapping[str, Any]) -> Iterator[Player]:
    """Connect to the service, with a payer and an inbox for webhooks."""
    url, key = options["url"], options["key"]
    if "://" not in url:
        url = f"{'http' if url.partition(':')[0] in LOOPBACK else 'https'}://{url}"
    if not is_server_url(url):
        fail(f"--url: {options['url']!r} is not an address such as https://api.provider.example")
    if not key:
        fail("--key: is empty; it must be the API key of a test account")
    is_local = urlsplit(url).hostname in LOOPBACK
    inbox = _open_inbox(options["webhook_url"], options["webhook_port"], is_local=is_local)
    with requests.Session() as session:
        session.trust_env = not is_local
        trust_authority(session, url, options["ca"])
        try:
            rate = options["rate"] or (UNLIMITED if is_local else CALLS_PER_SECOND)
            service = Service(url, key, session, pause=pause, per_second=rate)
            service.names = options["methods"]
            if options["by_hand"]:
                service.payer = ManualPayer(service.fetch_page, _ask_person)
            player = Player(service, inbox)
            player.is_patient = options["patient"]
            yield player
        finally:
            if inbox is not None:
                inbox.close()


def _open_inbox(url: str | None, port: int, *, is_local: bool) -> Inbox | None:
    """Open an inbox for webhooks, which a server on this machine reaches without a tunnel."""
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
