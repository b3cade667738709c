"""``make run`` makes its environment, also after a try that was too early or interrupted."""

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.documentation import ROOT

OLD = """#!/bin/sh
[ "$1" = -c ] && exit 1
echo "nothing may be made with it" >&2
exit 9
"""
# Makes an environment whose pip works, and whose Python says what it is asked to run.
GOOD = """#!/bin/sh
[ "$1" = -c ] && exit 0
[ "$1 $2 $3" = "-m venv --clear" ] || exit 9
rm -rf "$4" && mkdir -p "$4/bin" "$4/site"
printf '#!/bin/sh\\necho "$*" >> "$(dirname "$0")/../installed"\\n' > "$4/bin/pip"
printf '#!/bin/sh\\n[ "$1" = -c ] && echo "$(dirname "$0")/../site" || echo "ran $*"\\n' > "$4/bin/python"
chmod +x "$4/bin/pip" "$4/bin/python"
"""


def made(folder: Path, python: str) -> subprocess.CompletedProcess[str]:
    """``make run`` with another Python."""
    program = folder / "python"
    program.write_text(python)
    program.chmod(0o755)
    return subprocess.run(
        ["make", "run", f"PYTHON={program}", "PORT=8099"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """What make looks at."""
    for name in ("Makefile", "pyproject.toml", "requirements.lock"):
        shutil.copy(ROOT / name, tmp_path)
    return tmp_path


def test_a_python_that_is_too_old_is_named(folder: Path) -> None:
    """In a sentence with the remedy; the next try has a clean start."""
    refused = made(folder, OLD)
    assert refused.returncode == 2
    assert f"needs Python 3.11 or newer, and {folder}/python is not; try: make run PYTHON=" in refused.stderr
    assert not (folder / ".venv").exists()
    assert "ran -m payment_sandbox serve --port 8099" in made(folder, GOOD).stdout


def test_an_environment_that_was_not_completed_is_made_anew(folder: Path) -> None:
    """As after Ctrl-C."""
    (folder / ".venv" / "bin").mkdir(parents=True)
    (folder / ".venv" / "stray").touch()
    assert made(folder, GOOD).returncode == 0
    assert not (folder / ".venv" / "stray").exists()
    installed = (folder / ".venv" / "installed").read_text()
    assert "-e ./." in installed, "with its entry points, so that all commands are there"


def test_a_complete_environment_needs_no_other_python(folder: Path) -> None:
    """It was made with one that is new enough."""
    assert made(folder, GOOD).returncode == 0
    assert made(folder, OLD).returncode == 0
