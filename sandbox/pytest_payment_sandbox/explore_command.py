"""The command that explores a shop without tests."""

import os
import shlex
import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import urljoin, urlsplit

import click
import requests

from payment_sandbox.cli.noted import JSON, format_option
from payment_sandbox.cli.options import fail, is_server_url
from payment_sandbox.extensions import NotInstalled
from pytest_payment_sandbox.outcome import Output, checked, progress_on_stderr, refuse_unplayed, remember

if TYPE_CHECKING:
    from payment_sandbox.serving.server import Server
    from pytest_payment_sandbox.rehearsal.exploring import ChangedSteps
    from pytest_payment_sandbox.rehearsal.shops import ShopExplored

KEY: Final = "sandbox-key"
EXTRA: Final = "pytest-payment-sandbox[explore]"
START_SECONDS: Final = 60.0
LOOK_SECONDS: Final = 0.1


class Options(NamedTuple):
    """What the options say, as text."""

    shop: str
    buy: Path
    sandbox: str
    books: str | None
    pages: tuple[str, ...]
    budget: str
    only: tuple[str, ...]
    goes_on: bool
    report: Path
    as_json: bool
    form: str
    command: tuple[str, ...]

    @property
    def name(self) -> str:
        """What is explored."""
        return f"explore --shop {self.shop} --buy {self.buy}"

    @property
    def again(self) -> str:
        """The end of the command that does the same again."""
        books = ["--books", self.books] if self.books else []
        pages = [part for page in self.pages for part in ("--pages", page)]
        command = ["--", *self.command] if self.command else []
        asked = ["--shop", self.shop, "--buy", str(self.buy), "--sandbox", self.sandbox]
        return shlex.join([*asked, *books, *pages, *command])


@click.command(epilog="Example: payment-sandbox explore --shop http://localhost:3000 --buy buy.yaml")
@click.option("--shop", required=True, metavar="URL", help="Where the shop runs: http://localhost:3000.")
@click.option(
    "--buy",
    required=True,
    type=click.Path(path_type=Path, dir_okay=False),
    help="The steps of a customer in the shop, as YAML.",
)
@click.option(
    "--sandbox",
    default="http://127.0.0.1:8080",
    show_default=True,
    metavar="URL",
    help="Where the shop expects the sandbox; this command serves it there.",
)
@click.option("--books", metavar="URL|COMMAND", help="Tells the shop's books: a JSON list of entries.")
@click.option("--pages", multiple=True, metavar="URL", help="A page about an order: /sales/{order_id}.")
@click.option("--budget", default="5m", show_default=True, help="How long it may take: 90s or 10m.")
@click.option(
    "--only", multiple=True, metavar="VARIATION", help="Play these variations only: webhook:2:twice."
)
@click.option("--continue", "goes_on", is_flag=True, help="Go on where the last exploration was stopped.")
@click.option(
    "--report",
    type=click.Path(path_type=Path, dir_okay=False),
    default="exploration.html",
    show_default=True,
    help="Write it, with pictures, into this .html or .json file.",
)
@click.option("--json", "as_json", is_flag=True, help="Print it as JSON.")
@format_option
@click.argument("command", nargs=-1)
def explore(**options: Any) -> None:
    """Buy in a shop that has no tests again and again, with one thing changed at a time.

    The shop runs already, and uses the sandbox at the address of --sandbox with the key sandbox-key; or
    COMMAND starts it, with SANDBOX_URL and SANDBOX_API_KEY. Its pages judge what it makes of each change, and
    its books if it tells them.
    """
    from pytest_payment_sandbox.rehearsal.exploring import parse_variation
    from pytest_payment_sandbox.rehearsal.report import report_of

    asked = Options(**options)
    try:
        only = [parse_variation(name) for name in asked.only]
        shown = _explored(asked, only)
    except ValueError as wrong:
        fail(str(wrong))
    refuse_unplayed(asked.only, [shown.explored])
    test = report_of(
        asked.name,
        shown.explored,
        lambda finding: f'payment-sandbox explore --only "{finding.name}" {asked.again}',
    )
    is_partial = shown.is_stopped or bool(test["left"])
    if not asked.only:
        remember(asked.name, {asked.name: shown.remembered}, is_partial=is_partial)
    output = Output(asked.name, asked.report, JSON if asked.as_json else asked.form, "shop")
    output.finish([test], is_partial=is_partial, is_stopped=shown.is_stopped)


