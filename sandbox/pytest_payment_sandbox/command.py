"""The command that rehearses a suite in any language."""

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

from payment_sandbox.cli.noted import JSON, TEXT, Noted, format_option, printed
from payment_sandbox.cli.options import fail, say

ShopCall = TypeVar("ShopCall")


@click.command(epilog="Example: payment-sandbox rehearse -- npm test")
@click.option("--budget", default="60s", show_default=True, help="How long all runs may take: 90s or 10m.")
@click.option("--only", metavar="VARIATION", help="Run this variation only, such as webhook:2:twice.")
@click.option(
    "--report",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write it into this .html or .json file.",
)
@click.option("--json", "as_json", is_flag=True, help="Print it as JSON.")
@format_option
@click.argument("command", nargs=-1, required=True)
def rehearse(
    budget: str, only: str | None, report: Path | None, as_json: bool, form: str, command: tuple[str, ...]
) -> None:
    """Run a suite again and again, with one thing changed at a time.

    The suite finds a server of its own at SANDBOX_URL, with the key in SANDBOX_API_KEY, and may create
    projects. Its exit code is the verdict. It runs as it is first, and must pass.
    """
    from pytest_payment_sandbox.rehearsal.exploring import parse_variation
    from pytest_payment_sandbox.rehearsal.report import report_of, write
    from pytest_payment_sandbox.rehearsal.run import check_report, seconds_of
    from pytest_payment_sandbox.rehearsal.suites import Suite, SuiteFails

    seconds = _checked("--budget", seconds_of, budget)
    if report is not None:
        _checked("--report", check_report, str(report))
    try:
        variation = parse_variation(only) if only else ()
        explored = Suite(command).explore(seconds, variation)
    except (SuiteFails, ValueError) as wrong:
        fail(str(wrong))
    except OSError as error:
        fail(f"cannot run {command[0]!r}: {error.strerror}")
    if explored.unplayed:
        fail(f"{'; '.join(explored.unplayed)}: --only {only} was not played")
    name = " ".join(command)
    test = report_of(
        name, explored, lambda finding: f'payment-sandbox rehearse --only "{finding.name}" -- {name}'
    )
    if report is not None:
        write(report, [test])
    say(*_shown(test, JSON if as_json else form, explored.notes))
    sys.exit(1 if explored.findings else 0)


def _checked(option: str, check: Callable[[str], ShopCall], text: str) -> ShopCall:
    try:
        return check(text)
    except ValueError as wrong:
        fail(f"{option} {wrong}")


def _shown(test: Mapping[str, Any], form: str, notes: Sequence[str]) -> list[str]:
    """The report, for people or machines."""
    from pytest_payment_sandbox.rehearsal.report import lines_of, summary

    if form == JSON:
        return [json.dumps(test)]
    if form == TEXT:
        return [*lines_of(test), *summary([test], "suite").split("\n"), *notes]
    noted = [Noted(each["kind"], each["sentence"], each["lesson"]) for each in test["findings"]]
    return printed(noted, form, "rehearse")
