"""The command line, run as a process of its own."""

import subprocess
import sys
from collections.abc import Callable

Serve = Callable[..., tuple[subprocess.Popen[str], str]]


def command(*arguments: str) -> list[str]:
    """The command line of ``payment-sandbox``."""
    return [sys.executable, "-m", "payment_sandbox", *arguments]


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run it to its end."""
    return subprocess.run(command(*arguments), capture_output=True, text=True, timeout=20, check=False)
