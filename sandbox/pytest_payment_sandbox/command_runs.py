"""Runs the commands: rehearses, reports progress, prints and saves the findings, and exits."""

import json
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Final, NamedTuple, NoReturn, TypeVar
from urllib.parse import urljoin, urlsplit

import requests

from payment_sandbox.cli.annotations import JSON, TEXT, Annotation, format_findings
from payment_sandbox.cli.options import fail, is_server_url, say
from payment_sandbox.extensions import NotInstalled
from payment_sandbox.serving.binding import PortInUse
from payment_sandbox.serving.config import ServerConfig
from payment_sandbox.serving.server import Server, build
from pytest_payment_sandbox.command_options import ShopOptions, SuiteOptions
from pytest_payment_sandbox.rehearsal.announced import Sources
from pytest_payment_sandbox.rehearsal.exploring import ChangedSteps, Exploration, parse_variation
from pytest_payment_sandbox.rehearsal.outside import ExternalBooks
from pytest_payment_sandbox.rehearsal.progress import Progress
from pytest_payment_sandbox.rehearsal.remembering import read_state, write_state
from pytest_payment_sandbox.rehearsal.report import Reports, TestReport, lines_of, report_of, summary, write
from pytest_payment_sandbox.rehearsal.run import check_report, parse_seconds
from pytest_payment_sandbox.rehearsal.suites import (
    TEST_PLACEHOLDER,
    UNNAMED_TEST,
    Plan,
    Suite,
    SuiteFailed,
    SuiteResult,
)

if TYPE_CHECKING:
    from pytest_payment_sandbox.rehearsal.shops import ShopResult

OptionValue = TypeVar("OptionValue")

EXIT_INTERRUPTED: Final = 130  # the exit code that shells report for Ctrl-C
RESUME_HINT: Final = "some variations were not tried: --continue resumes with them"
DEFAULT_API_KEY: Final = "sandbox-key"
EXPLORE_EXTRA: Final = "pytest-payment-sandbox[explore]"
START_SECONDS: Final = 60.0
CHECK_SECONDS: Final = 0.1


def rehearse_suite(options: SuiteOptions) -> NoReturn:
    """Rehearse a suite, and exit."""
    try:
        result = _rehearse(options)
    except (SuiteFailed, ValueError) as wrong:
        fail(str(wrong))
    except OSError as error:
        fail(f"cannot run {options.command[0]!r}: {error.strerror}")
    _refuse_unplayed(options.only, list(result.tests.values()))
    _finish_suite(options, result)


def _finish_suite(options: SuiteOptions, result: SuiteResult) -> NoReturn:
    tests = [
        report_of(name or options.name, each, partial(options.rerun_command, name))
        for name, each in result.tests.items()
    ]
    is_partial = result.is_stopped or any(test["left"] for test in tests)
    if not options.only:
        write_state(options.name, result.stored if is_partial else {})
    unit = "suite" if list(result.tests) == [UNNAMED_TEST] else "test"
    output = CommandOutput(options.name, options.report, JSON if options.as_json else options.form, unit)
    output.finish(tests, is_partial=is_partial, is_stopped=result.is_stopped)


def _rehearse(options: SuiteOptions) -> SuiteResult:
    seconds = _parse_option("--budget", parse_seconds, options.budget)
    if options.report is not None:
        _parse_option("--report", check_report, str(options.report))
    if options.one is not None and TEST_PLACEHOLDER not in options.one:
        fail(
            f"--one takes a command with {TEST_PLACEHOLDER} as a placeholder for the test's name, "
            f"not {options.one!r}"
        )
    books = _parse_option("--books", ExternalBooks, options.books) if options.books else None
    plan = Plan(
        seconds,
        [parse_variation(name) for name in options.only],
        options.test,
        options.one,
        read_state(options.name) if options.resumes else {},
    )
    return Suite(options.command, Sources(books, options.pages), _create_progress()).explore(plan)


def explore_shop(options: ShopOptions) -> NoReturn:
    """Explore a shop without tests, and exit."""
    try:
        result = _explore(options, [parse_variation(name) for name in options.only])
    except ValueError as wrong:
        fail(str(wrong))
    _refuse_unplayed(options.only, [result.explored])
    test = report_of(options.name, result.explored, options.rerun_command)
    is_partial = result.is_stopped or bool(test["left"])
    if not options.only:
        write_state(options.name, {options.name: result.stored} if is_partial else {})
    output = CommandOutput(options.name, options.report, JSON if options.as_json else options.form, "shop")
    output.finish([test], is_partial=is_partial, is_stopped=result.is_stopped)


def _explore(options: ShopOptions, only: Sequence[ChangedSteps]) -> "ShopResult":
    with _playwright_hint():
        from pytest_payment_sandbox.rehearsal.buying import PurchaseFailed, launch_chromium, read_buy_script
        from pytest_payment_sandbox.rehearsal.shops import ShopInBrowser

    for option, url in (("--shop", options.shop), ("--sandbox", options.sandbox)):
        if not is_server_url(url):
            fail(f"{option} takes an address such as http://localhost:3000, not {url!r}")
    seconds = _parse_option("--budget", parse_seconds, options.budget)
    _parse_option("--report", check_report, str(options.report))
    source = (
        urljoin(f"{options.shop}/", options.books) if (options.books or "").startswith("/") else options.books
    )
    books = _parse_option("--books", ExternalBooks, source) if source else None
    buy = read_buy_script(options.buy)
    stored = read_state(options.name).get(options.name) if options.resumes else None
    with _serve_sandbox(options.sandbox) as server, _running_shop(options):
        (project,) = server.registry.loaded_projects()
        shop = ShopInBrowser(
            options.shop.rstrip("/"), buy, project, server.url, Sources(books, options.pages)
        )
        try:
            with launch_chromium() as browser:
                return shop.explore(browser, seconds, only, _create_progress(), stored)
        except PurchaseFailed as failed:
            fail(str(failed))


