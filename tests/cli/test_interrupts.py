"""Ctrl-C ends a command at any moment without a traceback, even while it is loading."""

import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from tests.support.commands import run_program, run_python
from tests.support.tools import require

INTERRUPTED_AT_AN_IMPORT = """
import os
import signal
import sys
from runpy import run_module

def on_event(event, arguments):
    if event == "import" and (arguments[0].startswith("payment_sandbox.cli.") or passed):
        passed.append(arguments[0])
        if len(passed) == moment:
            try:
                os.mkdir(only_one)
            except FileExistsError:
                return  # the test has interrupted it, and this import belongs to the shutdown
            os.kill(os.getpid(), signal.SIGINT)

only_one, moment, passed = sys.argv.pop(1), int(sys.argv.pop(1)), []
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGTERM, signal.SIG_DFL)
sys.addaudithook(on_event)
run_module("payment_sandbox", run_name="__main__", alter_sys=True)
"""
KILLED_BY_SIGINT = -signal.SIGINT
INTERRUPTED = 130


@pytest.mark.parametrize(
    ("arguments", "moment"),
    [*((("serve", "--port", "0"), moment) for moment in (1, 60, 350, 700)), (("docs",), 1), (("docs",), 250)],
)
def test_a_command_can_be_interrupted_while_it_loads(
    arguments: tuple[str, ...], moment: int, tmp_path: Path
) -> None:
    """It ends immediately; a server that is about to serve shuts down cleanly, and another command may be ready."""
    only_one = tmp_path / "interrupted"
    program = [sys.executable, "-c", INTERRUPTED_AT_AN_IMPORT, str(only_one), str(moment), *arguments]
    with subprocess.Popen(program, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        if process.stdout.readline() and "serve" in arguments:
            with suppress(FileExistsError):
                only_one.mkdir()
                process.send_signal(signal.SIGINT)
        _, errors = process.communicate()
    assert errors.strip() == "", "click adds a line break after ^C"
    assert process.returncode in (0, KILLED_BY_SIGINT, *(() if "serve" in arguments else (INTERRUPTED,)))
    assert moment > 100 or process.returncode != 0


AS_SOON_AS_IT_CAN = """
import os
import signal
import sys

def on_event(event, arguments):
    if event == "import" and arguments[0] == "payment_sandbox":
        begun.append(arguments[0])
    if event == "import" and arguments[0] == "typing" and begun:
        os.kill(os.getpid(), signal.SIGINT)

begun = []
signal.signal(signal.SIGINT, signal.default_int_handler)
sys.addaudithook(on_event)
"""


@pytest.mark.parametrize(
    "program",
    [(sys.executable, "-m", "payment_sandbox"), (str(Path(sys.executable).parent / "payment-sandbox"),)],
)
def test_the_package_itself_can_be_interrupted(program: tuple[str, ...], tmp_path: Path) -> None:
    """The first slow import of the package can be interrupted."""
    (tmp_path / "sitecustomize.py").write_text(AS_SOON_AS_IT_CAN)
    path = f"{tmp_path}:{os.environ.get('PYTHONPATH', '')}"
    result = run_program([*program, "serve", "--port", "0"], PYTHONPATH=path)
    assert (result.returncode, result.stderr) == (KILLED_BY_SIGINT, "")


MANY_SIGNALS = """
import signal
from payment_sandbox.cli.serve import StopRequest

requests = [StopRequest()]
signal.signal(signal.SIGALRM, lambda *_: requests[0].set())
signal.setitimer(signal.ITIMER_REAL, 0.0005, 0.0005)
for _ in range(25_000):
    requests[0].wait(0)
    requests[0] = StopRequest()
signal.setitimer(signal.ITIMER_REAL, 0)
requests[0].set()
assert requests[0].wait() and requests[0].wait(0)
"""


def test_a_signal_may_request_the_stop_while_the_server_waits_for_it() -> None:
    """The handler interrupts the wait at every point without a deadlock."""
    assert run_python(MANY_SIGNALS).returncode == 0


AS_NUMBER_ONE = ("unshare", "--pid", "--fork", "--kill-child")


@pytest.mark.parametrize(
    ("number", "moment"), [(signal.SIGTERM, 1), (signal.SIGINT, 60), (signal.SIGTERM, 500)]
)
def test_the_first_process_of_a_container_ends_on_a_signal_while_it_loads(
    number: int, moment: int, tmp_path: Path
) -> None:
    """The system drops signals that process 1 does not handle, so the command handles them at once."""
    require("util-linux")
    if run_program([*AS_NUMBER_ONE, "true"]).returncode != 0:
        pytest.skip("needs the right to make PID namespaces")
    program = INTERRUPTED_AT_AN_IMPORT.replace("os.getpid(), signal.SIGINT", f"os.getpid(), {int(number)}")
    only_one = str(tmp_path / "interrupted")
    serve = [sys.executable, "-c", program, only_one, str(moment), "serve", "--port", "0"]
    result = run_program([*AS_NUMBER_ONE, *serve])
    assert result.returncode in (0, 128 + number)
    assert result.stderr == ""
    assert moment > 100 or result.returncode != 0, "it ends before it serves"
