"""The command that rehearses a suite in any language."""

import json
import sys
from pathlib import Path
from typing import Final

import click

from payment_sandbox.cli.failing import fail

UNITS: Final = {"s": 1, "m": 60, "h": 3600}
REPORTS: Final = (".html", ".htm", ".json")


@click.command(epilog="Example: payment-sandbox rehearse -- npm test")
@click.option("--budget", default="60s", show_default=True, help="How long all runs may take: 90s or 10m.")
@click.option("--only", metavar="VARIATION", help="Run this variation only, such as webhook:2:twice.")
@click.option(
    "--report",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write it into this .html or .json file.",
)
@click.option("--json", "as_json", is_flag=True, help="Print it as JSON.")
@click.argument("command", nargs=-1, required=True)
def rehearse(
    budget: str, only: str | None, report: Path | None, as_json: bool, command: tuple[str, ...]
) -> None:
    """Run a suite again and again, with one thing changed at a time.

    The suite finds a server of its own at SANDBOX_URL, with the key in SANDBOX_API_KEY, and may create
    projects. Its exit code is the verdict. It runs as it is first, and must pass.
    """
    from payment_sandbox.rehearsal.exploring import parse_variation
    from payment_sandbox.rehearsal.report import lines_of, summary, told, write
    from payment_sandbox.rehearsal.suites import Suite, SuiteFails

    seconds = _seconds(budget)
    if report is not None and report.suffix not in REPORTS:
        fail(f"--report takes an .html or a .json file, not {str(report)!r}")
    try:
        variation = parse_variation(only) if only else ()
        explored = Suite(command, {}).explore(seconds, variation)
    except (SuiteFails, ValueError) as wrong:
        fail(str(wrong))
    except OSError as error:
        fail(f"cannot run {command[0]!r}: {error.strerror}")
    name = " ".join(command)
    test = told(name, explored, lambda finding: f'payment-sandbox rehearse --only "{finding.name}" -- {name}')
    if report is not None:
        write(report, [test])
    print(
        json.dumps(test)
        if as_json
        else "\n".join([*lines_of(test), summary([test], "suite"), *explored.notes])
    )
    sys.exit(1 if explored.findings else 0)


def _seconds(text: str) -> float:
    number, unit = (text[:-1], text[-1:]) if text[-1:] in UNITS else (text, "s")
    try:
        return float(number) * UNITS[unit]
    except ValueError:
        fail(f"--budget takes 60s or 10m, not {text!r}")
