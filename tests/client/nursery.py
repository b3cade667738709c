"""Servers that are killed and restarted with the same state file."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple

NURSERY = """
import json, os, signal, sys
from pathlib import Path
from payment_sandbox.serving.config import ServerConfig
from payment_sandbox.app import build

# Imported once and forked for each server, so that a start takes milliseconds.
for path in sys.stdin:
    child = os.fork()
    if child == 0:
        server = build(ServerConfig(port=int(sys.argv[1]), state=Path(path.strip()), clock="frozen"))
        server.start()
        print(json.dumps({"url": server.url, "pid": os.getpid()}), flush=True)
        signal.pause()
    os.waitpid(child, 0)
    print(json.dumps({"ended": child}), flush=True)
"""


class ServerProcess(NamedTuple):
    """A server process."""

    url: str
    pid: int


class Nursery:
    """Starts one server after another with the same file."""

    def __init__(self, state: Path, port: int = 0) -> None:
        self._state = state
        self._lock = Lock()  # a kill must finish before another thread starts the next server
        self._process = subprocess.Popen(
            [sys.executable, "-c", NURSERY, str(port)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def begin(self) -> ServerProcess:
        """Start a server, and wait until it listens."""
        assert self._process.stdin is not None
        with self._lock:
            self._process.stdin.write(f"{self._state}\n")
            self._process.stdin.flush()
            return ServerProcess(**self._read_report())

    def kill(self, server: ServerProcess) -> None:
        """Kill a server, and wait until it has exited."""
        with self._lock:
            os.kill(server.pid, signal.SIGKILL)
            assert self._read_report() == {"ended": server.pid}

    def close(self) -> None:
        """Stop the process that starts servers."""
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.communicate()

    def _read_report(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        report: dict[str, Any] = json.loads(self._process.stdout.readline())
        return report
