"""Benchmark of the fixtures in a merchant's suite, with and without sockets, on one worker and on two."""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter

from payment_sandbox.testing.servers import PaymentSandboxServer
from tests.bench import report, seconds
from tests.bench.bodies import ORDER
from tests.bench.startup import environment
from tests.support.servers import make_server

ROUNDS = 5
STARTS = 21
TESTS = 1000
ROOT = Path(__file__).parents[2]
SUITE = ROOT / "tests" / "bench" / "suite.py"
FIRST_ORDER = f"""
from payment_sandbox.testing.servers import PaymentSandboxServer
server = PaymentSandboxServer()
project = server.project({{}})
assert project.client.call("POST", "/v1/orders/", {ORDER!r})["status"] == "new"
server.stop()
"""


def run(folder: Path, tests: str, *options: str, **variables: str) -> float:
    """Return the seconds of a run of some of the suite's tests, a thousand of each kind."""
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-c",
        os.devnull,
        "-p",
        "no:cacheprovider",
        "-p",
        "no:randomly",
    ]
    started = perf_counter()
    subprocess.run(
        [*command, "-p", "tests.bench.suite", *options, "-k", tests, str(SUITE)],
        cwd=ROOT,
        check=True,
        stdout=subprocess.DEVNULL,
        env={**environment(str(folder / "cache")), "BENCH_TESTS": str(TESTS), **variables},
    )
    return perf_counter() - started


def report_starts(folder: Path) -> None:
    """Report the start of the imported server, and the time from exec to a first order."""
    cache = environment(str(folder / "cache"))

    def first_order() -> object:
        return subprocess.run([sys.executable, "-c", FIRST_ORDER], check=True, env=cache)

    def flask() -> object:
        return subprocess.run([sys.executable, "-c", "import flask"], check=True, env=cache)

    first_order()
    flask()
    ratios = [seconds(first_order) / seconds(flask) for _ in range(STARTS)]
    report("in-process server and first order / python -c 'import flask'", ratios, "none")
    PaymentSandboxServer().stop()
    ready = [_ready_seconds() / 0.010 for _ in range(STARTS)]
    report("server thread ready and answering, once imported / 10 ms", ready, "<= 1")


def _ready_seconds() -> float:
    started = perf_counter()
    server = PaymentSandboxServer()
    server.session_for("sandbox-key").get(f"{server.base_url}/health/")
    taken = perf_counter() - started
    server.stop()
    return taken


def report_suites(folder: Path) -> None:
    """Report a thousand tests of each kind, without the time of pytest itself."""
    inside = [relative_costs(folder, "without_sockets") for _ in range(ROUNDS)]
    report("a fresh project for a test / an order creation", [c["test_a_project"] for c in inside], "<= 3")
    without = [cost["test_without_sockets"] for cost in inside]
    report("1,000 tests without sockets / 1,000 bare creations", without, "<= 3")
    report_workers(folder, "without_sockets")
    with make_server() as server:
        outside = [relative_costs(folder, "with_sockets", SANDBOX_URL=server.url) for _ in range(ROUNDS)]
        with_sockets = [cost["test_with_sockets"] for cost in outside]
        report("1,000 tests with sockets / 1,000 bare creations", with_sockets, "none")
        report_workers(folder, "with_sockets", SANDBOX_URL=server.url)


def relative_costs(folder: Path, test: str, **variables: str) -> dict[str, float]:
    """Return the cost of each kind of test in order creations, without the time of pytest itself."""
    durations = folder / "durations.json"
    run(folder, f"nothing or a_creation or a_project or {test}", BENCH_DURATIONS=str(durations), **variables)
    seconds_by_kind = json.loads(durations.read_text())
    bare = seconds_by_kind["test_nothing"]
    creation = seconds_by_kind["test_a_creation"] - bare
    return {kind: (taken - bare) / creation for kind, taken in seconds_by_kind.items()}


def report_workers(folder: Path, test: str, **variables: str) -> None:
    """Report the time of two workers against that of one."""
    two = [run(folder, test, "-n", "2", **variables) / run(folder, test, **variables) for _ in range(3)]
    report(f"the same on two workers / on one ({os.cpu_count()} processors)", two, "none")


def main() -> None:
    """Report the start of the server, and the suites."""
    with tempfile.TemporaryDirectory() as name:
        report_starts(Path(name))
        report_suites(Path(name))
