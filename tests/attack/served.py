"""A server in a process of its own, and what it uses."""

import json
import subprocess
import sys
import tempfile
from base64 import b64encode
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from typing import IO, Any, NamedTuple

import requests

from payment_sandbox.projects.registry import FIRST_API_KEY


class Use(NamedTuple):
    """What a process uses."""

    memory_mib: float
    threads: int
    files: int
    cpu_seconds: float


class Project:
    """Calls with the key of one project, on a connection of their own."""

    def __init__(self, url: str, key: str = FIRST_API_KEY) -> None:
        self.url = url
        self.key = key
        self.http = requests.Session()
        self.http.trust_env, self.http.auth = False, (key, "")

    def call(self, method: str, path: str, json: Any = None, **options: Any) -> requests.Response:
        """Send one request."""
        options.setdefault("timeout", 60)
        return self.http.request(method, f"{self.url}{path}", json=json, **options)

    def expect(self, method: str, path: str, json: Any = None, **options: Any) -> Any:
        """Send one request that succeeds; returns its JSON."""
        answer = self.call(method, path, json, **options)
        assert answer.status_code < 300, f"{method} {path}: {answer.status_code} {answer.text[:500]}"
        return answer.json()

    def order(self, *transactions: Any, **fields: Any) -> Any:
        """A new order."""
        body = {"currency": "EUR", "amount": 1000, "transactions": list(transactions), **fields}
        return self.expect("POST", "/v1/orders/", body)

    def __enter__(self) -> "Project":
        return self

    def __exit__(self, *error: object) -> None:
        self.http.close()


class Served(NamedTuple):
    """A running server."""

    url: str
    pid: int
    keys: list[str]  # that may not stand in its log

    def project(self, **settings: Any) -> "Project":
        """A new project."""
        made = requests.post(f"{self.url}/control/projects/", json=settings, timeout=30)
        assert made.status_code == 201, made.text
        self.keys.append(made.json()["api_key"])
        return Project(self.url, self.keys[-1])

    def use(self) -> Use:
        """What the server uses now."""
        process = Path("/proc") / str(self.pid)
        status = dict(line.split(":\t") for line in (process / "status").read_text().splitlines())
        times = (process / "stat").read_text().rpartition(")")[2].split()
        return Use(
            int(status["VmRSS"].split()[0]) / 1024,
            int(status["Threads"]),
            len(list((process / "fd").iterdir())),
            (int(times[11]) + int(times[12])) / 100,
        )


@contextmanager
def served(*options: str, program: tuple[str, ...] = ()) -> Iterator[Served]:
    """Serve until the end of the block."""
    with tempfile.TemporaryDirectory() as folder:
        keys: list[str] = []
        ready, errors = Path(folder) / "ready.json", Path(folder) / "errors"
        listening = ("--port", "0", "--ready-file", str(ready))
        with errors.open("w") as written:
            process = subprocess.Popen(
                [*program, sys.executable, "-m", "payment_sandbox", "serve", *listening, *options],
                stdout=subprocess.PIPE,
                stderr=written,
            )
        assert process.stdout is not None
        first = process.stdout.readline()
        reading = Thread(target=_read_on, args=(process.stdout,))
        reading.start()
        try:
            assert first, "the server has ended"
            told = json.loads(ready.read_text())
            yield Served(told["url"], told["pid"], keys)
        finally:
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
                raise
            reading.join()
            logged = errors.read_text()
            sys.stderr.write(logged[-5000:])
        assert "Traceback" not in logged, "the server has logged a traceback"
        assert not shows(logged, keys), "the server has logged a key"


def shows(text: str, keys: Iterable[str]) -> bool:
    """Whether a text has one of the keys, plain or as clients send it."""
    return any(form in text for key in keys for form in (key, b64encode(f"{key}:".encode()).decode()))


def _read_on(printed: IO[bytes]) -> None:
    """Read the lines of a server, or its pipe would be full."""
    with printed:
        for _ in printed:
            pass
