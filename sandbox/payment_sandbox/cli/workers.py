"""Several server processes on one port: those beside the first one, which starts and ends them."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from threading import Event, Thread
from typing import Final

from payment_sandbox.serving.threads import start, unmasked

BESIDE: Final = "SANDBOX_BESIDE"
"""In the environment of a process that another one has started beside itself: the other one's id."""

END_SECONDS: Final = 63.0  # a little longer than a server takes to answer what is under way
AGAIN_SECONDS: Final = 0.5  # before a worker that has ended is started again


class Workers:
    """Processes that run the same command; each that ends by itself is started again."""

    def __init__(self, count: int, port: int, control_token: str | None) -> None:
        self._count = count
        self._command = [sys.executable, "-m", "payment_sandbox", *sys.argv[1:], "--port", str(port)]
        self._command += ["--workers", "1"]
        token = {"SANDBOX_CONTROL_TOKEN": control_token} if control_token is not None else {}
        self._environment = {**os.environ, **token, BESIDE: str(os.getpid())}
        self._is_over = Event()
        self._processes: dict[int, subprocess.Popen[bytes]] = {}
        self._threads: list[Thread] = []

    def begin(self) -> None:
        """Start all."""
        for number in range(self._count):
            self._threads.append(Thread(target=self._keep, args=(number,), name="worker", daemon=True))
            start(self._threads[-1])

    def begin_to_end(self) -> None:
        """Have all give their projects back, and end."""
        self._is_over.set()
        for process in list(self._processes.values()):
            with suppress(OSError):
                process.send_signal(signal.SIGTERM)

    def end(self) -> None:
        """Wait until all have ended."""
        for thread in self._threads:
            thread.join(END_SECONDS)

    def _keep(self, number: int) -> None:
        """Run one process after the other; its standard input ends with this process, and then it ends."""
        while not self._is_over.is_set():
            with unmasked():  # it must get SIGTERM, also from a thread that gets none
                process = subprocess.Popen(self._command, stdin=subprocess.PIPE, env=self._environment)
            self._processes[number] = process
            if self._is_over.is_set():
                process.terminate()
            process.wait()
            self._is_over.wait(AGAIN_SECONDS)


def stop_with_stdin(stop: Callable[[], None]) -> None:
    """Call ``stop`` once standard input ends: the process that started this one has closed it, or is gone."""

    def wait() -> None:
        while os.read(sys.stdin.fileno(), 1):
            pass
        stop()

    start(Thread(target=wait, name="stdin", daemon=True))
