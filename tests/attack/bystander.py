"""Continuous reads and creations for another project from a separate process, each on a new connection."""

import json
import subprocess
import sys
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from select import select
from statistics import quantiles
from threading import Event
from time import perf_counter
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from tests.attack.probe import JSON, PAUSE_SECONDS, READ, Call, problem_of
from tests.attack.server_process import Project, ServerProcess
from tests.support.driver import by

CREATE: Final = "create"


class TimedCall(NamedTuple):
    """A call of the bystander, with its start and duration."""

    start_seconds: float  # on the clock that all processes share
    kind: str
    duration_ms: float
    problem: str | None


class Calls:
    """The calls of a bystander, available once it has ended."""

    def __init__(self) -> None:
        self.items: list[TimedCall] = []

    def between(self, begin: float, end: float) -> list[TimedCall]:
        """Return the calls that were in flight during an interval."""
        return [
            call
            for call in self.items
            if call.start_seconds < end and call.start_seconds + call.duration_ms / 1000 > begin
        ]


def percentile(calls: list[TimedCall], kind: str) -> float:
    """Return the 99th percentile of the durations of one kind of call; 0 without calls."""
    durations = [each.duration_ms for each in calls if each.kind == kind]
    return quantiles(durations, n=100, method="inclusive")[-1] if len(durations) > 1 else sum(durations)


@contextmanager
def background_calls(server: ServerProcess) -> Iterator[Calls]:
    """Make calls until the end of the block, and fill in their durations afterwards."""
    calls = Calls()
    with server.project(name="bystander", clock="frozen") as project:
        order = project.order(by("bank-transfer"))
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.attack.bystander", server.url, project.key, str(order["id"])],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    process.stdout.readline()  # wait until it makes calls
    try:
        yield calls
    finally:
        printed, _ = process.communicate("\n", timeout=120)
        with Project(server.url, project.key) as own, suppress(OSError):  # such as a timeout
            own.call("DELETE", "/control/project/", timeout=20)  # frees the memory of the created orders
    calls.items += (TimedCall(*each) for each in json.loads(printed))


def _make_calls(url: str, key: str, order_id: str) -> list[TimedCall]:
    """Read and create in turn until a line arrives on standard input."""
    address = urlsplit(url).netloc
    headers = {"Authorization": "Basic " + b64encode(f"{key}:".encode()).decode(), "Content-Type": JSON}
    new = {"currency": "EUR", "amount": 1000}
    kinds = {READ: Call("GET", f"/v1/orders/{order_id}/"), CREATE: Call("POST", "/v1/orders/", new)}
    calls: list[TimedCall] = []
    for call in kinds.values():
        problem_of(address, call, headers)  # warm up: load what the first use loads
    print(flush=True)
    while not select([sys.stdin], [], [], 0)[0]:
        for kind, call in kinds.items():
            Event().wait(PAUSE_SECONDS)
            start = perf_counter()
            problem = problem_of(address, call, headers)
            calls.append(TimedCall(start, kind, (perf_counter() - start) * 1000, problem))
    return calls


if __name__ == "__main__":
    print(json.dumps(_make_calls(*sys.argv[1:])))