@contextmanager
def _playwright_hint() -> Iterator[None]:
    """Exit with an installation hint if Playwright is missing."""
    try:
        yield
    except ModuleNotFoundError as missing:
        if missing.name is None or not missing.name.startswith("playwright"):
            raise
        fail(str(NotInstalled("payment-sandbox explore", EXPLORE_EXTRA)))


@contextmanager
def _serve_sandbox(url: str) -> Iterator[Server]:
    """Serve a sandbox at the address that is configured in the shop."""
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
def _running_shop(options: ShopOptions) -> Iterator[None]:
    """Check that the shop is running, or start it with the command."""
    if not options.command:
        if not _is_responding(options.shop):
            fail(
                f"--shop {options.shop}: no response; start the shop with SANDBOX_URL={options.sandbox} "
                f"and the key {DEFAULT_API_KEY}, or add the command that starts the shop: -- npm start"
            )
        yield
        return
    environment = {**os.environ, "SANDBOX_URL": options.sandbox, "SANDBOX_API_KEY": DEFAULT_API_KEY}
    try:
        process = subprocess.Popen(
            options.command,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    except OSError as error:
        fail(f"cannot run {options.command[0]!r}: {error.strerror}")
    with process:
        try:
            _wait_for_shop(options, process)
            yield
        finally:
            _kill_shop(process)


def _wait_for_shop(options: ShopOptions, process: "subprocess.Popen[bytes]") -> None:
    pause, name = Event(), shlex.join(options.command)
    for _ in range(int(START_SECONDS / CHECK_SECONDS)):
        if process.poll() is not None:
            fail(f"{name}: the shop exited with code {process.returncode} before it responded")
        if _is_responding(options.shop):
            return
        pause.wait(CHECK_SECONDS)
    fail(f"{name}: no response from {options.shop} within {START_SECONDS:.0f} s")


def _kill_shop(process: "subprocess.Popen[bytes]") -> None:
    """Kill the shop and its child processes."""
    with suppress(ProcessLookupError, PermissionError):
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()


def _is_responding(url: str) -> bool:
    with suppress(requests.RequestException):
        requests.get(url, timeout=5, allow_redirects=False).close()
        return True
    return False


class CommandOutput(NamedTuple):
    """The output of a command: the file and the format of its report."""

    name: str
    report: Path | None
    form: str
    unit: str  # the rehearsed unit: a test, a suite or a shop

    def finish(self, tests: Reports, *, is_partial: bool, is_stopped: bool) -> NoReturn:
        """Print and write the reports on the tests, and exit with 1 if there are findings."""
        if self.report is not None:
            write(self.report, tests, self.unit)
        notes = [note for test in tests for note in test["notes"]]
        notes += [RESUME_HINT] if is_partial or is_stopped else []
        notes += [f"the full report is in {self.report}"] if self.report is not None else []
        say(*self._format(tests, notes))
        has_findings = any(test["findings"] for test in tests)
        sys.exit(EXIT_INTERRUPTED if is_stopped else int(has_findings))

    def _format(self, tests: Reports, notes: Sequence[str]) -> list[str]:
        is_test = self.unit == "test"
        if self.form == JSON:
            return [json.dumps(_merge_reports(self.name, tests) if is_test else tests[0])]
        if self.form == TEXT:
            lines = [line for test in tests for line in lines_of(test, with_name=is_test)]
            return [*lines, summary(tests, self.unit), *notes]
        annotations = [
            Annotation(
                finding["kind"],
                f"{test['test']}: {finding['sentence']}" if is_test else finding["sentence"],
                finding["lesson"],
            )
            for test in tests
            for finding in test["findings"]
        ]
        return format_findings(annotations, self.form, "rehearse")


def _merge_reports(name: str, tests: Reports) -> TestReport:
    """Merge the reports on all tests; each finding names its test."""
    return {
        "test": name,
        **{key: sum(test[key] for test in tests) for key in ("variations", "left", "alike", "repeated")},
        "notes": [note for test in tests for note in test["notes"]],
        "findings": [{"test": test["test"], **each} for test in tests for each in test["findings"]],
        "tests": list(tests),
    }


def _refuse_unplayed(only: Sequence[str], explored: Sequence[Exploration]) -> None:
    """Exit if a selected variation has no step in any test."""
    unplayed = [each.unplayed for each in explored]
    unplayed_names = [problem for problem in unplayed[0] if all(problem in each for each in unplayed)]
    if unplayed_names:
        fail(f"{'; '.join(unplayed_names)}: --only {' '.join(only)} was not played")


def _create_progress() -> Progress:
    """Create the progress display of a command, on stderr."""
    return Progress(lambda line: say(f"payment-sandbox: {line}", to_stderr=True))


def _parse_option(option: str, check: Callable[[str], OptionValue], text: str) -> OptionValue:
    """Parse the value of an option; exit if it is invalid."""
    try:
        return check(text)
    except ValueError as wrong:
        fail(f"{option} {wrong}")
