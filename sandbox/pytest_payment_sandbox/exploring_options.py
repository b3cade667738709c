"""Options for rehearsals and coverage.

Imports are kept to a minimum, because every pytest run loads this module.
"""

import math
from typing import TYPE_CHECKING

import pytest

from payment_sandbox.loading import lazy

if TYPE_CHECKING:
    from pytest_payment_sandbox.rehearsal import budget, report
else:
    budget = lazy("pytest_payment_sandbox.rehearsal.budget")
    report = lazy("pytest_payment_sandbox.rehearsal.report")

BUDGET_SECONDS = 60.0


def add_options(parser: pytest.Parser, group: pytest.OptionGroup) -> None:
    """Add the command-line options, and the ini option."""
    _add_rehearsal_options(group)
    _add_coverage_options(parser, group)


def _add_rehearsal_options(group: pytest.OptionGroup) -> None:
    group.addoption(
        "--payment-rehearse", action="store_true", help="rerun every test with one change at a time"
    )
    group.addoption(
        "--payment-rehearse-only",
        metavar="VARIATION",
        help="run the tests with this variation only, such as webhook:2:twice",
    )
    group.addoption(
        "--payment-rehearse-budget",
        metavar="SECONDS",
        help="time budget for all variations, such as 90s or 10m (default: 60s)",
    )
    group.addoption(
        "--payment-rehearse-report",
        metavar="FILE",
        help="write the findings of a rehearsal to this .json file",
    )


def _add_coverage_options(parser: pytest.Parser, group: pytest.OptionGroup) -> None:
    group.addoption(
        "--payment-coverage",
        action="store_true",
        help="list the payment outcomes, webhooks, refusals and scenario rules covered by the tests",
    )
    group.addoption(
        "--payment-coverage-report",
        metavar="FILE",
        help="write the coverage, with the tests of each case, to this .json file",
    )
    group.addoption(
        "--payment-coverage-fail-under",
        metavar="PERCENT",
        help="fail the run if its coverage of payment methods is below this percentage",
    )
    parser.addini("payment_coverage_fail_under", "default of --payment-coverage-fail-under", default="0")


def check_options(config: pytest.Config) -> None:
    """Validate the options before any test runs.

    Raises:
        pytest.UsageError: an option is invalid.
    """
    rehearsal_seconds(config)
    for option in ("payment_rehearse_report", "payment_coverage_report"):
        _check_report(option, config.getoption(option))
    coverage_fail_under(config)


def rehearsal_seconds(config: pytest.Config) -> float:
    """Return the time budget of a rehearsal, in seconds.

    Raises:
        pytest.UsageError: the option is not a duration.
    """
    text: str | None = config.getoption("payment_rehearse_budget")
    if text is None:
        return BUDGET_SECONDS
    try:
        return budget.parse_seconds(text)
    except ValueError as wrong:
        raise pytest.UsageError(f"--payment-rehearse-budget {wrong}") from None


def _check_report(option: str, name: str | None) -> None:
    if not name:
        return
    try:
        report.check_report(name)
    except ValueError as wrong:
        raise pytest.UsageError(f"--{option.replace('_', '-')} {wrong}") from None


def is_coverage_requested(config: pytest.Config) -> bool:
    """Whether the run reports its coverage."""
    return bool(config.getoption("payment_coverage") or config.getoption("payment_coverage_report"))


def coverage_fail_under(config: pytest.Config) -> float:
    """Return the minimum coverage of a run, in percent.

    Raises:
        pytest.UsageError: the option is not a number from 0 to 100.
    """
    given: str | None = config.getoption("payment_coverage_fail_under")
    text = given or config.getini("payment_coverage_fail_under")
    try:
        percent = float(text)
    except ValueError:
        percent = math.nan
    if not 0 <= percent <= 100:
        name = "--payment-coverage-fail-under" if given else "payment_coverage_fail_under"
        raise pytest.UsageError(f"{name} takes a number from 0 to 100, not {text!r}")
    return percent


def is_rehearsed(item: pytest.Item) -> bool:
    """Whether an option or a marker selects a test for rehearsal."""
    config = item.config
    option_names = ("payment_rehearse", "payment_rehearse_only")
    is_requested = any(config.getoption(name) for name in option_names)
    return bool(is_requested) or item.get_closest_marker("payment_rehearse") is not None
