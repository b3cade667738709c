"""The command that rehearses a suite in any language."""

import shlex
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import click

from payment_sandbox.cli.noted import JSON, format_option
from payment_sandbox.cli.options import fail
from pytest_payment_sandbox.outcome import Output, checked, progress_on_stderr, refuse_unplayed, remember

if TYPE_CHECKING:
    from pytest_payment_sandbox.rehearsal.exploring import RehearsalFinding
    from pytest_payment_sandbox.rehearsal.suites import SuiteExplored

WHOLE: Final = ""  # the name of what no test is announced for


class Options(NamedTuple):
    """What the options of a rehearsal say, as text."""

    budget: str
    only: tuple[str, ...]
    test: str
    one: str | None
    books: str | None
    pages: tuple[str, ...]
    goes_on: bool
    report: Path | None
    as_json: bool
    form: str
    command: tuple[str, ...]

    @property
    def name(self) -> str:
        """The command as users type it."""
        return shlex.join(self.command)

    def again(self, test: str, finding: "RehearsalFinding") -> str:
        """The command that plays a finding of a test again."""
        named = {"--test": test, "--one": self.one, "--books": self.books}
        words = [part for option, text in named.items() if text for part in (option, text)]
        words += [part for page in self.pages for part in ("--pages", page)]
        return f'payment-sandbox rehearse --only "{finding.name}" {shlex.join([*words, "--"])} {self.name}'


@click.command(epilog="Example: payment-sandbox rehearse -- npm test")
@click.option("--budget", default="60s", show_default=True, help="How long all runs may take: 90s or 10m.")
@click.option(
    "--only", multiple=True, metavar="VARIATION", help="Run these variations only: webhook:2:twice."
)
@click.option("--test", default="", metavar="NAME", help="Rehearse the tests with this in their names only.")
@click.option("--one", metavar="COMMAND", help="Runs a single test: 'npx vitest run -t {test}'.")
@click.option("--books", metavar="URL|COMMAND", help="Tells the shop's books: a JSON list of entries.")
@click.option(
    "--pages", multiple=True, metavar="URL", help="A page about an order: http://localhost:3000/{order_id}."
)
@click.option("--continue", "goes_on", is_flag=True, help="Go on where the last rehearsal was stopped.")
@click.option(
    "--report",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write it into this .html or .json file.",
)
@click.option("--json", "as_json", is_flag=True, help="Print it as JSON.")
@format_option
@click.argument("command", nargs=-1, required=True)
def rehearse(**options: Any) -> None:
    """Run a suite again and again, with one thing changed at a time.

    The suite finds a server of its own at SANDBOX_URL, with the key in SANDBOX_API_KEY. Each test with a
    project of the helpers for Node and PHP is judged on its own; without them, the exit code is the verdict.
    The suite runs as it is first, and must pass.
    """
    from pytest_payment_sandbox.rehearsal.suites import SuiteFails

    asked = Options(**options)
    try:
        explored = _explored(asked)
    except (SuiteFails, ValueError) as wrong:
        fail(str(wrong))
    except OSError as error:
        fail(f"cannot run {asked.command[0]!r}: {error.strerror}")
    _tell(asked, explored)


def _explored(asked: Options) -> "SuiteExplored":
    from pytest_payment_sandbox.rehearsal.announced import Outside
    from pytest_payment_sandbox.rehearsal.exploring import parse_variation
    from pytest_payment_sandbox.rehearsal.outside import BooksElsewhere
    from pytest_payment_sandbox.rehearsal.run import check_report, seconds_of
    from pytest_payment_sandbox.rehearsal.state_file import read_state
    from pytest_payment_sandbox.rehearsal.suites import TEST, Plan, Suite

    seconds = checked("--budget", seconds_of, asked.budget)
    if asked.report is not None:
        checked("--report", check_report, str(asked.report))
    if asked.one is not None and TEST not in asked.one:
        fail(f"--one takes a command with {TEST} where the name of the test belongs, not {asked.one!r}")
    books = checked("--books", BooksElsewhere, asked.books) if asked.books else None
    plan = Plan(
        seconds,
        [parse_variation(name) for name in asked.only],
        asked.test,
        asked.one,
        read_state(asked.name) if asked.goes_on else {},
    )
    return Suite(asked.command, Outside(books, asked.pages), progress_on_stderr()).explore(plan)


def _tell(asked: Options, explored: "SuiteExplored") -> None:
    """Remember what is needed to go on, print and write the report, and exit."""
    from pytest_payment_sandbox.rehearsal.report import report_of

    refuse_unplayed(asked.only, list(explored.tests.values()))
    tests = [
        report_of(name or asked.name, each, partial(asked.again, name))
        for name, each in explored.tests.items()
    ]
    is_partial = explored.is_stopped or any(test["left"] for test in tests)
    if not asked.only:
        remember(asked.name, explored.remembered, is_partial=is_partial)
    of = "suite" if list(explored.tests) == [WHOLE] else "test"
    output = Output(asked.name, asked.report, JSON if asked.as_json else asked.form, of)
    output.finish(tests, is_partial=is_partial, is_stopped=explored.is_stopped)
