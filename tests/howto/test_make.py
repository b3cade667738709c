"""``make run`` creates its environment, also after a refused or an interrupted attempt."""

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.commands import run_program
from tests.support.documentation import ROOT
from tests.support.tools import require

OLD_PYTHON = """#!/bin/sh
[ "$1" = -c ] && exit 1
echo "this Python must create nothing" >&2
exit 9
"""
# Creates an environment with a working pip, and a Python that prints its arguments.
NEW_PYTHON = """#!/bin/sh
[ "$1" = -c ] && exit 0
[ "$1 $2 $3" = "-m venv --clear" ] || exit 9
rm -rf "$4" && mkdir -p "$4/bin" "$4/site"
printf '#!/bin/sh\\necho "$*" >> "$(dirname "$0")/../installed"\\n' > "$4/bin/pip"
printf '#!/bin/sh\\n[ "$1" = -c ] && echo "$(dirname "$0")/../site" || echo "ran $*"\\n' > "$4/bin/python"
chmod +x "$4/bin/pip" "$4/bin/python"
"""


def make_run(folder: Path, python: str) -> subprocess.CompletedProcess[str]:
    """Run ``make run`` with another Python."""
    program = folder / "python"
    program.write_text(python)
    program.chmod(0o755)
    return run_program(["make", "run", f"PYTHON={program}", "PORT=8099"], folder)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the files that make reads."""
    require("make")
    for name in ("Makefile", "pyproject.toml", "requirements.lock"):
        shutil.copy(ROOT / name, tmp_path)
    return tmp_path


def test_a_python_that_is_too_old_is_named(folder: Path) -> None:
    """The error names the Python and the remedy, and leaves no environment behind."""
    refused = make_run(folder, OLD_PYTHON)
    assert refused.returncode == 2
    assert f"needs Python 3.11 or newer, and {folder}/python is not; try: make run PYTHON=" in refused.stderr
    assert not (folder / ".venv").exists()


def test_a_first_start_installs_what_serving_needs(folder: Path) -> None:
    """It replaces an environment that Ctrl-C has left incomplete; a complete one needs no other Python."""
    (folder / ".venv" / "bin").mkdir(parents=True)
    (folder / ".venv" / "stray").touch()
    first, second, third = (make_run(folder, python) for python in (NEW_PYTHON, NEW_PYTHON, OLD_PYTHON))
    assert first.stdout.startswith("Installing the server into .venv, which takes")
    assert second.stdout == third.stdout == "ran -m payment_sandbox serve --port 8099\n"
    assert not (folder / ".venv" / "stray").exists()
    installed = (folder / ".venv" / "installed").read_text()
    assert "-e ./.[server,tls] -c requirements.lock" in installed
    assert "-r " not in installed, "pytest and the packages for development belong to make test"
