"""Crowds: watchers, waits, advances, uploads and half-open connections, far more than there is room for."""

import socket
from base64 import b64encode
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event, Semaphore, Thread
from time import perf_counter
from urllib.parse import urlsplit

from tests.attack import Report
from tests.attack.probe import probing
from tests.attack.served import Project, Served, served
from tests.support.driver import by

HALVES = (
    b"",
    b"GET /health/ HTTP/1.1\r\nHost: 127",
    b"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 9\r\n\r\n1",
)
LARGE = b'{"a": [' + b"[1, 2, 3], " * 90_000 + b"1]}"  # just under the limit
SPARE_THREADS = 40
GIVEN_BACK_SECONDS = 30


def attack(report: Report) -> None:
    """Each crowd in turn, against a server in memory, one with a state file, and one with few files."""
    with served() as server:
        _half_open(server, report)
        _watchers(server, report, report.size.count(1000, 60))
        _waits(server, report, report.size.count(500, 30))
        _advances(server, report)
        _uploads(server, report)
    with TemporaryDirectory() as folder, served("--state", str(Path(folder) / "state.db")) as server:
        _watchers(server, report, report.size.count(1000, 60), "with a state file, ")
        _uploads(server, report, "with a state file, ")
    with served(program=("prlimit", "--nofile=256:256")) as server:
        _watchers(server, report, 300, "with 256 files, ", room=40)


def _half_open(server: Served, report: Report) -> None:
    """Clients that begin a request, or none, and then do nothing."""
    count = report.size.count(1000, 100)
    with ExitStack() as kept:
        _connect(server, kept, count, HALVES)
        with probing(server, report, f"{count} half-open connections"):
            _connect(server, kept, count // 5, HALVES)
            _read(server, report.size.count(500, 20))


def _read(server: Served, count: int) -> None:
    """Somebody else's requests."""
    with Project(server.url) as other:
        for _ in range(count):
            other.expect("GET", "/health/")


def _connect(server: Served, kept: ExitStack, count: int, sent: tuple[bytes, ...]) -> list[socket.socket]:
    parts = urlsplit(server.url)
    found = []
    for number in range(count):
        opened = socket.create_connection((parts.hostname, parts.port), timeout=20)
        kept.callback(opened.close)
        opened.sendall(sent[number % len(sent)])
        found.append(opened)
    return found


def _asked(project: Project, path: str) -> bytes:
    key = b64encode(f"{project.key}:".encode()).decode()
    return f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Basic {key}\r\n\r\n".encode()


def _watchers(server: Served, report: Report, count: int, how: str = "", room: int = 1000) -> None:
    """Clients that watch a project's events while a lot happens in it."""
    before = server.use().threads
    with server.project() as project, ExitStack() as kept:
        with probing(server, report, f"{how}{count} watchers"):
            watching = _connect(server, kept, count, (_asked(project, "/control/events/"),))
            for _ in range(report.size.count(100, 10)):
                project.order(by("bank-transfer"))
            answers = Counter(opened.recv(12) for opened in watching)
        report.note(f"{how}watchers that were let in, told to come later", _shown(answers))
        report.expect("others get a reason", set(answers) <= {b"HTTP/1.1 200", b"HTTP/1.1 503"}, answers)
        report.expect(
            "all may watch for whom there is room", answers[b"HTTP/1.1 200"] >= min(count, room), answers
        )
        kept.close()
        _expect_threads_back(server, report, before, how)


def _shown(answers: Counter[bytes]) -> str:
    return f"{answers[b'HTTP/1.1 200']}, {answers[b'HTTP/1.1 503']}"


def _expect_threads_back(server: Served, report: Report, before: int, how: str = "") -> None:
    begun = perf_counter()
    while (threads := server.use().threads) > before + SPARE_THREADS:
        if perf_counter() - begun > GIVEN_BACK_SECONDS:
            break
        _read(server, 10)
    report.limit(f"{how}threads left", threads, before + SPARE_THREADS)


def _waits(server: Served, report: Report, count: int) -> None:
    """Clients that wait for a status that does not come, while every event wakes them."""
    before = server.use().threads
    with server.project() as project, ExitStack() as kept:
        order = project.order(by("bank-transfer"))
        path = f"/control/wait/?order_id={order['id']}&status=completed&timeout=3"
        with probing(server, report, f"{count} waits"):
            waiting = _connect(server, kept, count, (_asked(project, path),))
            for _ in range(report.size.count(100, 10)):
                project.order(by("bank-transfer"))
            answers = Counter(opened.recv(12) for opened in waiting)
        report.expect("waits time out", answers[b"HTTP/1.1 408"] == count, answers)
    _expect_threads_back(server, report, before)


def _advances(server: Served, report: Report) -> None:
    """Many projects whose clocks are advanced over a lot of events at the same time."""
    count = report.size.count(64, 8)
    with ExitStack() as kept:
        projects = [kept.enter_context(server.project(clock="frozen")) for _ in range(count)]
        with ThreadPoolExecutor(8) as many:
            list(many.map(_fill, projects))
        with probing(server, report, f"{count} projects advancing"), ThreadPoolExecutor(count) as many:
            done = list(many.map(_advanced, projects))
        report.expect("each runs all its events", all(found >= 40 for found in done), done)


def _fill(project: Project) -> None:
    for _ in range(40):
        project.order(by("credit-card"))


def _advanced(project: Project) -> int:
    return len(project.expect("POST", "/control/clock/advance/", {"by": "P40D"})["events"])


def _uploads(server: Served, report: Report, how: str = "") -> None:
    """Clients that send bodies of almost a mebibyte, all the time."""
    with (
        server.project() as project,
        _all_the_time(project, 8) as (statuses, sent),
        probing(server, report, f"{how}uploads of a mebibyte"),
    ):
        for _ in range(report.size.count(1000, 40)):
            assert sent.acquire(timeout=60)
    report.expect("each is answered", set(statuses) == {400}, statuses)


@contextmanager
def _all_the_time(project: Project, clients: int) -> Iterator[tuple[Counter[int], Semaphore]]:
    is_over, sent = Event(), Semaphore(0)
    statuses: Counter[int] = Counter()

    def send() -> None:
        with Project(project.url, project.key) as own:
            while not is_over.is_set():
                headers = {"Content-Type": "application/json"}
                statuses[own.call("POST", "/v1/orders/", data=LARGE, headers=headers).status_code] += 1
                sent.release()

    sending = [Thread(target=send) for _ in range(clients)]
    for one in sending:
        one.start()
    try:
        yield statuses, sent
    finally:
        is_over.set()
        for one in sending:
            one.join()
