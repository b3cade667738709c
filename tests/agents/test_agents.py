"""The benchmark of coding agents: reference solutions pass, plausible wrong ones fail, and the tools leak no grade."""

import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from payment_sandbox.cli.agent_tools import SandboxTools
from payment_sandbox.cli.mcp import INSTRUCTIONS, TOOLS
from payment_sandbox.web.docs.library import PAGE_NAMES, overview, read_source, skill
from tests.agents.grading import TASKS, grade, grade_all, starting_files, write_tasks
from tests.support.documentation import ROOT

REVEALING_LENGTH = 40  # characters: a shorter line reveals nothing about a task
every_task = pytest.mark.parametrize("task", TASKS)


def test_there_are_ten_complete_tasks() -> None:
    """Each task has a text, a starting shop, a hidden rehearsal, a reference and a wrong solution."""
    assert len(TASKS) == 10
    for folder in TASKS.values():
        files = {path.name for path in folder.iterdir() if path.name != "__pycache__"}
        assert files == {"TASK.md", "shop.py", "hidden.py", "solution.py", "wrong.py"}
        assert (folder / "TASK.md").read_text().startswith("# ")


@pytest.mark.prove
@pytest.mark.timeout(900)
@every_task
def test_the_reference_solution_passes(task: str) -> None:
    """The hidden rehearsal has no findings for the reference solution."""
    graded = grade(task, (TASKS[task] / "solution.py").read_text())
    assert graded.findings == []
    assert graded.passed, graded.text[-3000:]


@pytest.mark.prove
@pytest.mark.timeout(900)
@every_task
def test_a_plausible_wrong_solution_fails(task: str) -> None:
    """The hidden rehearsal of a wrong solution has findings, or fails an assertion."""
    graded = grade(task, (TASKS[task] / "wrong.py").read_text())
    assert not graded.passed
    assert graded.findings or "AssertionError" in graded.text or "assert " in graded.text, graded.text[-3000:]


@pytest.mark.prove
@pytest.mark.timeout(900)
@every_task
def test_the_starting_shop_fails(task: str) -> None:
    """The starting shop of a task is incomplete."""
    assert not grade(task, starting_files(task)["shop.py"]).passed


@cache
def agent_texts() -> str:
    """Return all texts for agents: the skill, ``/llms.txt``, every page, and the tools' descriptions."""
    tools = [str(getattr(SandboxTools, name).__doc__) for name in TOOLS]
    pages = list(map(read_source, PAGE_NAMES))
    return "\n".join([skill(), overview("http://127.0.0.1:8080/docs/"), INSTRUCTIONS, *tools, *pages])


def revealing_lines(text: str) -> set[str]:
    """Return the lines that are long enough to reveal something about a task."""
    return {line.strip() for line in text.splitlines() if len(line.strip()) >= REVEALING_LENGTH}


@every_task
def test_nothing_in_the_tools_leaks_the_grade(task: str) -> None:
    """The texts for agents contain no line of the hidden rehearsal or the solution, and no path to them."""
    public_lines = revealing_lines(agent_texts())
    hidden = revealing_lines((TASKS[task] / "hidden.py").read_text())
    given = "\n".join(starting_files(task).values())
    own = revealing_lines((TASKS[task] / "solution.py").read_text()) - revealing_lines(given)
    general = {line for line in hidden | own if line.startswith(("@pytest.", "import ", "from "))}
    private = (hidden | own) - general
    assert private
    assert private & public_lines == set()
    assert "tests/agents" not in "\n".join(public_lines)
    assert "hidden_fixtures" not in given


def test_the_packages_do_not_mention_the_benchmark() -> None:
    """The installed packages do not mention the benchmark."""
    text = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "sandbox").rglob("*.py"))
    assert [name for name in ("hidden_fixtures", "tests.agents", "tests/agents") if name in text] == []


def test_tasks_begin_in_a_new_folder_and_missing_solutions_fail(tmp_path: Path) -> None:
    """An agent gets the task and the shop, and neither the grade nor the solution."""
    folder = tmp_path / "tasks"
    command = [sys.executable, "-m", "tests.agents", str(folder)]
    completed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=60)
    assert (completed.returncode, "10 tasks" in completed.stdout) == (0, True)
    for task in TASKS:
        files = {path.name for path in (folder / task).iterdir()}
        assert files in ({"TASK.md", "shop.py", "frame.py"}, {"TASK.md", "shop.py", "frame.py", "cards.py"})
    assert {path.read_text() for path in folder.rglob("TASK.md")} == {
        starting_files(task)["TASK.md"] for task in TASKS
    }
    empty = tmp_path / "empty"
    empty.mkdir()
    assert all(
        graded.findings == [f"there is no {empty / task / 'shop.py'}"]
        for task, graded in grade_all(empty).items()
    )
    second = tmp_path / "second"
    write_tasks(second)
    assert (second / "parcels" / "shop.py").is_file()
