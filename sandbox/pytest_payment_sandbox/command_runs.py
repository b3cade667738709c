"""The work of the commands: rehearse, report progress, print and save the findings, and exit."""

import json
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Final, NamedTuple, NoReturn, TypeVar
from urllib.parse import urljoin, urlsplit

import requests

from payment_sandbox.cli.noted import JSON, TEXT, Annotation, format_findings
from payment_sandbox.cli.options import fail, is_server_url, say
from payment_sandbox.extensions import NotInstalled
from payment_sandbox.serving.binding import PortInUse
from payment_sandbox.serving.config import ServerConfig
from payment_sandbox.serving.server import Server, build
from pytest_payment_sandbox.command_options import ShopOptions, SuiteOptions
from pytest_payment_sandbox.rehearsal.announced import Outside
from pytest_payment_sandbox.rehearsal.exploring import ChangedSteps, Explored, parse_variation
from pytest_payment_sandbox.rehearsal.outside import BooksElsewhere
from pytest_payment_sandbox.rehearsal.progress import Progress
from pytest_payment_sandbox.rehearsal.remembering import read_state, write_state
from pytest_payment_sandbox.rehearsal.report import TestReport, Tests, lines_of, report_of, summary, write
from pytest_payment_sandbox.rehearsal.run import check_report, seconds_of
from pytest_payment_sandbox.rehearsal.suites import TEST, WHOLE, Plan, Suite, SuiteExplored, SuiteFails

if TYPE_CHECKING:
    from pytest_payment_sandbox.rehearsal.shops import ExploredShop

OptionValue = TypeVar("OptionValue")

INTERRUPTED: Final = 130  # the exit code that shells report
GO_ON: Final = "some variations were not tried: --continue resumes here"
KEY: Final = "sandbox-key"
EXTRA: Final = "pytest-payment-sandbox[explore]"
START_SECONDS: Final = 60.0
LOOK_SECONDS: Final = 0.1


def rehearse_suite(asked: SuiteOptions) -> NoReturn:
    """Rehearse a suite, and exit."""
    try:
        shown = _rehearsed(asked)
    except (SuiteFails, ValueError) as wrong:
        fail(str(wrong))
    except OSError as error:
        fail(f"cannot run {asked.command[0]!r}: {error.strerror}")
    _refuse_unplayed(asked.only, list(shown.tests.values()))
    _finish_suite(asked, shown)


def _finish_suite(asked: SuiteOptions, shown: SuiteExplored) -> NoReturn:
    tests = [
        report_of(name or asked.name, each, lambda finding, test=name: asked.again(test, finding.name))  # type: ignore[misc]
        for name, each in shown.tests.items()
    ]
    is_partial = shown.is_stopped or any(test["left"] for test in tests)
    if not asked.only:
        write_state(asked.name, shown.remembered if is_partial else {})
    of = "suite" if list(shown.tests) == [WHOLE] else "test"
    output = CommandOutput(asked.name, asked.report, JSON if asked.as_json else asked.form, of)
    output.finish(tests, is_partial=is_partial, is_stopped=shown.is_stopped)


def _rehearsed(asked: SuiteOptions) -> SuiteExplored:
    seconds = _checked("--budget", seconds_of, asked.budget)
    if asked.report is not None:
        _checked("--report", check_report, str(asked.report))
    if asked.one is not None and TEST not in asked.one:
        fail(f"--one takes a command with {TEST} in place of the test's name, not {asked.one!r}")
    books = _checked("--books", BooksElsewhere, asked.books) if asked.books else None
    plan = Plan(
        seconds,
        [parse_variation(name) for name in asked.only],
        asked.test,
        asked.one,
        read_state(asked.name) if asked.goes_on else {},
    )
    return Suite(asked.command, Outside(books, asked.pages), _progress()).explore(plan)


def explore_shop(asked: ShopOptions) -> NoReturn:
    """Explore a shop without tests, and exit."""
    try:
        shown = _explored(asked, [parse_variation(name) for name in asked.only])
    except ValueError as wrong:
        fail(str(wrong))
    _refuse_unplayed(asked.only, [shown.explored])
    test = report_of(asked.name, shown.explored, lambda finding: asked.again(finding.name))
    is_partial = shown.is_stopped or bool(test["left"])
    if not asked.only:
        write_state(asked.name, {asked.name: shown.remembered} if is_partial else {})
    output = CommandOutput(asked.name, asked.report, JSON if asked.as_json else asked.form, "shop")
    output.finish([test], is_partial=is_partial, is_stopped=shown.is_stopped)


