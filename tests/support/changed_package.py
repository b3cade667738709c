"""A modified copy of the package, and programs that use the copy."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "sandbox" / "payment_sandbox"


class ChangedPackage:
    """A copy of the package in its own folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.root = folder / "payment_sandbox"
        shutil.copytree(PACKAGE, self.root, ignore=shutil.ignore_patterns("__pycache__"))
        ready = self.root / "scenarios" / "ready"
        if not ready.exists():
            shutil.copytree(PACKAGE.parents[1] / "scenarios", ready)

    def add(self, path: str, text: str) -> None:
        """Add a module."""
        (self.root / path).write_text(text)

    def insert(self, path: str, before: str, text: str) -> None:
        """Insert lines into a module, before the only occurrence of ``before``."""
        file = self.root / path
        source = file.read_text()
        assert source.count(before) == 1, (path, before)
        file.write_text(source.replace(before, f"{text}{before}"))

    def replace(self, path: str, old: str, new: str) -> None:
        """Change the only occurrence of ``old`` in a module."""
        file = self.root / path
        source = file.read_text()
        assert source.count(old) == 1, (path, old)
        file.write_text(source.replace(old, new))

    def run(self, program: str, timeout_seconds: float = 60) -> str:
        """Run a program that imports the copy; returns what it prints."""
        (self.folder / "program.py").write_text(program)
        ran = subprocess.run(
            [sys.executable, "-W", "error", "program.py"],
            cwd=self.folder,
            env={**os.environ, "PYTHONPATH": str(self.folder), "PYTHONDONTWRITEBYTECODE": "1"},
            capture_output=True,
            text=True,
            timeout=timeout_seconds,
            check=False,
        )
        assert ran.returncode == 0, ran.stdout[-2000:] + ran.stderr[-3000:]
        return ran.stdout
