"""Measures the waits of another project, the bystander, while a server is under attack.

The bystander runs in a separate process, opens a connection for each call, and makes all kinds of calls in turn.
"""

import json
import subprocess
import sys
from base64 import b64encode
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from http.client import HTTPConnection, HTTPException
from statistics import quantiles
from threading import Event, Semaphore, Thread
from time import perf_counter
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from tests.attack import limit_time, scaled
from tests.attack.server_process import ServerProcess
from tests.support.driver import by

WAIT_MS_MAX = 250
RATIO_MAX = 2.0  # 99th percentile of reads under attack / at rest
REST_MS_MIN = 5.0  # a floor, as pauses of the machine exceed the duration of a read
PAUSE_SECONDS = 0.005
ROUNDS_AT_REST = 40
TIMEOUT_SECONDS = 60

READ: Final = "read"
JSON: Final = "application/json"


class Call(NamedTuple):
    """One kind of call; a stream is closed after its first byte."""

    method: str
    path: str
    body: object = None
    is_stream: bool = False


def calls(project_id: str, order_id: str) -> Mapping[str, Call]:
    """Return every kind of call by name."""
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
    """The durations of each kind of call, in milliseconds, and the failures."""

    durations_ms: dict[str, list[float]]
    failures: dict[str, int]

    def percentile(self, kind: str) -> float:
        """Return the 99th percentile of a kind of call."""
        return quantiles(self.durations_ms[kind], n=100, method="inclusive")[-1]

    @property
    def longest(self) -> tuple[float, str]:
        """The duration and the kind of the longest call."""
        return max((max(durations), kind) for kind, durations in self.durations_ms.items())


@contextmanager
def probing(server: ServerProcess, label: str) -> Iterator[None]:
    """Make all kinds of calls for another project during the block, and report their durations."""
    with server.project(name="bystander", clock="frozen") as project:
        order = project.order(by("bank-transfer"))
        project_id = project.expect("GET", "/control/project/")["project_id"]
    target = (server.url, project.key, project_id, str(order["id"]))
    rounds = scaled(ROUNDS_AT_REST, 8)
    measure(*target, _wait_for_rounds(rounds // 4))  # warm up: load what the first use loads
    at_rest = measure(*target, _wait_for_rounds(rounds))
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.attack.probe", *target],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    process.stdout.readline()  # wait until it makes calls
    try:
        yield
    finally:
        printed, _ = process.communicate("\n", timeout=60)
    waits = Waits(**json.loads(printed))
    assert not waits.failures, f"{label}: another project is not answered: {waits.failures}"
    for name, figure, maximum, unit in figures(at_rest, waits):
        limit_time(f"{label}: {name}", figure, maximum, unit)


def figures(at_rest: Waits, waits: Waits) -> Iterator[tuple[str, float, float, str]]:
    """Yield what is limited: a name, the figure, its maximum and its unit."""
    longest, kind = waits.longest
    yield f"longest wait of another project ({kind})", longest, WAIT_MS_MAX, "ms"
    ratio = waits.percentile(READ) / max(REST_MS_MIN, at_rest.percentile(READ))
    yield f"99th percentile of its reads / at rest ({at_rest.percentile(READ):.1f} ms)", ratio, RATIO_MAX, ""


def measure(
    url: str, key: str, project_id: str, order_id: str, wait_until_over: Callable[[Semaphore], object]
) -> Waits:
    """Make calls until ``wait_until_over`` returns; its semaphore is released after each round of calls."""
    is_over, round_done = Event(), Semaphore(0)
    durations_ms: dict[str, list[float]] = defaultdict(list)
    failures: Counter[str] = Counter()
    address = urlsplit(url).netloc
    kinds = calls(project_id, order_id)
    headers = {"Authorization": "Basic " + b64encode(f"{key}:".encode()).decode(), "Content-Type": JSON}

    def make_calls() -> None:
        while not is_over.is_set():
            for kind in _in_turn(list(kinds)):
                is_over.wait(PAUSE_SECONDS)
                start = perf_counter()
                problem = problem_of(address, kinds[kind], headers)
                durations_ms[kind].append((perf_counter() - start) * 1000)
                if problem is not None:
                    failures[f"{kind}: {problem}"] += 1
            round_done.release()

    thread = Thread(target=make_calls)
    thread.start()
    round_done.acquire()
    wait_until_over(round_done)
    is_over.set()
    thread.join()
    return Waits(durations_ms, failures)


def _in_turn(kinds: Sequence[str]) -> Iterator[str]:
    """Yield all kinds, with a read before each other kind for a sufficient sample of reads."""
    for kind in kinds:
        if kind != READ:
            yield READ
            yield kind


def problem_of(address: str, call: Call, headers: Mapping[str, str]) -> str | None:
    """Make a call on a new connection, and return the problem with the answer, if any."""
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


def _wait_for_rounds(rounds: int) -> Callable[[Semaphore], None]:
    def wait_until_over(round_done: Semaphore) -> None:
        for _ in range(rounds):
            round_done.acquire()

    return wait_until_over


def _wait_for_line(round_done: Semaphore) -> None:
    print(flush=True)
    sys.stdin.readline()


if __name__ == "__main__":
    url, key, project_id, order_id = sys.argv[1:]
    print(json.dumps(measure(url, key, project_id, order_id, _wait_for_line)._asdict()))
