"""The project of each framework's page passes in a fresh environment with the wheels."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from payment_sandbox.ui.docs.library import read_source
from tests.howto.environments import install_wheel
from tests.requirements import declared
from tests.support.blocks import blocks
from tests.support.commands import run_program
from tests.support.documentation import ROOT, run_command
from tests.support.environments import cached, made_once
from tests.support.tools import unavailable

PROJECTS = ROOT / "tests" / "howto" / "projects"
OFFLINE = ("Failed to establish a new connection", "Temporary failure in name resolution")
PYTEST = ("pytest", "-q", "-p", "no:cacheprovider")
IN_PARALLEL = ("-n", "2")
ENVIRONMENTS: dict[str, tuple[str, dict[str, str], tuple[str, ...], tuple[str, ...]]] = {
    # the project, replaced versions of its requirements, the command of its tests, and options of a second run
    "Django 5.2": ("django", {}, PYTEST, IN_PARALLEL),
    "Django 4.2": ("django", {"Django": "4.2.30"}, PYTEST, ()),
    "FastAPI": ("fastapi", {}, PYTEST, ()),
    "Flask 2.3 with SQLAlchemy": ("flask", {}, PYTEST, ()),
    "unittest": ("unittest", {}, ("python", "-W", "error", "-m", "unittest"), ()),
    "asyncio": ("asyncio", {}, PYTEST, IN_PARALLEL),
    "Celery": ("celery", {}, PYTEST, ()),
}
PAGES = {"django": ("django", "celery", "unittest"), "fastapi": ("fastapi", "asyncio"), "pytest": ("flask",)}
"""The projects of each page; each has its own section."""

PAGE_OF = {project: page for page, projects in PAGES.items() for project in projects}
HEADINGS = {
    "flask": "Flask with SQLAlchemy",
    "celery": "Celery",
    "unittest": "unittest",
    "asyncio": "Async tests",
}


def section_of(project: str) -> str:
    """Return the part of a page about a project."""
    text = read_source(PAGE_OF[project])
    parts = re.split(r"^## (Flask with SQLAlchemy|Celery|unittest|Async tests)$", text, flags=re.MULTILINE)
    sections = dict(zip(parts[1::2], parts[2::2], strict=True))
    return sections[HEADINGS[project]] if project in HEADINGS else parts[0]


def environment_of(project: str, versions: dict[str, str]) -> Path:
    """Return the programs of an environment with the project's requirements and ours; it is made once."""
    required = (PROJECTS / project / "requirements.txt").read_text().split()
    for name, version in versions.items():
        required = [f"{name}=={version}" if line.startswith(f"{name}==") else line for line in required]
    needed = requirements_of(project)

    def make(folder: Path) -> None:
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True, timeout=120)
        pip = [str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet", "--no-compile"]
        command = [*pip, "--disable-pip-version-check", *required, *needed]
        result = run_program(command, None, 280)
        if any(words in result.stderr for words in OFFLINE):
            unavailable(f"the packages of this environment cannot be fetched: {result.stderr[-2000:]}")
        assert result.returncode == 0, result.stdout[-2000:] + result.stderr[-2000:]

    return cached(project, [*required, *needed], make) / "bin"


def requirements_of(project: str) -> list[str]:
    """Return what the sandbox requires, with the extra that the project's page installs, and pytest."""
    declaration = declared()["project"]
    extra = declaration["optional-dependencies"]["server"] if "clone[server]" in section_of(project) else []
    return [*declaration["dependencies"], *extra, *([] if project == "unittest" else ["pytest>=8.3"])]


@pytest.fixture
def ours(shared: Path, wheel: Path) -> Path:
    """The folder of our packages, from the wheel."""
    return made_once(
        shared / "packages",
        lambda folder: install_wheel(wheel, ["install", "--target", str(folder)]),
    )


def write_as_shown(project: str, folder: Path) -> None:
    """Write the files that the project's page shows, and no others."""
    for block in blocks(section_of(project)):
        if block.file:
            (folder / block.file).parent.mkdir(parents=True, exist_ok=True)
            (folder / block.file).write_text(block.text)


@pytest.mark.prove
@pytest.mark.parametrize(
    ("project", "versions", "command", "options"), ENVIRONMENTS.values(), ids=ENVIRONMENTS
)
def test_a_project_passes_in_an_environment_of_its_own(
    project: str,
    versions: dict[str, str],
    command: tuple[str, ...],
    options: tuple[str, ...],
    ours: Path,
    tmp_path: Path,
) -> None:
    """The project passes as pasted; some projects also pass on two workers."""
    programs = environment_of(project, versions)
    write_as_shown(project, tmp_path)
    for more in ((), options) if options else ((),):
        path = f"{programs}:/usr/bin:/bin"
        result = run_command([*command, *more], tmp_path, PATH=path, PYTHONPATH=str(ours))
        assert result.returncode == 0, result.stdout[-4000:] + result.stderr[-2000:]
        assert "warning" not in result.stdout, result.stdout[-2000:]


@pytest.mark.parametrize("project", PAGE_OF)
def test_a_page_shows_its_project(project: str) -> None:
    """Each shown file equals the tested file, and the page shows all files that a newcomer must write."""
    folder = PROJECTS / project
    shown = {block.file: block.text for block in blocks(section_of(project)) if block.file}
    for name, text in shown.items():
        assert (folder / name).read_text() == text, f"{name} on the page differs from {folder / name}"
    files = {str(path.relative_to(folder)) for path in folder.rglob("*.*") if "__pycache__" not in path.parts}
    unshown = {name for name in files - set(shown) if (folder / name).read_text().strip()}
    assert unshown <= {"requirements.txt"}
