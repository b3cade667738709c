"""Reads and creations of another project, all the time, from a process of its own; each on a new connection."""

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
from tests.attack.served import Project, Served
from tests.support.driver import by

CREATE: Final = "create"


class Made(NamedTuple):
    """One call."""

    at_seconds: float  # of the clock that all processes share
    kind: str
    took_ms: float
    problem: str | None


class Calls:
    """The calls of a bystander, once it has ended."""

    def __init__(self) -> None:
        self.made: list[Made] = []

    def between(self, begin: float, end: float) -> list[Made]:
        """The calls that were under way at a time."""
        return [
            made
            for made in self.made
            if made.at_seconds < end and made.at_seconds + made.took_ms / 1000 > begin
        ]


def percentile(made: list[Made], kind: str) -> float:
    """The 99th percentile of a kind; 0 without calls."""
    took = [each.took_ms for each in made if each.kind == kind]
    return quantiles(took, n=100, method="inclusive")[-1] if len(took) > 1 else sum(took)


@contextmanager
def calling(server: Served) -> Iterator[Calls]:
    """Call until the end of the block; the calls are there afterwards."""
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
    process.stdout.readline()  # it calls now
    try:
        yield calls
    finally:
        printed, _ = process.communicate("\n", timeout=120)
        with Project(server.url, project.key) as own, suppress(OSError):  # such as no answer
            own.call("DELETE", "/control/project/", timeout=20)  # what it has made is no longer in memory
    calls.made += (Made(*each) for each in json.loads(printed))


def _call_on(url: str, key: str, order_id: str) -> list[Made]:
    """Read and create in turn until a line comes."""
    address = urlsplit(url).netloc
    headers = {"Authorization": "Basic " + b64encode(f"{key}:".encode()).decode(), "Content-Type": JSON}
    new = {"currency": "EUR", "amount": 1000}
    kinds = {READ: Call("GET", f"/v1/orders/{order_id}/"), CREATE: Call("POST", "/v1/orders/", new)}
    made: list[Made] = []
    for call in kinds.values():
        problem_of(address, call, headers)  # what is loaded with its first use is loaded now
    print(flush=True)
    while not select([sys.stdin], [], [], 0)[0]:
        for kind, call in kinds.items():
            Event().wait(PAUSE_SECONDS)
            begun = perf_counter()
            problem = problem_of(address, call, headers)
            made.append(Made(begun, kind, (perf_counter() - begun) * 1000, problem))
    return made


if __name__ == "__main__":
    print(json.dumps(_call_on(*sys.argv[1:])))
