"""Grades solutions of the tasks: a solution passes if its hidden rehearsal finds nothing."""

import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple

HERE: Final = Path(__file__).parent
TASKS: Final = {path.name: path for path in sorted((HERE / "tasks").iterdir()) if path.is_dir()}
GIVEN: Final = HERE / "given"
SHOP: Final = "shop.py"
SECONDS: Final = 600  # more than all variations take, so that a busy machine grades as an idle one
OPTIONS: Final = ("--payment-rehearse", f"--payment-rehearse-budget={SECONDS}s", "--payment-review=error")


class Grade(NamedTuple):
    """Whether a solution passes, and what was found in it."""

    passed: bool
    findings: list[str]
    text: str


def starting(task: str) -> dict[str, str]:
    """What an agent gets: the task, the shop to complete, and what it builds on."""
    shop = (TASKS[task] / SHOP).read_text(encoding="utf-8")
    names = [name for name in ("frame.py", "cards.py") if name == "frame.py" or "from cards import" in shop]
    given = {name: (GIVEN / name).read_text(encoding="utf-8") for name in names}
    return {"TASK.md": (TASKS[task] / "TASK.md").read_text(encoding="utf-8"), SHOP: shop, **given}


def grade(task: str, shop: str) -> Grade:
    """Rehearse a solution: ``shop`` is the text of its ``shop.py``."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for file, text in {**starting(task), SHOP: shop}.items():
            (folder / file).write_text(text, encoding="utf-8")
        shutil.copyfile(HERE / "hidden_fixtures.py", folder / "conftest.py")
        shutil.copyfile(TASKS[task] / "hidden.py", folder / "test_grade.py")
        report = folder / "report.json"
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:randomly", "-p", "no:cacheprovider"]
        ran = subprocess.run(
            [*command, *OPTIONS, f"--payment-rehearse-report={report}"],
            cwd=folder, capture_output=True, text=True, check=False, timeout=800,
        )  # fmt: skip
        tests = json.loads(report.read_text(encoding="utf-8"))["tests"] if report.exists() else []
    findings = [
        f"{each['variation'] or 'as it is'}: {each['sentence']}"
        for test in tests
        for each in test["findings"]
    ]
    return Grade(ran.returncode == 0, findings, re.sub(r"\x1b\[[0-9;]*m", "", ran.stdout + ran.stderr))


def begin(folder: Path) -> None:
    """Write the starting shop of every task into a folder, for agents to complete."""
    for task in TASKS:
        (folder / task).mkdir(parents=True, exist_ok=True)
        for name, text in starting(task).items():
            (folder / task / name).write_text(text, encoding="utf-8")


def grade_all(folder: Path) -> Mapping[str, Grade]:
    """Grade a folder of solutions: one folder per task, with its ``shop.py``; a missing one fails."""
    grades = {}
    for task in TASKS:
        shop = folder / task / SHOP
        grades[task] = (
            grade(task, shop.read_text()) if shop.is_file() else Grade(False, [f"there is no {shop}"], "")
        )
    return grades
