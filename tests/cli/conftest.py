"""Servers that the command line starts."""

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Event
from typing import Any

import pytest
import requests

from payment_sandbox.cli.activity import Activity, text_formatter
from payment_sandbox.serving.server import Server
from tests.support.commands import Serve, command, hearing
from tests.support.servers import make_server

KEY = ("sandbox-key", "")
TIME = len("2026-03-01 12:00:00  ")


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


class Printed:
    """The lines that an activity has printed, and a way to wait for one."""

    def __init__(self) -> None:
        self.text = ""
        self._more = Event()

    def write(self, data: bytes) -> int:
        self.text += data.decode()
        self._more.set()
        return len(data)

    def until(self, words: str) -> list[str]:
        """The lines without their times, once one has these words."""
        while words not in self.text:
            self._more.clear()
            assert words in self.text or self._more.wait(10), self.text
        return [line[TIME:] for line in self.text.splitlines()]


@pytest.fixture
def printed() -> Printed:
    """Collects lines."""
    return Printed()


@pytest.fixture
def told(printed: Printed) -> Iterator[Server]:
    """A server of its own, whose activity is printed."""
    activity = Activity(text_formatter(is_coloured=False), write=printed.write)
    activity.start()
    with make_server(seed=1, observer=activity, clock="frozen@2026-03-01T12:00:00Z") as server:
        yield server
    activity.stop()


@pytest.fixture
def first(told: Server) -> Callable[..., Any]:
    """Calls of the first project."""

    def call(method: str, path: str, body: Any = None, **options: Any) -> requests.Response:
        options.setdefault("auth", KEY)
        return requests.request(method, f"{told.url}{path}", json=body, timeout=10, **options)

    return call
