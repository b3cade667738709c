"""Measures, from a process of its own, how long others wait while a server is under attack."""

import json
import subprocess
import sys
from base64 import b64encode
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.client import HTTPConnection, HTTPException
from statistics import median
from threading import Event, Semaphore, Thread
from time import perf_counter
from typing import NamedTuple
from urllib.parse import urlsplit

from tests.attack import Report
from tests.attack.served import Served
from tests.support.driver import by

WAIT_MS_MAX = 250
WAIT_MS_MAX_BUSY = 5000  # beside a test run, which takes the processors for itself
PAUSE_SECONDS = 0.01
READS_AT_REST = 60
TIMEOUT_SECONDS = 10


class Waits(NamedTuple):
    """How long requests took."""

    median_ms: float
    most_ms: float
    failures: list[str]


@contextmanager
def probing(server: Served, report: Report, what: str = "") -> Iterator[None]:
    """Read the health and an order of another project all the time, and report how long it took."""
    with server.project(name="bystander") as project:
        order = project.order(by("bank-transfer"))
    target = (server.url, project.key, str(order["id"]))
    at_rest = measured(*target, _for_some_reads)
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.attack.probe", *target],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    process.stdout.readline()  # it reads now
    try:
        yield
    finally:
        told, _ = process.communicate("\n", timeout=60)
        found = Waits(**json.loads(told))
    most = WAIT_MS_MAX if report.size.strict else WAIT_MS_MAX_BUSY
    prefix = f"{what}: " if what else ""
    report.limit(f"{prefix}longest wait of another project", found.most_ms, most, "ms")
    report.note(f"{prefix}its median wait / at rest", f"{found.median_ms / at_rest.median_ms:.2f}")
    report.expect(f"{prefix}another project is answered", not found.failures, found.failures[:3])


def measured(url: str, key: str, order_id: str, wait: Callable[[Semaphore], object]) -> Waits:
    """Read until ``wait`` returns; it gets what is released after each read."""
    is_over, done = Event(), Semaphore(0)
    took: list[float] = []
    failures: list[str] = []
    address = urlsplit(url).netloc
    headers = {"Authorization": "Basic " + b64encode(f"{key}:".encode()).decode()}

    def read() -> None:
        connection = HTTPConnection(address, timeout=TIMEOUT_SECONDS)
        while not is_over.wait(PAUSE_SECONDS):
            for path in ("/health/", f"/v1/orders/{order_id}/"):
                begun = perf_counter()
                try:
                    connection.request("GET", path, headers=headers)
                    answer = connection.getresponse()
                    answer.read()
                    if answer.status != 200:
                        failures.append(f"{path}: {answer.status}")
                except (OSError, HTTPException) as error:
                    failures.append(f"{path}: {error!r}")
                    connection.close()
                took.append((perf_counter() - begun) * 1000)
                done.release()
        connection.close()

    reading = Thread(target=read)
    reading.start()
    done.acquire()
    wait(done)
    is_over.set()
    reading.join()
    return Waits(median(took), max(took), failures)


def _for_some_reads(done: Semaphore) -> None:
    for _ in range(READS_AT_REST):
        done.acquire()


def _until_told(done: Semaphore) -> None:
    print(flush=True)
    sys.stdin.readline()


if __name__ == "__main__":
    url, key, order_id = sys.argv[1:]
    print(json.dumps(measured(url, key, order_id, _until_told)._asdict()))
