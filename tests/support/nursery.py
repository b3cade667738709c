"""Servers that are killed and started again, on the same state file."""

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
from payment_sandbox.serving.server import build

# Imported once, forked for each life: a start takes milliseconds, and a kill is a kill.
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


class Life(NamedTuple):
    """One process that serves until it is killed."""

    url: str
    pid: int


class Nursery:
    """Starts one server after the other on the same file."""

    def __init__(self, state: Path, port: int = 0) -> None:
        self._state = state
        self._turn = Lock()  # a kill on one thread is over before another one begins the next life
        self._process = subprocess.Popen(
            [sys.executable, "-c", NURSERY, str(port)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def begin(self) -> Life:
        """Start a server and wait until it serves."""
        assert self._process.stdin is not None
        with self._turn:
            self._process.stdin.write(f"{self._state}\n")
            self._process.stdin.flush()
            return Life(**self._told())

    def kill(self, life: Life) -> None:
        """Kill it, and wait until it is gone."""
        with self._turn:
            os.kill(life.pid, signal.SIGKILL)
            assert self._told() == {"ended": life.pid}

    def close(self) -> None:
        """No more servers."""
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.communicate()

    def _told(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        told: dict[str, Any] = json.loads(self._process.stdout.readline())
        return told
