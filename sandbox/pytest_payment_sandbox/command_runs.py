"""Runs the commands: rehearses, reports progress, prints and saves the findings, and exits."""

import json
import shlex
import sys
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple, NoReturn, TypeVar
from zlib import crc32

from payment_sandbox.cli.options import fail, say
from pytest_payment_sandbox.rehearsal.budget import Budget, format_duration, parse_seconds
from pytest_payment_sandbox.rehearsal.changes import parse_variation
from pytest_payment_sandbox.rehearsal.driver import Progress, RehearsalDriver, RehearsalOutcome
from pytest_payment_sandbox.rehearsal.planning import Hints, Plan, Run
from pytest_payment_sandbox.rehearsal.report import (
    Reports,
    check_report,
    lines_of,
    report_of,
    rows_of,
    save,
    summary,
)
from pytest_payment_sandbox.rehearsal.suites import UNNAMED_TEST, SuiteFailed, SuitePlayer

OptionValue = TypeVar("OptionValue")

EXIT_INTERRUPTED: Final = 130  # the exit code that shells report for Ctrl-C


class SuiteOptions(NamedTuple):
    """The options of ``payment-sandbox rehearse``."""

    budget: str
    only: tuple[str, ...]
    test: str
    report: Path | None
    as_json: bool
    command: tuple[str, ...]

    @property
    def name(self) -> str:
        """The suite's command, as users type it."""
        return shlex.join(self.command)

    def rerun_command(self, test: str, variation: str) -> str:
        """Return the command that reruns a variation of a test."""
        words = ["--test", test, "--"] if test else ["--"]
        return f'payment-sandbox rehearse --only "{variation}" {shlex.join(words)} {self.name}'


def rehearse_suite(options: SuiteOptions) -> NoReturn:
    """Rehearse a suite, and exit."""
    try:
        outcomes, is_stopped = _rehearse(options)
    except (SuiteFailed, ValueError) as wrong:
        fail(str(wrong))
    except OSError as error:
        fail(f"cannot run {options.command[0]!r}: {error.strerror}")
    _refuse_unplayed(options.only, list(outcomes.values()))
    tests = [
        report_of(name or options.name, each, partial(options.rerun_command, name))
        for name, each in outcomes.items()
    ]
    if options.report is not None:
        save(options.report, {"tests": tests})
    say(*_format(options, tests))
    has_findings = any(test["findings"] for test in tests)
    sys.exit(EXIT_INTERRUPTED if is_stopped else int(has_findings))


def _rehearse(options: SuiteOptions) -> tuple[dict[str, RehearsalOutcome], bool]:
    """Return the outcome of each test, and whether Ctrl-C stopped the rehearsal."""
    budget = Budget(_parse_option("--budget", parse_seconds, options.budget))
    if options.report is not None:
        _parse_option("--report", check_report, str(options.report))
    only = [parse_variation(name) for name in options.only] or None
    progress = Progress(lambda line: say(f"payment-sandbox: {line}", to_stderr=True))
    player = SuitePlayer(options.command, budget, progress.write_line, is_selected=only is not None)
    baselines = _select(player.run_unchanged(), options.test)
    plans = {
        name: Plan(baseline, budget.has_time, hints=Hints(crc32(name.encode())), only=only)
        for name, baseline in baselines.items()
    }
    progress.write_line(
        f"changing one thing at a time in {_count_tests(plans)}; a run takes "
        f"{player.suite_seconds:.1f} s, with {format_duration(budget.remaining_seconds)} left (--budget)"
    )
    driver = RehearsalDriver(plans, player, budget, progress)
    return driver.rehearse(), driver.is_stopped


def _count_tests(names: Iterable[str]) -> str:
    count = sum(name != UNNAMED_TEST for name in names)
    return f"{count} tests" if count > 1 else "1 test" if count else "the whole suite"


def _select(baselines: dict[str, Run], wanted: str) -> dict[str, Run]:
    """Return the tests whose names contain a text.

    Raises:
        SuiteFailed: there is no such test.
    """
    selected = {name: each for name, each in baselines.items() if wanted in name}
    if not selected:
        names = ", ".join(repr(name) for name in baselines if name) or "tests without names"
        raise SuiteFailed(f"no test has {wanted!r} in its name; the tests are: {names}")
    return selected


def _format(options: SuiteOptions, tests: Reports) -> list[str]:
    if options.as_json:
        return [json.dumps({"tests": list(tests)})]
    lines = [line for test in tests for line in lines_of(test, with_name=True)]
    notes = [note for test in tests for note in test["notes"]]
    notes += [f"the full report is in {options.report}"] if options.report is not None else []
    return [*lines, summary(tests, "--budget"), *rows_of(tests), *notes]


def _refuse_unplayed(only: Sequence[str], outcomes: Sequence[RehearsalOutcome]) -> None:
    """Exit if a selected variation has no step in any test."""
    unplayed = [each.unplayed for each in outcomes]
    unplayed_names = [problem for problem in unplayed[0] if all(problem in each for each in unplayed)]
    if unplayed_names:
        fail(f"{'; '.join(unplayed_names)}: --only {' '.join(only)} was not played")


def _parse_option(option: str, check: Callable[[str], OptionValue], text: str) -> OptionValue:
    """Parse the value of an option; exit if it is invalid."""
    try:
        return check(text)
    except ValueError as wrong:
        fail(f"{option} {wrong}")