def _explored(asked: Options, only: "Sequence[ChangedSteps]") -> "ShopExplored":
    from pytest_payment_sandbox.rehearsal.announced import Outside
    from pytest_payment_sandbox.rehearsal.buying import BuyFails, chromium, read_buy
    from pytest_payment_sandbox.rehearsal.outside import BooksElsewhere
    from pytest_payment_sandbox.rehearsal.run import check_report, seconds_of
    from pytest_payment_sandbox.rehearsal.shops import Shop
    from pytest_payment_sandbox.rehearsal.state_file import read_state

    for option, url in (("--shop", asked.shop), ("--sandbox", asked.sandbox)):
        if not is_server_url(url):
            fail(f"{option} takes an address such as http://localhost:3000, not {url!r}")
    seconds = checked("--budget", seconds_of, asked.budget)
    checked("--report", check_report, str(asked.report))
    source = urljoin(f"{asked.shop}/", asked.books) if (asked.books or "").startswith("/") else asked.books
    books = checked("--books", BooksElsewhere, source) if source else None
    buy = read_buy(asked.buy)
    remembered = read_state(asked.name).get(asked.name) if asked.goes_on else None
    with _served(asked.sandbox) as server, _running_shop(asked), _as_sentences():
        (project,) = server.registry.loaded()
        shop = Shop(asked.shop.rstrip("/"), buy, project, server.url, Outside(books, asked.pages))
        try:
            with chromium() as browser:
                return shop.explore(browser, seconds, only, progress_on_stderr(), remembered)
        except BuyFails as failed:
            fail(str(failed))


@contextmanager
def _as_sentences() -> Iterator[None]:
    """Say how to install what is missing."""
    try:
        yield
    except ModuleNotFoundError as missing:
        if missing.name is None or not missing.name.startswith("playwright"):
            raise
        fail(str(NotInstalled("payment-sandbox explore", EXTRA)))


@contextmanager
def _served(url: str) -> "Iterator[Server]":
    """A sandbox at the address where the shop expects it."""
    from payment_sandbox.serving.binding import PortTaken
    from payment_sandbox.serving.config import ServerConfig
    from payment_sandbox.serving.server import build

    parts = urlsplit(url)
    config = ServerConfig(
        host=parts.hostname or "127.0.0.1", port=parts.port or 80, public_url=url, clock="frozen", seed=1
    )
    try:
        server = build(config)
    except PortTaken:
        fail(f"--sandbox {url}: cannot listen there; stop what does, for this command serves its own sandbox")
    with server:
        yield server


@contextmanager
def _running_shop(asked: Options) -> Iterator[None]:
    """The shop, which runs already, or which a command starts."""
    if not asked.command:
        if not _answers(asked.shop):
            fail(
                f"--shop {asked.shop}: nothing answers; start the shop with SANDBOX_URL={asked.sandbox} "
                f"and the key {KEY}, or add the command that starts it: -- npm start"
            )
        yield
        return
    environment = {**os.environ, "SANDBOX_URL": asked.sandbox, "SANDBOX_API_KEY": KEY}
    try:
        process = subprocess.Popen(
            asked.command,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    except OSError as error:
        fail(f"cannot run {asked.command[0]!r}: {error.strerror}")
    with process:
        try:
            _wait_for(asked, process)
            yield
        finally:
            _end(process)


def _wait_for(asked: Options, process: "subprocess.Popen[bytes]") -> None:
    pause, name = Event(), shlex.join(asked.command)
    for _ in range(int(START_SECONDS / LOOK_SECONDS)):
        if process.poll() is not None:
            fail(f"{name}: the shop has ended with exit code {process.returncode} before it answered")
        if _answers(asked.shop):
            return
        pause.wait(LOOK_SECONDS)
    fail(f"{name}: nothing answers at {asked.shop} after {START_SECONDS:.0f} s")


def _end(process: "subprocess.Popen[bytes]") -> None:
    """End the shop, and what it has started."""
    with suppress(ProcessLookupError, PermissionError):
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()


def _answers(url: str) -> bool:
    with suppress(requests.RequestException):
        requests.get(url, timeout=5, allow_redirects=False).close()
        return True
    return False
