"""Copies the sock shop with a mistake, and rehearses its happy tests."""

import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from payment_sandbox.serving.realtime import monotonic_seconds
from tests.rehearsal.mistakes import MISTAKES
from tests.support.documentation import SHOP

HAPPY = Path(__file__).parent / "happy_tests.py"


class Rehearsed(NamedTuple):
    """What a rehearsal said."""

    code: int
    text: str
    seconds: float
    findings: list[dict[str, str]]


def planted(folder: Path, mistake: str | None) -> Path:
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
    findings = [finding for test in tests for finding in test["findings"]]
    return Rehearsed(ran.returncode, ran.stdout + ran.stderr, monotonic_seconds() - begun, findings)


def main() -> None:
    """Plant the mistakes, all or those that are named, and print what finds each, as JSON lines."""
    missed = 0
    for mistake in sys.argv[1:] or MISTAKES:
        with tempfile.TemporaryDirectory() as name:
            folder = planted(Path(name), mistake)
            plain = rehearse(folder)
            done = rehearse(folder, "--payment-rehearse", "--payment-rehearse-budget=60s")
        missed += plain.code != 0 or done.code != 1
        told = {
            "mistake": mistake,
            "found": done.code == 1 and plain.code == 0,
            "seconds": round(done.seconds, 1),
            "by": [
                f"{finding['variation'] or 'as it is'}: {finding['sentence']}" for finding in done.findings
            ],
        }
        print(json.dumps(told, ensure_ascii=False), flush=True)
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    main()
