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

FOLDER: Final = Path(__file__).parent
TASKS: Final = {path.name: path for path in sorted((FOLDER / "tasks").iterdir()) if path.is_dir()}
GIVEN: Final = FOLDER / "given"
SHOP: Final = "shop.py"
SECONDS: Final = 600  # more than all variations need, so that grades do not depend on the load of the machine
OPTIONS: Final = ("--payment-rehearse", f"--payment-rehearse-budget={SECONDS}s", "--payment-review=error")


class Grade(NamedTuple):
    """The grade of a solution: whether it passes, the findings, and the output of pytest."""

    passed: bool
    findings: list[str]
    text: str


def starting_files(task: str) -> dict[str, str]:
    """Return the files that an agent gets: the task, the shop to complete, and the modules it builds on."""
    shop = (TASKS[task] / SHOP).read_text(encoding="utf-8")
    names = [name for name in ("frame.py", "cards.py") if name == "frame.py" or "from cards import" in shop]
    given = {name: (GIVEN / name).read_text(encoding="utf-8") for name in names}
    return {"TASK.md": (TASKS[task] / "TASK.md").read_text(encoding="utf-8"), SHOP: shop, **given}


def grade(task: str, shop: str) -> Grade:
    """Rehearse a solution; ``shop`` is the text of its ``shop.py``."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for file, text in {**starting_files(task), SHOP: shop}.items():
            (folder / file).write_text(text, encoding="utf-8")
        shutil.copyfile(FOLDER / "hidden_fixtures.py", folder / "conftest.py")
        shutil.copyfile(TASKS[task] / "hidden.py", folder / "test_grade.py")
        report = folder / "report.json"
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:randomly", "-p", "no:cacheprovider"]
        completed = subprocess.run(
            [*command, *OPTIONS, f"--payment-rehearse-report={report}"],
            cwd=folder, capture_output=True, text=True, check=False, timeout=800,
        )  # fmt: skip
        tests = json.loads(report.read_text(encoding="utf-8"))["tests"] if report.exists() else []
    findings = [
        f"{each['variation'] or 'without variation'}: {each['sentence']}"
        for test in tests
        for each in test["findings"]
    ]
    return Grade(
        completed.returncode == 0,
        findings,
        re.sub(r"\x1b\[[0-9;]*m", "", completed.stdout + completed.stderr),
    )


def write_tasks(folder: Path) -> None:
    """Write the starting files of every task into a folder, for agents to complete."""
    for task in TASKS:
        (folder / task).mkdir(parents=True, exist_ok=True)
        for name, text in starting_files(task).items():
            (folder / task / name).write_text(text, encoding="utf-8")


def grade_all(folder: Path) -> Mapping[str, Grade]:
    """Grade a folder of solutions, one folder with a ``shop.py`` per task; a missing solution fails."""
    grades = {}
    for task in TASKS:
        shop = folder / task / SHOP
        grades[task] = (
            grade(task, shop.read_text()) if shop.is_file() else Grade(False, [f"there is no {shop}"], "")
        )
    return grades
