"""A suite in a fork of a warm process cannot tell that from a process of its own."""

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.documentation import run_command
from tests.support.suites import PLUGINS, SHOP, run_pytest

CURIOUS = f"""{SHOP}
import atexit, gc, json, logging, os, signal, sys, threading, warnings

def test_curious(shop, capfd):
    signals = {{str(each): str(signal.getsignal(each)) for each in signal.valid_signals()}}
    facts = {{
        "arguments": sys.argv[1:],
        "program": [os.path.basename(sys.argv[0]), *sys.orig_argv[1:]],
        "main": [sys.modules["__main__"].__name__, sys.modules["__main__"].__spec__.name],
        "folder": os.getcwd(),
        "path": sys.path,
        "environment": dict(os.environ),
        "modules": sorted(sys.modules),
        "finders": [str(type(each)) for each in sys.meta_path],
        "threads": [each.name for each in threading.enumerate()],
        "files": sorted(os.listdir("/proc/self/fd")) if os.path.exists("/proc/self/fd") else [],
        "collections": [gc.isenabled(), gc.get_threshold()],
        "filters": [str(each) for each in warnings.filters],
        "handlers": [str(type(each)) for each in logging.root.handlers],
        "signals": signals,
        "flags": str(sys.flags),
        "stdin": sys.__stdin__.isatty(),
    }}
    with open("facts.json", "w") as file:
        json.dump(facts, file)
    atexit.register(print, "the end")
    assert os.environ["ENDING"] == "good", os.write(2, b"an error")
"""

TIMES = re.compile(r" in [0-9.]+s|[0-9-]{10}T[0-9:.]+")


def facts_of(folder: Path) -> dict[str, Any]:
    """Return what the suite has written about its process."""
    facts: dict[str, Any] = json.loads((folder / "facts.json").read_text())
    return facts


@pytest.mark.parametrize("ending", ["good", "bad"])
def test_a_fork_is_like_a_process(tmp_path: Path, ending: str) -> None:
    """Two suites in forks have the facts, the output and the exit code of a suite in a process."""
    (tmp_path / "test_shop.py").write_text(CURIOUS)
    options = ("-q", "-pno:cacheprovider", "-s", "--tb=line", "test_shop.py")
    program = [sys.executable, "-m", "pytest", *options]
    expected = run_command(program, tmp_path, **PLUGINS, ENDING=ending)
    facts = facts_of(tmp_path)
    for _ in range(2):
        result = run_pytest(tmp_path, *options, ENDING=ending)
        assert facts_of(tmp_path) == facts
        assert (result.returncode, result.stderr) == (expected.returncode, expected.stderr)
        assert TIMES.sub("", result.stdout) == TIMES.sub("", expected.stdout)
        assert result.stdout.endswith("the end\n")
