"""Modified copies of the package or of the whole checkout, and programs and tests that use a copy."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.support.commands import run_program

CHECKOUT = Path(__file__).parents[2]
PACKAGE = CHECKOUT / "sandbox" / "payment_sandbox"
FOLDERS = ("sandbox", "tests", "scenarios")
WRITE_SCHEMA = """
from pathlib import Path
from click.testing import CliRunner
from payment_sandbox.cli.main import commands
Path("scenarios/scenario.schema.json").write_text(CliRunner().invoke(commands, ["schema"]).stdout)
"""
FAILED = re.compile(r"^(?:FAILED|ERROR) (?:[^\s\[]*/)?([^\s/\[]+)", re.MULTILINE)


class ChangedTree:
    """A folder of files to change."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def add(self, path: str, text: str) -> None:
        """Add a module."""
        (self.root / path).write_text(text)

    def append(self, path: str, text: str) -> None:
        """Add lines to the end of a file."""
        self.add(path, (self.root / path).read_text() + text)

    def insert(self, path: str, before: str, text: str) -> None:
        """Insert lines into a module, before the only occurrence of ``before``."""
        self.replace(path, before, f"{text}{before}")

    def replace(self, path: str, old: str, new: str) -> None:
        """Change the only occurrence of ``old`` in a module."""
        source = (self.root / path).read_text()
        assert source.count(old) == 1, (path, old)
        self.add(path, source.replace(old, new))


class ChangedPackage(ChangedTree):
    """A copy of the package in its own folder."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder / "payment_sandbox")
        self.folder = folder
        shutil.copytree(PACKAGE, self.root, ignore=shutil.ignore_patterns("__pycache__"))
        ready = self.root / "scenarios" / "ready"
        if not ready.exists():
            shutil.copytree(CHECKOUT / "scenarios", ready)

    def run(self, program: str) -> str:
        """Run a program that imports the copy; return its output."""
        (self.folder / "program.py").write_text(program)
        paths = (self.folder, CHECKOUT)  # with the tests of the checkout
        result = python(["-W", "error", "program.py"], self.folder, paths)
        assert result.returncode == 0, result.stdout[-2000:] + result.stderr[-3000:]
        return result.stdout


class ChangedCheckout(ChangedTree):
    """A copy of the checkout, with its tests; ``package`` is the package in it."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder / "checkout")
        self.package = ChangedTree(self.root / PACKAGE.relative_to(CHECKOUT))
        copy_checkout(self.root)

    def run(self, program: str) -> str:
        """Run a program that imports the copy and its tests; return its output, with errors if it failed."""
        self.add("program.py", program)
        result = python(["-W", "error", "program.py"], self.root, (self.root / "sandbox",))
        return result.stdout if result.returncode == 0 else result.stdout + result.stderr

    def failing(self, *tests: str, options: Sequence[str] = ("-m", "")) -> set[str]:
        """Run tests of the copy; return the failing ones, such as ``test_schema.py::test_it_is_served``."""
        pytest = ["-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", *options]
        result = python([*pytest, *tests], self.root, (self.root / "sandbox",))
        assert result.returncode in (0, 1), result.stdout[-2000:] + result.stderr[-2000:]
        failed = set(FAILED.findall(result.stdout))
        assert bool(failed) == bool(result.returncode), result.stdout[-2000:]
        return failed


def copy_checkout(folder: Path) -> None:
    """Copy the sources, tests and scenarios, and the files beside them."""
    for name in FOLDERS:
        shutil.copytree(CHECKOUT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    for file in CHECKOUT.iterdir():
        if file.is_file():
            (folder / file.name).write_bytes(file.read_bytes())


def python(arguments: Sequence[str], folder: Path, paths: Sequence[Path]) -> subprocess.CompletedProcess[str]:
    """Run Python in a folder, with ``paths`` as its PYTHONPATH."""
    variables = {"PYTHONPATH": os.pathsep.join(map(str, paths)), "PYTHONDONTWRITEBYTECODE": "1"}
    return run_program([sys.executable, *arguments], folder, **variables)
