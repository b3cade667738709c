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
STUBS = "stubs"
KINDS = {
    "fixtures": ("300 tests with the fixtures / with responses", "<= 1.3"),
}
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


def run(folder: Path, kind: str, tests: int = TESTS) -> float:
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
        env={**environment(str(folder / "cache")), "BENCH_TESTS": str(tests)},
    )
    return perf_counter() - started


def main() -> None:
    """Report each kind against stubs, measured in turn."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        shutil.copy(FILES / "shop.py", folder)
        for kind in (*KINDS, STUBS):
            shutil.copy(FILES / f"{kind}.py", folder / f"test_{kind}.py")
            run(folder, kind)
        ratios: dict[str, list[float]] = {kind: [] for kind in KINDS}
        for _ in range(ROUNDS):
            stubs = run(folder, STUBS)
            for kind, values in ratios.items():
                values.append(run(folder, kind) / stubs)
    for kind, (line, aim) in KINDS.items():
        report(line, ratios[kind], aim)
