"""Runs the command line in a separate process."""

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path


def command(*arguments: str) -> list[str]:
    """Return the command line of ``payment-sandbox``."""
    return [sys.executable, "-m", "payment_sandbox", *arguments]


def hearing(program: Sequence[str]) -> list[str]:
    """Wrap a program so that it handles signals even if the shell made this process ignore them."""
    restore_signals = (
        "import os, signal, sys; [signal.signal(n, signal.SIG_DFL) for n in (signal.SIGINT, signal.SIGTERM)]"
    )
    return [sys.executable, "-c", f"{restore_signals}; os.execv(sys.argv[1], sys.argv[1:])", *program]


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the command with additional environment variables until it exits."""
    return run_program(command(*arguments), **environment)


def run_program(
    program: Sequence[str], folder: Path | None = None, timeout: float | None = None, /, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run a program in a folder, with additional environment variables; return its output as text."""
    env = {**os.environ, **environment}
    return subprocess.run(
        program, cwd=folder, env=env, timeout=timeout, capture_output=True, text=True, check=False
    )


def run_python(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run code in a Python of its own."""
    return run_program([sys.executable, "-c", code], **environment)
