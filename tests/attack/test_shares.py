"""Loads by one project, each of which once delayed other projects."""

import os
import socket
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from itertools import count
from threading import Event, Thread
from typing import Any, Final
from urllib.parse import urlsplit

import pytest

from tests.attack import scaled
from tests.attack.probe import probing
from tests.attack.server_process import Project, run_server
from tests.support.driver import by
from tests.support.samples import of_the_day

JSON: Final = {"Content-Type": "application/json"}
MANY_LINES: Final = b'{"currency":"EUR","amount":1,"order_lines":[' + b"{}," * 21_824 + b"{}]}"
LARGE: Final = b'{"currency":"EUR","amount":1,"extra":{"a":[' + b"[1,2,3]," * 109_000 + b"1]}}"
CAPTURE: Final = b'{"order_lines":[' + b"{}," * 21_824 + b"{}]}"
FAULTS: Final = b'{"webhooks":[' + b"{}," * 21_824 + b"{}]}"
ALIASES: Final = b'{"aliases":{' + b",".join(b'"a%d":"x"' % n for n in range(5_000)) + b"}}"
CROWD_ANSWERS: Final = (
    b"HTTP/1.1 200",
    b"HTTP/1.1 408",
    b"HTTP/1.1 503",
)  # the last beyond a project's share
SECONDS: Final = 8
CLIENT_NICENESS: Final = 10  # clients must not take processor time from the bystander


def _post(path: str, body: bytes, clients: int, method: str = "POST") -> Callable[[Project, float], None]:
    """Return a load of some clients that repeatedly send the same body."""

    def load(project: Project, share: float) -> None:
        def send(own: Project) -> None:
            own.call(method, path, data=body, headers=JSON)

        _repeat(project, clients, share, send)

    return load


def _repeat(project: Project, clients: int, share: float, send: Callable[[Project], object]) -> None:
    is_over = Event()

    def client() -> None:
        os.nice(CLIENT_NICENESS)
        with Project(project.url, project.key) as own:
            while not is_over.is_set():
                send(own)

    threads = [Thread(target=client) for _ in range(clients)]
    for thread in threads:
        thread.start()
    _sleep(SECONDS * share)
    is_over.set()
    for thread in threads:
        thread.join()


def _sleep(seconds: float) -> None:
    Event().wait(seconds)  # an attack runs in real time


def _connect(project: Project, path: str) -> socket.socket:
    parts = urlsplit(project.url)
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    connection.settimeout(60)
    connection.connect((parts.hostname, parts.port))
    key = b64encode(f"{project.key}:".encode()).decode()
    connection.sendall(
        f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Basic {key}\r\n\r\n".encode()
    )
    return connection


@contextmanager
def connected(project: Project, count: int, path: str) -> Iterator[list[socket.socket]]:
    """Make a call on each of many connections, and leave their answers unread."""
    with ExitStack() as stack:
        connections = []
        for _ in range(count):
            connections.append(_connect(project, path))
            stack.callback(connections[-1].close)
        yield connections


def _slow_readers(project: Project, share: float) -> None:
    """Clients that read a journal of five megabytes byte by byte."""
    _fill(project, 1500, extra={"note": "x" * 3000})
    with connected(project, 100, "/control/journal/") as connections:
        for _ in range(round(SECONDS * 10 * share)):
            for connection in connections:
                connection.recv(1)
            _sleep(0.1)


def _fill(project: Project, count: int, **fields: Any) -> None:
    def create(number: int) -> None:
        with Project(project.url, project.key) as own:
            for _ in range(number):
                own.order(by("bank-transfer"), **fields)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(create, [count // 4] * 4))


def _dashboard(project: Project, share: float) -> None:
    """Clients that load a page with many rows."""
    _fill(project, 1000)
    project_id = project.expect("GET", "/control/project/")["project_id"]
    page = f"/dashboard/{project_id}/"
    _repeat(project, 40, share, lambda own: own.call("GET", page))


def _hanging(project: Project, share: float) -> None:
    """Calls that a fault delays."""
    fault = {"when": {"method": "GET"}, "then": {"latency": 5}}
    project.expect("PUT", "/control/faults/", {"faults": [fault]})
    with connected(project, 600, "/v1/orders/x/"):
        _sleep(SECONDS * share)


def _running_clock(project: Project, share: float) -> None:
    """Creations on a running clock, one after another, by eight clients."""
    _repeat(project, 8, share * 3, lambda own: own.order(by("credit-card")))


def _pipelines(project: Project, share: float) -> None:
    """Connections that pipeline many requests."""
    key = b64encode(f"{project.key}:".encode()).decode()
    head = f"GET /control/journal/?limit=5 HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Basic {key}\r\n"
    pipeline = f"{head}\r\n" * 199 + f"{head}Connection: close\r\n\r\n"

    def send(own: Project) -> None:
        with _connect(own, "/health/") as connection:
            connection.sendall(pipeline.encode())
            while connection.recv(1 << 16):
                pass

    _repeat(project, 20, share, send)


def _crowd(path: str, count: int) -> Callable[[Project, float], None]:
    """Return a load of many clients that make the same waiting call while orders are created."""

    def load(project: Project, share: float) -> None:
        order = project.order(by("bank-transfer"))
        with connected(project, round(count * share), path.format(order["id"])) as connections:
            for _ in range(round(200 * share)):
                project.order(by("bank-transfer"))
            for connection in connections:
                assert connection.recv(12) in CROWD_ANSWERS

    return load


def _made_up_keys(project: Project, share: float) -> None:
    """Clients whose every call has another invalid key."""
    keys = count()
    _repeat(
        project, 8, share, lambda own: own.call("GET", "/v1/orders/x/", auth=(f"made-up-{next(keys)}", ""))
    )


LOADS: Final[Mapping[str, Callable[[Project, float], None]]] = {
    "an order of 21,825 lines": _post("/v1/orders/", MANY_LINES, 8),
    "a capture of 21,825 lines": _post("/v1/orders/x/transactions/y/captures/", CAPTURE, 8),
    "faults of 21,825 webhooks": _post("/control/faults/", FAULTS, 8, "PUT"),
    "5,000 aliases": _post("/control/project/", ALIASES, 8, "PATCH"),
    "large bodies": _post("/v1/orders/", LARGE, 4),
    "slow readers": _slow_readers,
    "a dashboard page": _dashboard,
    "hanging calls": _hanging,
    "a running clock": _running_clock,
    "pipelines": _pipelines,
    "made-up keys": _made_up_keys,
    "watchers": _crowd("/control/events/", 1000),
    "waits": _crowd("/control/wait/?order_id={}&status=completed&timeout=3", 500),
}


@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", of_the_day(LOADS, 6))
def test_a_load_delays_no_other_project(name: str) -> None:
    """A bystander is answered while one project puts a load on the server."""
    with run_server("--quiet") as server, server.project() as project, probing(server, name):
        LOADS[name](project, scaled(100, 5) / 100)
