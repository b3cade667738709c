"""Measures, from a process of its own, how long another project waits while a server is under attack.

The bystander has a project of its own, opens a connection for each call, and makes every kind of call in turn.
"""

import json
import subprocess
import sys
from base64 import b64encode
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from http.client import HTTPConnection, HTTPException
from statistics import median, quantiles
from threading import Event, Semaphore, Thread
from time import perf_counter
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from tests.attack import Report
from tests.attack.served import Served
from tests.support.driver import by

WAIT_MS_MAX = 250
WAIT_MS_MAX_BUSY = 5000  # beside a test run, which takes the processors for itself
RATIO_MAX = 2.0  # of a read's 99th percentile to that at rest
REST_MS_MIN = 5.0  # pauses of the machine itself are longer than a read
PAUSE_SECONDS = 0.005
ROUNDS_AT_REST = 40
TIMEOUT_SECONDS = 20

READ: Final = "read"
JSON: Final = "application/json"


class Call(NamedTuple):
    """One kind of call; a stream is left after its first bytes."""

    method: str
    path: str
    body: object = None
    is_stream: bool = False


def calls(project_id: str, order_id: str) -> Mapping[str, Call]:
    """Every kind of call, by name."""
    new = {"currency": "EUR", "amount": 1000, "transactions": [by("bank-transfer")]}
    return {
        READ: Call("GET", f"/v1/orders/{order_id}/"),
        "health": Call("GET", "/health/"),
        "create": Call("POST", "/v1/orders/", new),
        "wait": Call("GET", f"/control/wait/?order_id={order_id}&status=processing&timeout=5"),
        "advance": Call("POST", "/control/clock/advance/", {"by": "PT1S"}),
        "journal": Call("GET", "/control/journal/?limit=10"),
        "watch": Call("GET", "/control/events/", is_stream=True),
        "order page": Call("GET", f"/pay/{project_id}/{order_id}/"),
        "dashboard": Call("GET", f"/dashboard/{project_id}/settings/"),
    }


class Waits(NamedTuple):
    """How long each kind of call took, in milliseconds, and which failed."""

    took: dict[str, list[float]]
    failures: dict[str, int]

    def percentile(self, kind: str) -> float:
        """The 99th percentile of a kind."""
        return quantiles(self.took[kind], n=100, method="inclusive")[-1]

    @property
    def longest(self) -> tuple[float, str]:
        """The longest call, and its kind."""
        return max((max(found), kind) for kind, found in self.took.items())


@contextmanager
def probing(server: Served, report: Report, what: str = "") -> Iterator[None]:
    """Make all kinds of call for another project all the time, and report how long they took."""
    with server.project(name="bystander", clock="frozen") as project:
        order = project.order(by("bank-transfer"))
        project_id = project.expect("GET", "/control/project/")["project_id"]
    target = (server.url, project.key, project_id, str(order["id"]))
    rounds = report.size.count(ROUNDS_AT_REST, 8)
    measured(*target, _for_rounds(rounds // 4))  # what is loaded with its first use is loaded now
    at_rest = measured(*target, _for_rounds(rounds))
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.attack.probe", *target],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    process.stdout.readline()  # it calls now
    try:
        yield
    finally:
        printed, _ = process.communicate("\n", timeout=60)
    _report(report, f"{what}: " if what else "", at_rest, Waits(**json.loads(printed)))


def _report(report: Report, prefix: str, at_rest: Waits, waits: Waits) -> None:
    longest, kind = waits.longest
    most = WAIT_MS_MAX if report.size.strict else WAIT_MS_MAX_BUSY
    report.limit(f"{prefix}longest wait of another project ({kind})", longest, most, "ms")
    ratio = waits.percentile(READ) / max(REST_MS_MIN, at_rest.percentile(READ))
    name = f"{prefix}99th percentile of its reads / at rest ({at_rest.percentile(READ):.1f} ms)"
    if report.size.strict:
        report.limit(name, ratio, RATIO_MAX)
    else:
        report.note(name, f"{ratio:.2f}")
    medians = {kind: median(found) / median(at_rest.took[kind]) for kind, found in waits.took.items()}
    slowest = max(medians, key=lambda kind: medians[kind])
    report.note(
        f"{prefix}its slowest kind of call / at rest, in the median", f"{slowest} {medians[slowest]:.2f}"
    )
    report.expect(f"{prefix}another project is answered", not waits.failures, waits.failures)


def measured(
    url: str, key: str, project_id: str, order_id: str, wait: Callable[[Semaphore], object]
) -> Waits:
    """Call until ``wait`` returns; it gets what is released after each round of all kinds."""
    is_over, done = Event(), Semaphore(0)
    took: dict[str, list[float]] = defaultdict(list)
    failures: Counter[str] = Counter()
    address = urlsplit(url).netloc
    kinds = calls(project_id, order_id)
    headers = {"Authorization": "Basic " + b64encode(f"{key}:".encode()).decode(), "Content-Type": JSON}

    def go_round() -> None:
        while not is_over.is_set():
            for kind in _in_turn(list(kinds)):
                is_over.wait(PAUSE_SECONDS)
                begun = perf_counter()
                problem = problem_of(address, kinds[kind], headers)
                took[kind].append((perf_counter() - begun) * 1000)
                if problem is not None:
                    failures[f"{kind}: {problem}"] += 1
            done.release()

    calling = Thread(target=go_round)
    calling.start()
    done.acquire()
    wait(done)
    is_over.set()
    calling.join()
    return Waits(took, failures)


def _in_turn(kinds: Sequence[str]) -> Iterator[str]:
    """Each kind, with a read before each other one, so that there are enough of them."""
    for kind in kinds:
        if kind != READ:
            yield READ
            yield kind


def problem_of(address: str, call: Call, headers: Mapping[str, str]) -> str | None:
    """Make a call on a connection of its own; what is wrong with its answer, if anything is."""
    connection = HTTPConnection(address, timeout=TIMEOUT_SECONDS)
    try:
        body = None if call.body is None else json.dumps(call.body)
        connection.request(call.method, call.path, body, dict(headers))
        answer = connection.getresponse()
        if call.is_stream:
            answer.read(1)
        else:
            answer.read()
        return None if answer.status < 400 else str(answer.status)
    except (OSError, HTTPException) as error:
        return repr(error)
    finally:
        connection.close()


def _for_rounds(rounds: int) -> Callable[[Semaphore], None]:
    def wait(done: Semaphore) -> None:
        for _ in range(rounds):
            done.acquire()

    return wait


def _until_told(done: Semaphore) -> None:
    print(flush=True)
    sys.stdin.readline()


if __name__ == "__main__":
    url, key, project_id, order_id = sys.argv[1:]
    print(json.dumps(measured(url, key, project_id, order_id, _until_told)._asdict()))
