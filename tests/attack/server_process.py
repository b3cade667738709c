"""A server in a separate process, and its resource usage."""

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from typing import IO, Any, NamedTuple

import requests

from payment_sandbox.projects.registry import FIRST_API_KEY
from tests.support.canaries import shown


class Usage(NamedTuple):
    """The resource usage of a process."""

    threads: int
    files: int


class Project:
    """Makes calls with the key of one project on its own connection."""

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
        """Send one request, assert its success and return the JSON."""
        answer = self.call(method, path, json, **options)
        assert answer.status_code < 300, f"{method} {path}: {answer.status_code} {answer.text[:500]}"
        return answer.json()

    def order(self, *transactions: Any, **fields: Any) -> Any:
        """Create an order."""
        body = {"currency": "EUR", "amount": 1000, "transactions": list(transactions), **fields}
        return self.expect("POST", "/v1/orders/", body)

    def __enter__(self) -> "Project":
        return self

    def __exit__(self, *error: object) -> None:
        self.http.close()


class ServerProcess(NamedTuple):
    """A running server."""

    url: str
    pid: int
    keys: list[str]  # must not appear in the log

    def project(self, **settings: Any) -> "Project":
        """Create a project."""
        response = requests.post(f"{self.url}/control/projects/", json=settings, timeout=30)
        assert response.status_code == 201, response.text
        self.keys.append(response.json()["api_key"])
        return Project(self.url, self.keys[-1])

    def usage(self) -> Usage:
        """Return the current resource usage of the server."""
        process = Path("/proc") / str(self.pid)
        return Usage(len(list((process / "task").iterdir())), len(list((process / "fd").iterdir())))


@contextmanager
def run_server(*options: str) -> Iterator[ServerProcess]:
    """Run a server during the block."""
    with tempfile.TemporaryDirectory() as folder:
        keys: list[str] = []
        ready, errors = Path(folder) / "ready.json", Path(folder) / "errors"
        listening = ("--port", "0", "--ready-file", str(ready))
        with errors.open("w") as error_file:
            process = subprocess.Popen(
                [sys.executable, "-m", "payment_sandbox", "serve", *listening, *options],
                stdout=subprocess.PIPE,
                stderr=error_file,
            )
        assert process.stdout is not None
        first_line = process.stdout.readline()
        reader = Thread(target=_drain, args=(process.stdout,))
        reader.start()
        try:
            assert first_line, "the server has ended"
            ready_info = json.loads(ready.read_text())
            yield ServerProcess(ready_info["url"], ready_info["pid"], keys)
        finally:
            process.terminate()
            try:
                process.wait(60)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
                raise
            reader.join()
            logged = errors.read_text()
            sys.stderr.write(logged[-5000:])
        assert "Traceback" not in logged, "the server has logged a traceback"
        assert not any("key" in shown(logged, key) for key in keys), "the server has logged a key"


def _drain(output: IO[bytes]) -> None:
    """Read the output of a server, which would block on a full pipe."""
    with output:
        for _ in output:
            pass
