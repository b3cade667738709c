"""Copies the sock shop with a mistake, and rehearses its happy tests, with and without books."""

import json
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any, Final, NamedTuple

from payment_sandbox.serving.realtime import monotonic_seconds
from tests.rehearsal.mistakes import MISTAKES
from tests.support.documentation import SHOP

BUDGET: Final = "60s"
COUNTERS: Final = ("variations", "alike", "repeated", "left")
HAPPY = Path(__file__).parent / "happy_tests.py"


class RehearsalResult(NamedTuple):
    """The result of a rehearsal."""

    code: int
    text: str
    seconds: float
    tests: list[dict[str, Any]]

    @property
    def findings(self) -> list[dict[str, str]]:
        """The findings of all tests."""
        return [finding for test in self.tests for finding in test["findings"]]

    def count(self, name: str) -> int:
        """Return the sum of a counter over all tests."""
        return sum(test[name] for test in self.tests)


def plant_mistake(folder: Path, mistake: str | None, *, has_books: bool = True) -> Path:
    """Copy the shop with its happy tests, and plant a mistake."""
    shutil.copytree(SHOP, folder / "sock_shop", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copyfile(HAPPY, folder / "sock_shop" / "test_shop.py")
    for edit in MISTAKES[mistake] if mistake is not None else ():
        path = folder / "sock_shop" / edit.file
        text = path.read_text()
        assert text.count(edit.right) == 1, f"{mistake}: {edit.right!r} occurs {text.count(edit.right)} times"
        path.write_text(text.replace(edit.right, edit.wrong))
    if not has_books:
        conftest = folder / "sock_shop" / "conftest.py"
        conftest.write_text(conftest.read_text().replace("def payment_books(", "def unread_books("))
    return folder


def run_suite(folder: Path, *options: str) -> RehearsalResult:
    """Run the suite of a folder, with or without the options of a rehearsal."""
    started, report = monotonic_seconds(), folder / "report.json"
    report.unlink(missing_ok=True)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:randomly", "-p", "no:cacheprovider", *options]
    report_option = [f"--payment-rehearse-report={report}"] if options else []
    result = subprocess.run(
        [*command, *report_option], cwd=folder, capture_output=True, text=True, check=False, timeout=280
    )
    tests = json.loads(report.read_text())["tests"] if report.exists() else []
    return RehearsalResult(
        result.returncode, result.stdout + result.stderr, monotonic_seconds() - started, tests
    )


def rehearse_mistake(mistake: str | None, *, has_books: bool) -> RehearsalResult:
    """Rehearse a copy of the shop, whose happy tests must pass unchanged."""
    with tempfile.TemporaryDirectory() as name:
        folder = plant_mistake(Path(name), mistake, has_books=has_books)
        plain = run_suite(folder)
        assert plain.code == 0, f"the happy tests find {mistake!r}:\n{plain.text}"
        return run_suite(folder, "--payment-rehearse", f"--payment-rehearse-budget={BUDGET}")


def format_result(mistake: str | None, result: RehearsalResult, *, has_books: bool) -> str:
    """Format a rehearsal as a line of JSON."""
    summary = {
        "mistake": mistake,
        "books": has_books,
        "found": bool(result.findings),
        "seconds": round(result.seconds, 1),
        **{name: result.count(name) for name in COUNTERS},
        "by": [
            f"{finding['variation'] or 'unchanged'}: {finding['sentence']}" for finding in result.findings
        ],
    }
    return json.dumps(summary, ensure_ascii=False)


def share(counts: Counter[str]) -> float:
    """Return the share of completed variations that ended like another one."""
    return round(counts["repeated"] / max(1, counts["variations"] - counts["alike"]), 2)


def main() -> None:
    """Plant the named mistakes, or all of them, and print the findings of each as JSON lines.

    The shop without a mistake comes first: a finding there would count for every mistake. The last line has
    the shares of completed variations that ended in a state which another one had reached."""
    found_counts, counts, is_clean = Counter[bool](), {True: Counter[str](), False: Counter[str]()}, True
    mistakes = [None, *(sys.argv[1:] or MISTAKES)]
    for mistake in mistakes:
        for has_books in (True, False):
            result = rehearse_mistake(mistake, has_books=has_books)
            print(format_result(mistake, result, has_books=has_books), flush=True)
            found_counts[has_books] += mistake is not None and bool(result.findings)
            is_clean = is_clean and (mistake is not None or not result.findings)
            counts[has_books].update({name: result.count(name) for name in COUNTERS})
    mistake_count = len(mistakes) - 1
    summary = {
        "mistakes": mistake_count,
        "with_books": found_counts[True],
        "without_books": found_counts[False],
        "variations": sum(counts[has_books]["variations"] for has_books in counts),
        "repeated": share(counts[True]),
        "repeated_without_books": share(counts[False]),
    }
    print(json.dumps(summary))
    sys.exit(0 if is_clean and found_counts[True] == mistake_count else 1)


if __name__ == "__main__":
    main()
