"""Additional server processes on the same port, as children of the first process."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from threading import Event, Thread
from typing import Final

from payment_sandbox.serving.threads import signals_unblocked, start

PARENT_VARIABLE: Final = "SANDBOX_BESIDE"
"""A worker's environment variable that holds the parent's process id."""

JOIN_SECONDS: Final = 63.0  # slightly longer than the drain time of a server
RESTART_SECONDS: Final = 0.5  # the delay before restarting a worker


class Workers:
    """Child processes with the same command; a process that exits is restarted."""

    def __init__(self, count: int, port: int, control_token: str | None) -> None:
        self._count = count
        self._command = [sys.executable, "-m", "payment_sandbox", *sys.argv[1:], "--port", str(port)]
        self._command += ["--workers", "1"]
        token = {"SANDBOX_CONTROL_TOKEN": control_token} if control_token is not None else {}
        self._environment = {**os.environ, **token, PARENT_VARIABLE: str(os.getpid())}
        self._stopping = Event()
        self._processes: dict[int, subprocess.Popen[bytes]] = {}
        self._threads: list[Thread] = []

    def start(self) -> None:
        """Start all processes."""
        for number in range(self._count):
            self._threads.append(Thread(target=self._supervise, args=(number,), name="worker", daemon=True))
            start(self._threads[-1])

    def terminate(self) -> None:
        """Ask all processes to release their projects and exit."""
        self._stopping.set()
        for process in list(self._processes.values()):
            with suppress(OSError):
                process.send_signal(signal.SIGTERM)

    def join(self) -> None:
        """Wait for all processes to exit."""
        for thread in self._threads:
            thread.join(JOIN_SECONDS)

    def _supervise(self, number: int) -> None:
        """Run a child, and restart it on exit; a child exits when this process dies and closes its stdin."""
        while not self._stopping.is_set():
            with signals_unblocked():  # the child must receive SIGTERM, which this thread blocks
                process = subprocess.Popen(self._command, stdin=subprocess.PIPE, env=self._environment)
            self._processes[number] = process
            if self._stopping.is_set():
                process.terminate()
            process.wait()
            self._stopping.wait(RESTART_SECONDS)


def stop_with_stdin(stop: Callable[[], None]) -> None:
    """Call ``stop`` once standard input ends, because the parent has stopped or died."""

    def wait() -> None:
        while os.read(sys.stdin.fileno(), 1):
            pass
        stop()

    start(Thread(target=wait, name="stdin", daemon=True))
