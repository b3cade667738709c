"""Servers that the command line starts, and servers whose activity is printed."""

import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from threading import Event
from typing import Any

import pytest
import requests

from payment_sandbox.cli.activity import Activity
from payment_sandbox.cli.main import main
from payment_sandbox.serving.server import Server
from tests.cli.forks import Fork
from tests.support.servers import make_server

KEY = ("sandbox-key", "")
Serve = Callable[..., tuple[Fork, str]]
TIME = len("2026-03-01 12:00:00  ")


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Start servers with the command line, and kill them after the test."""
    with ExitStack() as stack:

        def start(*arguments: str, **environment: str) -> tuple[Fork, str]:
            process = stack.enter_context(closing(Fork("serve", "--port", "0", *arguments, **environment)))
            first_line = process.stdout.readline()
            assert first_line, process.stderr.read()
            return process, first_line

        yield start


@pytest.fixture
def run_here(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[Callable[..., subprocess.CompletedProcess[str]]]:
    """Run the command line in this process, which is faster than in one of its own."""
    handler = signal.getsignal(signal.SIGINT)

    def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        monkeypatch.setattr(sys, "argv", ["payment-sandbox", *arguments])
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        with pytest.raises(SystemExit) as ended:
            main()
        printed = capsys.readouterr()
        code = int(ended.value.code or 0)
        return subprocess.CompletedProcess(arguments, code, printed.out, printed.err)

    yield run
    signal.signal(signal.SIGINT, handler)


class PrintedLines:
    """The lines that an activity has printed."""

    def __init__(self) -> None:
        self.text = ""
        self._more = Event()

    def write(self, data: bytes) -> int:
        self.text += data.decode()
        self._more.set()
        return len(data)

    def wait_for(self, words: str) -> list[str]:
        """Wait until a line contains these words; return the lines without their times."""
        while words not in self.text:
            self._more.clear()
            assert words in self.text or self._more.wait(60), self.text
        return [line[TIME:] for line in self.text.splitlines()]


@contextmanager
def printing(printed: PrintedLines, *, as_json: bool = False, **options: Any) -> Iterator[Server]:
    """Run a server that prints its activity, by default as text."""
    with (
        Activity(as_json=as_json, write=printed.write) as activity,
        make_server(observer=activity, **options) as server,
    ):
        yield server


@pytest.fixture
def printed() -> PrintedLines:
    """An empty collection of lines."""
    return PrintedLines()


@pytest.fixture
def printing_server(printed: PrintedLines) -> Iterator[Server]:
    """A separate server that prints its activity."""
    with printing(printed, seed=1, clock="frozen@2026-03-01T12:00:00Z") as server:
        yield server


@pytest.fixture
def call(printing_server: Server) -> Callable[..., Any]:
    """Send calls with the key of the first project."""

    def send(method: str, path: str, body: Any = None, **options: Any) -> requests.Response:
        options.setdefault("auth", KEY)
        return requests.request(method, f"{printing_server.url}{path}", json=body, **options)

    return send
