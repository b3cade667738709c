"""Benchmark of a merchant's 300 tests, start included: with the fixtures, and with responses."""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter

from tests.bench import report
from tests.bench.startup import environment

ROUNDS = 7
TESTS = 300
FILES = Path(__file__).parent / "first_test"
FIXTURES, STUBS = "fixtures", "stubs"
DISABLED_PLUGINS = (
    "cacheprovider",
    "randomly",
    "asyncio",
    "anyio",
    "hypothesispytest",
    "timeout",
    "xdist",
    "socket",
)


def run(folder: Path, kind: str) -> float:
    """Return the seconds of a whole run of one kind of tests."""
    command = [sys.executable, "-m", "pytest", "-q", "-c", os.devnull, "--rootdir", str(folder)]
    for plugin in DISABLED_PLUGINS:
        command += ["-p", f"no:{plugin}"]
    started = perf_counter()
    subprocess.run(
        [*command, str(folder / f"test_{kind}.py")],
        cwd=folder,
        check=True,
        stdout=subprocess.DEVNULL,
        env={**environment(str(folder / "cache")), "BENCH_TESTS": str(TESTS)},
    )
    return perf_counter() - started


def main() -> None:
    """Report tests with the fixtures against tests with stubs, measured in turn."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        shutil.copy(FILES / "shop.py", folder)
        for kind in (FIXTURES, STUBS):
            shutil.copy(FILES / f"{kind}.py", folder / f"test_{kind}.py")
            run(folder, kind)
        ratios = [run(folder, FIXTURES) / run(folder, STUBS) for _ in range(ROUNDS)]
    report("300 tests with the fixtures / with responses", ratios, "<= 1.3")
