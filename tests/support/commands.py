"""Runs the command line in a separate process."""

import os
import subprocess
import sys
from collections.abc import Callable, Sequence

Serve = Callable[..., tuple[subprocess.Popen[str], str]]


def command(*arguments: str) -> list[str]:
    """The command line of ``payment-sandbox``."""
    return [sys.executable, "-m", "payment_sandbox", *arguments]


def hearing(program: Sequence[str]) -> list[str]:
    """The same program, which handles signals even if the shell told this process to ignore them."""
    hear = (
        "import os, signal, sys; [signal.signal(n, signal.SIG_DFL) for n in (signal.SIGINT, signal.SIGTERM)]"
    )
    return [sys.executable, "-c", f"{hear}; os.execv(sys.argv[1], sys.argv[1:])", *program]


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the command until it exits, with these environment variables besides."""
    return subprocess.run(
        command(*arguments),
        capture_output=True,
        text=True,
        timeout=20,
        check=False,
        env={**os.environ, **environment},
    )
