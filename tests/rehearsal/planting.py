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
COUNTED: Final = ("variations", "alike", "repeated", "left")
HAPPY = Path(__file__).parent / "happy_tests.py"


class Rehearsed(NamedTuple):
    """What a rehearsal said."""

    code: int
    text: str
    seconds: float
    tests: list[dict[str, Any]]

    @property
    def findings(self) -> list[dict[str, str]]:
        """The findings of all tests."""
        return [finding for test in self.tests for finding in test["findings"]]

    def count(self, name: str) -> int:
        """A number of all tests together."""
        return sum(test[name] for test in self.tests)


def planted(folder: Path, mistake: str | None, *, has_books: bool = True) -> Path:
    """A copy of the shop with happy tests and a mistake."""
    shutil.copytree(SHOP, folder / "sock_shop", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copyfile(HAPPY, folder / "sock_shop" / "test_shop.py")
    for edit in MISTAKES[mistake] if mistake is not None else ():
        path = folder / "sock_shop" / edit.file
        text = path.read_text()
        assert text.count(edit.right) == 1, (
            f"{mistake}: {edit.right!r} is there {text.count(edit.right)} times"
        )
        path.write_text(text.replace(edit.right, edit.wrong))
    if not has_books:
        conftest = folder / "sock_shop" / "conftest.py"
        conftest.write_text(conftest.read_text().replace("def payment_books(", "def unread_books("))
    return folder


def rehearse(folder: Path, *options: str) -> Rehearsed:
    """Run the suite of a folder, as it is or with the options of a rehearsal."""
    begun, report = monotonic_seconds(), folder / "report.json"
    report.unlink(missing_ok=True)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:randomly", "-p", "no:cacheprovider", *options]
    told = [f"--payment-rehearse-report={report}"] if options else []
    ran = subprocess.run(
        [*command, *told], cwd=folder, capture_output=True, text=True, check=False, timeout=280
    )
    tests = json.loads(report.read_text())["tests"] if report.exists() else []
    return Rehearsed(ran.returncode, ran.stdout + ran.stderr, monotonic_seconds() - begun, tests)


def rehearsed(mistake: str | None, *, has_books: bool) -> Rehearsed:
    """Rehearse a copy of the shop; its happy tests must pass as they are."""
    with tempfile.TemporaryDirectory() as name:
        folder = planted(Path(name), mistake, has_books=has_books)
        plain = rehearse(folder)
        assert plain.code == 0, f"the happy tests find {mistake!r}:\n{plain.text}"
        return rehearse(folder, "--payment-rehearse", f"--payment-rehearse-budget={BUDGET}")


def shown(mistake: str | None, done: Rehearsed, *, has_books: bool) -> str:
    """One rehearsal as a line of JSON."""
    told = {
        "mistake": mistake,
        "books": has_books,
        "found": bool(done.findings),
        "seconds": round(done.seconds, 1),
        **{name: done.count(name) for name in COUNTED},
        "by": [f"{finding['variation'] or 'as it is'}: {finding['sentence']}" for finding in done.findings],
    }
    return json.dumps(told, ensure_ascii=False)


def share(counts: Counter[str]) -> float:
    """The part of the variations played to the end that ended like another one."""
    return round(counts["repeated"] / max(1, counts["variations"] - counts["alike"]), 2)


def main() -> None:
    """Plant the mistakes, all or those that are named, and print what finds each, as JSON lines.

    The shop without a mistake comes first: what it gives a finding for would find every mistake. The last
    line has the shares of the variations that were played to an end which another one had reached.
    """
    found, counts, is_silent = Counter[bool](), {True: Counter[str](), False: Counter[str]()}, True
    mistakes = [None, *(sys.argv[1:] or MISTAKES)]
    for mistake in mistakes:
        for has_books in (True, False):
            done = rehearsed(mistake, has_books=has_books)
            print(shown(mistake, done, has_books=has_books), flush=True)
            found[has_books] += mistake is not None and bool(done.findings)
            is_silent = is_silent and (mistake is not None or not done.findings)
            counts[has_books].update({name: done.count(name) for name in COUNTED})
    of = len(mistakes) - 1
    summary = {
        "mistakes": of,
        "with_books": found[True],
        "without_books": found[False],
        "variations": sum(counts[has_books]["variations"] for has_books in counts),
        "repeated": share(counts[True]),
        "repeated_without_books": share(counts[False]),
    }
    print(json.dumps(summary))
    sys.exit(0 if is_silent and found[True] == of else 1)


if __name__ == "__main__":
    main()
