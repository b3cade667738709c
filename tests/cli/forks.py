"""Commands in forks of a process that has loaded the command line, which saves each of them its start."""

import os
import signal
import sys
from collections.abc import Mapping, Sequence
from contextlib import closing
from multiprocessing import get_context
from multiprocessing.connection import Connection
from subprocess import CompletedProcess
from typing import Final

from payment_sandbox.cli.main import main
from payment_sandbox.cli.server_process import load_aiohttp
from payment_sandbox.interrupts import exit_silently_on_interrupt

load_aiohttp()
CONTEXT: Final = get_context("forkserver")
CONTEXT.set_forkserver_preload([__name__])


class Fork:
    """A command that runs like ``subprocess.Popen`` would run it, with its output in pipes."""

    def __init__(self, *arguments: str, **environment: str) -> None:
        (read_output, output), (read_errors, errors) = os.pipe(), os.pipe()
        streams = [Connection(file, readable=False) for file in (output, errors)]
        more = (arguments, {**os.environ, **environment}, os.getcwd(), *streams)
        self._process = CONTEXT.Process(target=run_command, args=more)
        self._process.start()
        for stream in streams:
            stream.close()
        self.stdout, self.stderr = os.fdopen(read_output), os.fdopen(read_errors)
        self.pid = self._process.pid or 0

    def poll(self) -> int | None:
        """Return the exit code, if the command has ended."""
        return self._process.exitcode

    def wait(self, seconds: float = 60) -> int:
        """Wait until the command has ended; return its exit code."""
        self._process.join(seconds)
        assert self._process.exitcode is not None, f"it has not ended within {seconds} seconds"
        return self._process.exitcode

    def communicate(self) -> tuple[str, str]:
        """Return the rest of the output and of the errors, when the command has ended."""
        with self.stdout, self.stderr:
            printed = self.stdout.read(), self.stderr.read()
        self.wait()
        return printed

    def send_signal(self, number: int) -> None:
        """Send a signal."""
        os.kill(self.pid, number)

    def kill(self) -> None:
        """Kill the command, and wait for its end."""
        self._process.kill()
        self._process.join()

    def close(self) -> None:
        """Kill the command, and close the pipes."""
        self.kill()
        self.stdout.close()
        self.stderr.close()


def run_command(
    arguments: Sequence[str],
    environment: Mapping[str, str],
    folder: str,
    output: Connection,
    errors: Connection,
) -> None:
    """Run a command in this process."""
    for number in (signal.SIGINT, signal.SIGTERM):  # the process that forks ignores one of them
        signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
    os.dup2(output.fileno(), 1)
    os.dup2(errors.fileno(), 2)
    output.close()
    errors.close()
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = ["payment-sandbox", *arguments]
    exit_silently_on_interrupt()
    main()


def run(*arguments: str, **environment: str) -> CompletedProcess[str]:
    """Run a command until it exits."""
    with closing(Fork(*arguments, **environment)) as fork:
        printed, errors = fork.communicate()
        return CompletedProcess(arguments, fork.wait(), printed, errors)
