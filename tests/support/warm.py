"""Runs pytest in forks of a process that has loaded what each suite of a shop loads.

A fork saves the second in which an interpreter starts and imports the same libraries as for the suite before.
Otherwise it is like ``python -m pytest``: it has arguments, a folder, an environment and output of its own, a
process group, an orderly end, and no state of the tests. Modules that only some suites load are not loaded
here, nor are the plugins, whose assertions pytest rewrites when it loads them.
"""

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from runpy import run_module
from tempfile import TemporaryDirectory, TemporaryFile
from threading import Lock, active_count
from typing import Any, Final
from warnings import catch_warnings

READ_AT_START: Final = ("PYTHON", "LANG", "LC_", "TZ", "LD_")
"""How the names of variables begin that a process reads only when it starts."""
OPTIONS: Final = ("-q", "-pno:cacheprovider", "-oasyncio_default_fixture_loop_scope=function")
CHUNK_BYTES: Final = 1 << 16


class WarmProcess:
    """A process that has loaded what this suite loads, and runs pytest in forks, one after another."""

    def __init__(self, suite: str, environment: Mapping[str, str]) -> None:
        self._lock = Lock()
        self._environment = environment
        self._socket, other = socket.socketpair()
        code = Path(__file__).read_text()  # as ``-c``, because frames in a file would seem to be the shop's
        with other:
            self._process = subprocess.Popen(
                [sys.executable, "-c", code, str(other.fileno()), suite],
                env=environment,
                pass_fds=[other.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                start_new_session=True,
            )
        self._reports = self._socket.makefile()

    def run(
        self, options: Sequence[str], folder: Path, environment: Mapping[str, str]
    ) -> subprocess.CompletedProcess[str]:
        """Run ``python -m pytest`` with these options in a folder, with exactly this environment."""
        changed = dict(set(environment.items()) ^ set(self._environment.items()))
        assert not any(name.startswith(READ_AT_START) for name in changed), "a fork would not read it"
        request = json.dumps([list(options), str(folder), dict(environment)]).encode() + b"\n"
        with self._lock, TemporaryFile("w+") as stdout, TemporaryFile("w+") as stderr:
            sent = socket.send_fds(self._socket, [request], [stdout.fileno(), stderr.fileno()])
            self._socket.sendall(request[sent:])
            process = int(self._reports.readline())
            try:
                code = int(self._reports.readline())
            except BaseException:  # the test is over, such as after its time limit
                os.killpg(process, signal.SIGKILL)
                self._reports.readline()
                raise
            stdout.seek(0)
            stderr.seek(0)
            return subprocess.CompletedProcess(options, code, stdout.read(), stderr.read())

    def stop(self) -> None:
        """End the process."""
        self._reports.close()
        self._socket.close()
        self._process.wait()


def receive(connection: socket.socket) -> tuple[Any, list[int]]:
    """Receive a request with the files for its output; exit when the tests have ended."""
    line, files, _, _ = socket.recv_fds(connection, CHUNK_BYTES, 2)
    while not line.endswith(b"\n"):
        more = connection.recv(CHUNK_BYTES)
        if not more:
            sys.exit()
        line += more
    return json.loads(line), files


def run_pytest(options: Sequence[str], folder: str) -> None:
    """Do what ``python -m pytest`` does in a folder."""
    os.chdir(folder)
    sys.path[0] = folder
    sys.argv = ["-m", *options]
    sys.orig_argv = [sys.executable, "-m", "pytest", *options]
    run_module("pytest", run_name="__main__", alter_sys=True)


def load(suite: str) -> None:
    """Load the libraries that a suite loads, apart from the plugins, by running it in a fork."""
    plugins = {name.partition(".")[0] for name in os.environ["PYTEST_PLUGINS"].split(",")}
    with TemporaryDirectory() as folder:
        (Path(folder) / "test_shop.py").write_text(suite)
        loaded = Path(folder) / "loaded.txt"
        child = os.fork()
        if not child:
            try:
                run_pytest(OPTIONS, folder)
            except SystemExit as end:
                if not end.code:
                    loaded.write_text("\n".join(sys.modules))
            finally:
                os._exit(0)
        os.waitpid(child, 0)
        with catch_warnings():  # pytest drops the filters of libraries, too
            for name in loaded.read_text().splitlines():
                if name.partition(".")[0] not in {"__main__", "test_shop", *plugins}:
                    with suppress(ImportError):  # such as ``six.moves``, whose modules have no files
                        import_module(name)
    assert active_count() == 1, "a fork has no other threads"


def answer(connection: socket.socket) -> tuple[Sequence[str], str]:
    """Fork for each request, and return in the forks what they run."""
    while True:
        (options, folder, environment), files = receive(connection)
        child = os.fork()
        if not child:
            connection.close()
            for number, file in enumerate(files, 1):
                os.dup2(file, number)
                os.close(file)
            os.setpgid(0, 0)
            os.environ.clear()
            os.environ.update(environment)
            return options, folder
        with suppress(ProcessLookupError, PermissionError):
            os.setpgid(child, child)  # here, too, because it may have to be killed before it has done that
        for file in files:
            os.close(file)
        connection.sendall(b"%d\n" % child)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        connection.sendall(b"%d\n" % code)


if __name__ == "__main__":
    load(sys.argv[2])
    run_pytest(*answer(socket.socket(fileno=int(sys.argv[1]))))
