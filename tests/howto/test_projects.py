"""The project of each framework's page passes in a fresh environment with the wheels."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from payment_sandbox.web.docs.library import read_source
from tests.support.blocks import blocks
from tests.support.documentation import ROOT, run_command
from tests.support.tools import unavailable

PROJECTS = ROOT / "tests" / "howto" / "projects"
OFFLINE = ("Failed to establish a new connection", "Temporary failure in name resolution")
PYTEST = ("pytest", "-q", "-p", "no:cacheprovider")
ENVIRONMENTS: dict[str, tuple[str, dict[str, str], tuple[str, ...]]] = {
    # the project, replaced versions of its requirements, and the command of its tests
    "Django 5.2": ("django", {}, PYTEST),
    "Django 4.2": ("django", {"Django": "4.2.30"}, PYTEST),
    "FastAPI": ("fastapi", {}, PYTEST),
    "Flask 2.3 with SQLAlchemy": ("flask", {}, PYTEST),
    "unittest": ("unittest", {}, ("python", "-W", "error", "-m", "unittest")),
    "asyncio": ("asyncio", {}, PYTEST),
    "Celery": ("celery", {}, PYTEST),
}
IN_PARALLEL = ("Django 5.2", "FastAPI", "asyncio")
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


def create_environment(folder: Path, wheels: list[str], project: str, versions: dict[str, str]) -> Path:
    """Create an environment with the wheels and the project's requirements; return its programs."""
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True, timeout=120)
    required = (PROJECTS / project / "requirements.txt").read_text().split()
    for name, version in versions.items():
        required = [f"{name}=={version}" if line.startswith(f"{name}==") else line for line in required]
    install = [str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet", "--no-compile"]
    result = subprocess.run(
        [*install, "--disable-pip-version-check", *wheels, *required],
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    if any(words in result.stderr for words in OFFLINE):
        unavailable(f"the packages of this environment cannot be fetched: {result.stderr[-2000:]}")
    assert result.returncode == 0, result.stdout[-2000:] + result.stderr[-2000:]
    return folder / "bin"


def required_wheels(project: str, wheels: list[Path]) -> list[str]:
    """Return the wheels that the project's page installs, with their extras."""
    names = ["payment_sandbox"] if project == "unittest" else ["payment_sandbox", "pytest_payment_sandbox"]
    extra = "[server]" if "clone[server]" in section_of(project) else ""
    ours = {wheel.name.partition("-")[0]: str(wheel) for wheel in wheels}
    return [f"{ours[name]}{extra if name == names[0] else ''}" for name in names]


def write_as_shown(project: str, folder: Path) -> None:
    """Write the files that the project's page shows, and no others."""
    for block in blocks(section_of(project)):
        if block.file:
            (folder / block.file).parent.mkdir(parents=True, exist_ok=True)
            (folder / block.file).write_text(block.text)


@pytest.mark.prove
@pytest.mark.parametrize("environment", ENVIRONMENTS)
def test_a_project_passes_in_a_fresh_environment(
    environment: str, wheels: list[Path], tmp_path: Path
) -> None:
    """The project passes as pasted; some projects also pass on two workers."""
    project, versions, command = ENVIRONMENTS[environment]
    programs = create_environment(
        tmp_path / "environment", required_wheels(project, wheels), project, versions
    )
    folder = tmp_path / "project"
    write_as_shown(project, folder)
    for options in ((), ("-n", "2")) if environment in IN_PARALLEL else ((),):
        result = run_command([*command, *options], folder, PATH=f"{programs}:/usr/bin:/bin", PYTHONPATH="")
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
