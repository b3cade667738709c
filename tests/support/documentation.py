"""The documentation's code blocks, and commands in a merchant's folder."""

import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from payment_sandbox.ui.docs.library import PAGE_NAMES
from tests.support.blocks import blocks

EXAMPLES = re.compile(r"^<!-- generated: (?!shell)[a-z-]+ -->\n.*?^<!-- end -->$", re.DOTALL | re.MULTILINE)
"""Generated blocks whose code blocks are recorded requests and responses."""

ROOT = Path(__file__).parent.parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
BIN = Path(sys.executable).parent
PAGES = ROOT / "sandbox" / "payment_sandbox" / "ui" / "docs" / "pages"


def read_page(name: str) -> str:
    """Return the Markdown file of a page."""
    return (PAGES / f"{name}.md").read_text(encoding="utf-8")


def text_of(name: str) -> str:
    """Return a page; of its generated blocks, only the shell setup contains programs."""
    return README if name == "README" else EXAMPLES.sub("", read_page(name))


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


def merchants_environment(folder: Path, **more: str) -> dict[str, str]:
    """Return the environment of a command in a merchant's folder."""
    return environment(**{"XDG_STATE_HOME": str(folder / ".state"), **more})


def run_command(
    command: Sequence[str], folder: Path, timeout: float | None = None, /, **more: str
) -> subprocess.CompletedProcess[str]:
    """Run a command in a merchant's folder."""
    env = merchants_environment(folder, **more)
    return subprocess.run(
        command, cwd=folder, env=env, timeout=timeout, capture_output=True, text=True, check=False
    )
