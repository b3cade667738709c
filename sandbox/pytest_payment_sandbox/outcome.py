"""What a command that rehearses has shown: printed, written into a file, and remembered."""

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, NoReturn, TypeVar

from payment_sandbox.cli.noted import JSON, TEXT, Noted, printed
from payment_sandbox.cli.options import fail, say

if TYPE_CHECKING:
    from pytest_payment_sandbox.rehearsal.exploring import Explored
    from pytest_payment_sandbox.rehearsal.progress import Progress
    from pytest_payment_sandbox.rehearsal.remembering import Remembered

Asked = TypeVar("Asked")

INTERRUPTED: Final = 130  # as shells report it
GO_ON: Final = "not everything was tried: --continue goes on where this ended"


class Output(NamedTuple):
    """Where and how a report is written and printed."""

    name: str
    report: Path | None
    form: str
    of: str  # what is rehearsed: a test, a suite or a shop

    def finish(self, tests: Sequence[Mapping[str, Any]], *, is_partial: bool, is_stopped: bool) -> NoReturn:
        """Print and write the reports of the tests, and exit: with 1 if there are findings."""
        from pytest_payment_sandbox.rehearsal.report import write

        if self.report is not None:
            write(self.report, tests, self.of)
        notes = [note for test in tests for note in test["notes"]]
        notes += [GO_ON] if is_partial or is_stopped else []
        notes += [f"all of it is in {self.report}"] if self.report is not None else []
        say(*self._shown(tests, notes))
        has_findings = any(test["findings"] for test in tests)
        sys.exit(INTERRUPTED if is_stopped else int(has_findings))

    def _shown(self, tests: Sequence[Mapping[str, Any]], notes: Sequence[str]) -> list[str]:
        from pytest_payment_sandbox.rehearsal.report import lines_of, summary

        is_test = self.of == "test"
        if self.form == JSON:
            return [json.dumps(_merged(self.name, tests) if is_test else tests[0])]
        if self.form == TEXT:
            lines = [line for test in tests for line in lines_of(test, with_name=is_test)]
            return [*lines, summary(tests, self.of), *notes]
        noted = [
            Noted(
                finding["kind"],
                f"{test['test']}: {finding['sentence']}" if is_test else finding["sentence"],
                finding["lesson"],
            )
            for test in tests
            for finding in test["findings"]
        ]
        return printed(noted, self.form, "rehearse")


def _merged(name: str, tests: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The findings of all tests, each with its test, and the tests themselves."""
    return {
        "test": name,
        **{key: sum(test[key] for test in tests) for key in ("variations", "left", "alike", "repeated")},
        "notes": [note for test in tests for note in test["notes"]],
        "findings": [{"test": test["test"], **each} for test in tests for each in test["findings"]],
        "tests": list(tests),
    }


def refuse_unplayed(only: Sequence[str], explored: "Sequence[Explored]") -> None:
    """End the program if one of the only variations has no step in any test."""
    unplayed = [each.unplayed for each in explored]
    missed = [problem for problem in unplayed[0] if all(problem in each for each in unplayed)]
    if missed:
        fail(f"{'; '.join(missed)}: --only {' '.join(only)} was not played")


def remember(name: str, remembered: "Mapping[str, Remembered]", *, is_partial: bool) -> None:
    """Remember what was tried, if something is left to try."""
    from pytest_payment_sandbox.rehearsal.state_file import write_state

    write_state(name, remembered if is_partial else {})


def progress_on_stderr() -> "Progress":
    """The progress of a command."""
    from pytest_payment_sandbox.rehearsal.progress import Progress

    return Progress(lambda line: say(f"payment-sandbox: {line}", to_stderr=True))


def checked(option: str, check: Callable[[str], Asked], text: str) -> Asked:
    """Read the text of an option; one that is wrong ends the program."""
    try:
        return check(text)
    except ValueError as wrong:
        fail(f"{option} {wrong}")
