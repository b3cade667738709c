"""One project takes all that it can get, in each way that once held up another one."""

import os
import socket
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from threading import Event, Thread
from typing import Any, Final
from urllib.parse import urlsplit

from tests.attack import Report
from tests.attack.probe import probing
from tests.attack.served import Project, served
from tests.support.driver import by
from tests.support.made_up_keys import crowding

JSON: Final = {"Content-Type": "application/json"}
MANY_LINES: Final = b'{"currency":"EUR","amount":1,"order_lines":[' + b"{}," * 21_824 + b"{}]}"
LARGE: Final = b'{"currency":"EUR","amount":1,"extra":{"a":[' + b"[1,2,3]," * 109_000 + b"1]}}"
CAPTURE: Final = b'{"order_lines":[' + b"{}," * 21_824 + b"{}]}"
FAULTS: Final = b'{"webhooks":[' + b"{}," * 21_824 + b"{}]}"
ALIASES: Final = b'{"aliases":{' + b",".join(b'"a%d":"x"' % n for n in range(5_000)) + b"}}"
SECONDS: Final = 8
NICE: Final = 10  # for clients: the bystander must not wait for them, but for the server


def attack(report: Report) -> None:
    """Each load in turn, from one project, while another one is watched."""
    for name, load in LOADS.items():
        with served("--quiet") as server, server.project() as project, probing(server, report, name):
            load(project, report.size.count(100, 5) / 100)


def _post(path: str, body: bytes, clients: int, method: str = "POST") -> Callable[[Project, float], None]:
    """Some clients that send the same body again and again."""

    def load(project: Project, share: float) -> None:
        def send(own: Project) -> None:
            own.call(method, path, data=body, headers=JSON)

        _again_and_again(project, clients, share, send)

    return load


def _again_and_again(project: Project, clients: int, share: float, send: Callable[[Project], object]) -> None:
    is_over = Event()

    def client() -> None:
        os.nice(NICE)
        with Project(project.url, project.key) as own:
            while not is_over.is_set():
                send(own)

    clients_at_work = [Thread(target=client) for _ in range(clients)]
    for each in clients_at_work:
        each.start()
    _pass_time(SECONDS * share)
    is_over.set()
    for each in clients_at_work:
        each.join()


def _pass_time(seconds: float) -> None:
    Event().wait(seconds)  # an attack goes on in real time


def _connect(project: Project, path: str, method: str = "GET", body: bytes = b"") -> socket.socket:
    parts = urlsplit(project.url)
    opened = socket.socket()
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    opened.settimeout(20)
    opened.connect((parts.hostname, parts.port))
    key = b64encode(f"{project.key}:".encode()).decode()
    head = f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Basic {key}\r\n"
    kind = f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n" if body else ""
    opened.sendall(f"{head}{kind}\r\n".encode() + body)
    return opened


@contextmanager
def _connected(project: Project, count: int, *asked: Any) -> Iterator[list[socket.socket]]:
    with ExitStack() as kept:
        opened = []
        for _ in range(count):
            opened.append(_connect(project, *asked))
            kept.callback(opened[-1].close)
        yield opened


def _slow_readers(project: Project, share: float) -> None:
    """Clients that read five megabytes of journal a byte at a time."""
    _fill(project, 1500, extra={"note": "x" * 3000})
    with _connected(project, 100, "/control/journal/") as opened:
        for _ in range(round(SECONDS * 10 * share)):
            for each in opened:
                each.recv(1)
            _pass_time(0.1)


def _fill(project: Project, count: int, **fields: Any) -> None:
    def some(number: int) -> None:
        with Project(project.url, project.key) as own:
            for _ in range(number):
                own.order(by("bank-transfer"), **fields)

    with ThreadPoolExecutor(4) as many:
        list(many.map(some, [count // 4] * 4))


def _dashboard(project: Project, share: float) -> None:
    """Clients that look at one page of many rows."""
    _fill(project, 1000)
    project_id = project.expect("GET", "/control/project/")["project_id"]
    page = f"/dashboard/{project_id}/"
    _again_and_again(project, 40, share, lambda own: own.call("GET", page))


def _long_polls(project: Project, share: float) -> None:
    """More waits than there is room for."""
    order = project.order(by("bank-transfer"))
    path = f"/control/wait/?order_id={order['id']}&status=completed&timeout=20"
    with _connected(project, 600, path):
        _pass_time(SECONDS * share)


def _hanging(project: Project, share: float) -> None:
    """Calls into a fault that holds each up."""
    fault = {"when": {"method": "GET"}, "then": {"latency": 5}}
    project.expect("PUT", "/control/faults/", {"faults": [fault]})
    with _connected(project, 600, "/v1/orders/x/"):
        _pass_time(SECONDS * share)


def _watchers(project: Project, share: float) -> None:
    """Watchers and waits."""
    order = project.order(by("bank-transfer"))
    path = f"/control/wait/?order_id={order['id']}&status=completed&timeout=20"
    with _connected(project, 1000, "/control/events/"), _connected(project, 500, path):
        _again_and_again(project, 2, share, lambda own: own.order(by("bank-transfer")))


def _running_clock(project: Project, share: float) -> None:
    """Creations on a running clock, one after another, by eight clients."""
    _again_and_again(project, 8, share * 3, lambda own: own.order(by("credit-card")))


def _pipelines(project: Project, share: float) -> None:
    """Connections that send many requests ahead."""
    key = b64encode(f"{project.key}:".encode()).decode()
    head = f"GET /control/journal/?limit=5 HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Basic {key}\r\n"
    ahead = f"{head}\r\n" * 199 + f"{head}Connection: close\r\n\r\n"

    def send(own: Project) -> None:
        with _connect(own, "/health/") as opened:
            opened.sendall(ahead.encode())
            while opened.recv(1 << 16):
                pass

    _again_and_again(project, 20, share, send)


def _made_up_keys(project: Project, share: float) -> None:
    """Calls with keys of no project, each with another one."""
    with crowding(project.url):
        _pass_time(SECONDS * share)


LOADS: Final[Mapping[str, Callable[[Project, float], None]]] = {
    "an order of 21,825 lines": _post("/v1/orders/", MANY_LINES, 8),
    "a capture of 21,825 lines": _post("/v1/orders/x/transactions/y/captures/", CAPTURE, 8),
    "faults of 21,825 webhooks": _post("/control/faults/", FAULTS, 8, "PUT"),
    "5,000 aliases": _post("/control/project/", ALIASES, 8, "PATCH"),
    "large bodies": _post("/v1/orders/", LARGE, 4),
    "slow readers": _slow_readers,
    "a dashboard page": _dashboard,
    "long polls": _long_polls,
    "hanging calls": _hanging,
    "watchers and waits": _watchers,
    "a running clock": _running_clock,
    "pipelines": _pipelines,
    "keys of no project": _made_up_keys,
}
