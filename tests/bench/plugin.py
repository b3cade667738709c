"""In a merchant's suite: what the fixtures cost, with and without sockets, on one worker and on two."""

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


def run(folder: Path, tests: str, *options: str, **more: str) -> float:
    """Seconds of a run of some of the suite's tests, a thousand of each kind."""
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
    begun = perf_counter()
    subprocess.run(
        [*command, "-p", "tests.bench.suite", *options, "-k", tests, str(SUITE)],
        cwd=ROOT,
        check=True,
        stdout=subprocess.DEVNULL,
        env={**environment(str(folder / "cache")), "BENCH_TESTS": str(TESTS), **more},
    )
    return perf_counter() - begun


def starts(folder: Path) -> None:
    """Of the server, in a process that has imported it, and from nothing to the first order."""
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
    begun = perf_counter()
    server = PaymentSandboxServer()
    server.session_for("sandbox-key").get(f"{server.base_url}/health/")
    taken = perf_counter() - begun
    server.stop()
    return taken


def suites(folder: Path) -> None:
    """A thousand tests of each kind, less what pytest itself takes for them."""
    inside = [costs(folder, "without_sockets") for _ in range(ROUNDS)]
    report("a fresh project for a test / an order creation", [c["test_a_project"] for c in inside], "<= 3")
    without = [cost["test_without_sockets"] for cost in inside]
    report("1,000 tests without sockets / 1,000 bare creations", without, "<= 3")
    report_workers(folder, "without_sockets")
    with make_server() as server:
        outside = [costs(folder, "with_sockets", SANDBOX_URL=server.url) for _ in range(ROUNDS)]
        with_sockets = [cost["test_with_sockets"] for cost in outside]
        report("1,000 tests with sockets / 1,000 bare creations", with_sockets, "none")
        report_workers(folder, "with_sockets", SANDBOX_URL=server.url)


def costs(folder: Path, test: str, **more: str) -> dict[str, float]:
    """What each kind of test costs in order creations, without what pytest itself takes."""
    durations = folder / "durations.json"
    run(folder, f"nothing or a_creation or a_project or {test}", BENCH_DURATIONS=str(durations), **more)
    took = json.loads(durations.read_text())
    bare = took["test_nothing"]
    return {kind: (taken - bare) / (took["test_a_creation"] - bare) for kind, taken in took.items()}


def report_workers(folder: Path, test: str, **more: str) -> None:
    """How much sooner two workers are ready."""
    two = [run(folder, test, "-n", "2", **more) / run(folder, test, **more) for _ in range(3)]
    report(f"the same on two workers / on one ({os.cpu_count()} processors)", two, "none")


def main() -> None:
    """All of it."""
    with tempfile.TemporaryDirectory() as name:
        starts(Path(name))
        suites(Path(name))
