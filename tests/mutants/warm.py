"""Runs tests in forks of a process that has loaded the libraries, but no module of the project.

Loading libraries takes most of the time of a short test run. A request is a line of JSON on standard input:
the folder of a checkout, its tests, and a time limit in seconds. The response is a line of JSON with the exit
code (None after the time limit) and the output.
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

PROJECT_MODULES: Final = ("tests", "__main__", "conftest")
PACKAGE: Final = "payment_sandbox"  # contained in the name of each of our packages
OPTIONS: Final = (
    *("-q", "-x", "-m", "", "-p", "no:cacheprovider"),
    *("-W", "ignore::pytest.PytestAssertRewriteWarning"),  # pytest cannot rewrite plugins loaded before it
)
BROKEN: Final = 3
FIRST_TESTS: Final = ("tests/kernel/test_periods.py", "tests/journeys/test_offered_methods.py")
"""Tests that load the libraries that most tests need."""


def run(folder: str, tests: Sequence[str], seconds_max: float) -> tuple[int | None, str]:
    """Run tests in a fork; return the exit code of pytest, None after the time limit, and the output."""
    with TemporaryFile() as output:
        reader, writer = os.pipe()
        child = os.fork()
        if not child:
            os.close(reader)
            _test(folder, tests, output.fileno())
        os.close(writer)
        is_late = not select([reader], [], [], seconds_max)[0]
        os.close(reader)
        if is_late:
            os.killpg(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        output.seek(0)
        text = output.read().decode(errors="replace")
    return (None if is_late else os.waitstatus_to_exitcode(status)), text


def _test(folder: str, tests: Sequence[str], output: int) -> None:
    """Run tests in the child, and exit."""
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


def load_libraries(folder: str) -> None:
    """Load the libraries that the first tests load, but no module of the project."""
    loaded = Path(folder) / "loaded.txt"
    os.environ["LOADED"] = str(loaded)
    run(folder, FIRST_TESTS, 300.0)
    del os.environ["LOADED"]
    for name in loaded.read_text(encoding="utf-8").splitlines():
        top = name.partition(".")[0]
        if top not in PROJECT_MODULES and PACKAGE not in top:
            with suppress(Exception):
                import_module(name)
    assert PACKAGE not in sys.modules, "each fork must load the package of its checkout"


def main() -> None:
    """Answer requests until standard input ends."""
    load_libraries(sys.argv[1])
    for line in sys.stdin:
        folder, tests, seconds_max = json.loads(line)
        print(json.dumps(run(folder, tests, seconds_max)), flush=True)


if __name__ == "__main__":
    main()
