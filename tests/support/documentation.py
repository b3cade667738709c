"""The documentation's code blocks, and commands in a merchant's folder."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from payment_sandbox.web.docs.contents import SHELL_SETUP
from payment_sandbox.web.docs.library import PAGE_NAMES, read_source
from tests.support.blocks import blocks

ROOT = Path(__file__).parent.parent.parent
SHOP = ROOT / "tests" / "howto" / "sock_shop"
README = (ROOT / "README.md").read_text(encoding="utf-8")
BIN = Path(sys.executable).parent


def text_of(name: str) -> str:
    """Return a page with its shell helpers; its other generated parts contain no programs."""
    return README if name == "README" else read_source(name).replace("{{ shell }}", SHELL_SETUP)


def environment(**more: str) -> dict[str, str]:
    """Return an environment with this installation's commands, without the variables of the test run."""
    inherited = {
        key: value for key, value in os.environ.items() if not key.startswith(("PYTEST_", "SANDBOX_"))
    }
    return {**inherited, "PATH": f"{BIN}:{inherited['PATH']}", **more}


def of(language: str, *names: str) -> list[Any]:
    """Return the blocks in a language as separate test cases, without the blocks that are files."""
    cases = []
    for name in names or ("README", *PAGE_NAMES):
        matching = [block for block in blocks(text_of(name)) if block.language == language and not block.file]
        cases += [pytest.param(block, id=f"{name}-{index}") for index, block in enumerate(matching)]
    return cases


def run_command(command: list[str], folder: Path, **more: str) -> subprocess.CompletedProcess[str]:
    """Run a command in a merchant's folder."""
    return subprocess.run(
        command,
        cwd=folder,
        env=environment(XDG_STATE_HOME=str(folder / ".state"), **more),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