def _explored(asked: ShopOptions, only: Sequence[ChangedSteps]) -> "ExploredShop":
    with _explained():
        from pytest_payment_sandbox.rehearsal.buying import BuyFails, chromium, read_buy
        from pytest_payment_sandbox.rehearsal.shops import ShopInBrowser

    for option, url in (("--shop", asked.shop), ("--sandbox", asked.sandbox)):
        if not is_server_url(url):
            fail(f"{option} takes an address such as http://localhost:3000, not {url!r}")
    seconds = _checked("--budget", seconds_of, asked.budget)
    _checked("--report", check_report, str(asked.report))
    source = urljoin(f"{asked.shop}/", asked.books) if (asked.books or "").startswith("/") else asked.books
    books = _checked("--books", BooksElsewhere, source) if source else None
    buy = read_buy(asked.buy)
    remembered = read_state(asked.name).get(asked.name) if asked.goes_on else None
    with _served(asked.sandbox) as server, _running_shop(asked):
        (project,) = server.registry.loaded()
        shop = ShopInBrowser(asked.shop.rstrip("/"), buy, project, server.url, Outside(books, asked.pages))
        try:
            with chromium() as browser:
                return shop.explore(browser, seconds, only, _progress(), remembered)
        except BuyFails as failed:
            fail(str(failed))


@contextmanager
def _explained() -> Iterator[None]:
    """Exit with a hint on the installation if Playwright is missing."""
    try:
        yield
    except ModuleNotFoundError as missing:
        if missing.name is None or not missing.name.startswith("playwright"):
            raise
        fail(str(NotInstalled("payment-sandbox explore", EXTRA)))


@contextmanager
def _served(url: str) -> Iterator[Server]:
    """Serve a sandbox at the address where the shop expects it."""
    parts = urlsplit(url)
    config = ServerConfig(
        host=parts.hostname or "127.0.0.1", port=parts.port or 80, public_url=url, clock="frozen", seed=1
    )
    try:
        server = build(config)
    except PortInUse:
        fail(f"--sandbox {url}: the port is in use; stop the program that uses it")
    with server:
        yield server


@contextmanager
def _running_shop(asked: ShopOptions) -> Iterator[None]:
    """Check that the shop is running, or start it with the command."""
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


def _wait_for(asked: ShopOptions, process: "subprocess.Popen[bytes]") -> None:
    pause, name = Event(), shlex.join(asked.command)
    for _ in range(int(START_SECONDS / LOOK_SECONDS)):
        if process.poll() is not None:
            fail(f"{name}: the shop exited with code {process.returncode} before it answered")
        if _answers(asked.shop):
            return
        pause.wait(LOOK_SECONDS)
    fail(f"{name}: nothing answers at {asked.shop} after {START_SECONDS:.0f} s")


def _end(process: "subprocess.Popen[bytes]") -> None:
    """Kill the shop and the processes that it has started."""
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


class CommandOutput(NamedTuple):
    """The file and the format of a report."""

    name: str
    report: Path | None
    form: str
    of: str  # the rehearsed unit: a test, a suite or a shop

    def finish(self, tests: Tests, *, is_partial: bool, is_stopped: bool) -> NoReturn:
        """Print and write the reports of the tests, and exit with 1 if there are findings."""
        if self.report is not None:
            write(self.report, tests, self.of)
        notes = [note for test in tests for note in test["notes"]]
        notes += [GO_ON] if is_partial or is_stopped else []
        notes += [f"the full report is in {self.report}"] if self.report is not None else []
        say(*self._shown(tests, notes))
        has_findings = any(test["findings"] for test in tests)
        sys.exit(INTERRUPTED if is_stopped else int(has_findings))

    def _shown(self, tests: Tests, notes: Sequence[str]) -> list[str]:
        is_test = self.of == "test"
        if self.form == JSON:
            return [json.dumps(_merged(self.name, tests) if is_test else tests[0])]
        if self.form == TEXT:
            lines = [line for test in tests for line in lines_of(test, with_name=is_test)]
            return [*lines, summary(tests, self.of), *notes]
        noted = [
            Annotation(
                finding["kind"],
                f"{test['test']}: {finding['sentence']}" if is_test else finding["sentence"],
                finding["lesson"],
            )
            for test in tests
            for finding in test["findings"]
        ]
        return format_findings(noted, self.form, "rehearse")


def _merged(name: str, tests: Tests) -> TestReport:
    """Merge the reports of all tests; each finding names its test."""
    return {
        "test": name,
        **{key: sum(test[key] for test in tests) for key in ("variations", "left", "alike", "repeated")},
        "notes": [note for test in tests for note in test["notes"]],
        "findings": [{"test": test["test"], **each} for test in tests for each in test["findings"]],
        "tests": list(tests),
    }


def _refuse_unplayed(only: Sequence[str], explored: Sequence[Explored]) -> None:
    """Exit if a selected variation has no step in any test."""
    unplayed = [each.unplayed for each in explored]
    missed = [problem for problem in unplayed[0] if all(problem in each for each in unplayed)]
    if missed:
        fail(f"{'; '.join(missed)}: --only {' '.join(only)} was not played")


def _progress() -> Progress:
    """Create the progress of a command, which goes to stderr."""
    return Progress(lambda line: say(f"payment-sandbox: {line}", to_stderr=True))


def _checked(option: str, check: Callable[[str], OptionValue], text: str) -> OptionValue:
    """Parse the text of an option; exit if it is invalid."""
    try:
        return check(text)
    except ValueError as wrong:
        fail(f"{option} {wrong}")
