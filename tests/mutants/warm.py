"""Runs tests in forks of a process that has loaded the libraries, but nothing of the project.

Loading them takes most of the time of a short test run. A request is a line of JSON on standard input: the folder of
a checkout, its tests, and a time limit in seconds. The answer is one, too: the exit code (None: too late) and output.
"""

import json
import os
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from select import select
from tempfile import TemporaryFile
from traceback import print_exc
from typing import Any, Final

OWN: Final = ("tests", "__main__", "conftest")
PACKAGE: Final = "payment_sandbox"  # a part of the name of each of our packages
OPTIONS: Final = (
    *("-q", "-x", "-m", "", "-p", "no:cacheprovider"),
    *("-W", "ignore::pytest.PytestAssertRewriteWarning"),  # of plugins that are loaded before pytest looks
)
BROKEN: Final = 3
FIRST: Final = ("tests/kernel/test_periods.py", "tests/journeys/test_offered_methods.py")
"""Tests that load what most tests need."""


def run(folder: str, tests: Sequence[str], seconds_max: float) -> tuple[int | None, str]:
    """The exit code of pytest and its output; None after the time limit."""
    with TemporaryFile() as output:
        begun, ended = os.pipe()
        child = os.fork()
        if not child:
            os.close(begun)
            _test(folder, tests, output.fileno())
        os.close(ended)
        is_late = not select([begun], [], [], seconds_max)[0]
        os.close(begun)
        if is_late:
            os.killpg(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        output.seek(0)
        text = output.read().decode(errors="replace")
    return (None if is_late else os.waitstatus_to_exitcode(status)), text


def _test(folder: str, tests: Sequence[str], output: int) -> None:
    """Be the child: test, and end."""
    code = 1
    try:
        os.setpgid(0, 0)
        os.dup2(output, 1)
        os.dup2(output, 2)
        os.chdir(folder)
        sys.path[:0] = [folder, str(Path(folder) / "sandbox")]
        os.environ["PYTHONPATH"] = str(Path(folder) / "sandbox")
        pytest: Any = import_module("pytest")
        code = pytest.main([*OPTIONS, *tests])
        file = sys.modules[PACKAGE].__file__ or ""
        if not Path(file).is_relative_to(folder):
            raise ImportError(f"{file} was tested instead of {folder}")
        if os.environ.get("LOADED"):
            Path(os.environ["LOADED"]).write_text("\n".join(sys.modules), encoding="utf-8")
    except BaseException:
        print_exc()
        code = BROKEN
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def warm(folder: str) -> None:
    """Load what the first tests load, except what is of the project."""
    loaded = Path(folder) / "loaded.txt"
    os.environ["LOADED"] = str(loaded)
    run(folder, FIRST, 300.0)
    del os.environ["LOADED"]
    for name in loaded.read_text(encoding="utf-8").splitlines():
        top = name.partition(".")[0]
        if top not in OWN and PACKAGE not in top:
            with suppress(Exception):
                import_module(name)
    assert PACKAGE not in sys.modules, "each test loads its own"


def main() -> None:
    """Answer requests until there are no more."""
    warm(sys.argv[1])
    for line in sys.stdin:
        folder, tests, seconds_max = json.loads(line)
        print(json.dumps(run(folder, tests, seconds_max)), flush=True)


if __name__ == "__main__":
    main()
