"""Servers that the command line starts."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.commands import Serve, command, hearing


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Serve]:
    """Starts servers and ends them."""
    started: list[subprocess.Popen[str]] = []

    def start(*arguments: str) -> tuple[subprocess.Popen[str], str]:
        process = subprocess.Popen(
            hearing(command("serve", "--port", "0", *arguments)),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        assert process.stdout is not None
        first = process.stdout.readline()
        assert first, process.stderr.read() if process.stderr else ""
        return process, first

    yield start
    for process in started:
        process.kill()
        process.communicate()
