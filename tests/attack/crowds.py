"""Crowds of watchers, waits, advances, uploads and half-open connections, far above a server's limits."""

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

import requests

from tests.attack import Report
from tests.attack.probe import probing
from tests.attack.server_process import Project, ServerProcess, run_server
from tests.support.driver import by

PARTIAL_REQUESTS = (
    b"",
    b"GET /health/ HTTP/1.1\r\nHost: 127",
    b"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 9\r\n\r\n1",
)
LARGE = b'{"a": [' + b"[1, 2, 3], " * 90_000 + b"1]}"  # just under the limit
SPARE_THREADS = 40
RELEASE_SECONDS = 30
HANDSHAKE_CROWD_MIB = 100


def attack(report: Report) -> None:
    """Send the crowds to a server in memory, one with a state file, and one with few file descriptors."""
    with run_server() as server:
        _open_partial_requests(server, report)
        _watch(server, report, report.size.count(1000, 60))
        _wait(server, report, report.size.count(500, 30))
        _advance_projects(server, report)
        _upload(server, report)
    with TemporaryDirectory() as folder, run_server("--state", str(Path(folder) / "state.db")) as server:
        _watch(server, report, report.size.count(1000, 60), "with a state file, ")
        _upload(server, report, "with a state file, ")
    _crowd_handshakes(report)
    _guess_tokens(report)
    with run_server(program=("prlimit", "--nofile=256:256")) as server:
        _watch(server, report, 300, "with 256 files, ", room=40)


def _open_partial_requests(server: ServerProcess, report: Report) -> None:
    """Open connections that send nothing or part of a request, and stay idle."""
    count = report.size.count(1000, 100)
    with ExitStack() as stack:
        _connect(server, stack, count, PARTIAL_REQUESTS)
        with probing(server, report, f"{count} half-open connections"):
            _connect(server, stack, count // 5, PARTIAL_REQUESTS)
            _read_health(server, report.size.count(500, 20))


def _read_health(server: ServerProcess, count: int) -> None:
    """Make requests as another client."""
    with Project(server.url) as other:
        for _ in range(count):
            other.expect("GET", "/health/")


def _connect(
    server: ServerProcess, stack: ExitStack, count: int, requests: tuple[bytes, ...]
) -> list[socket.socket]:
    parts = urlsplit(server.url)
    connections = []
    for number in range(count):
        connection = socket.create_connection((parts.hostname, parts.port), timeout=20)
        stack.callback(connection.close)
        connection.sendall(requests[number % len(requests)])
        connections.append(connection)
    return connections


def _request_to(project: Project, path: str) -> bytes:
    key = b64encode(f"{project.key}:".encode()).decode()
    return f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Basic {key}\r\n\r\n".encode()


def _watch(server: ServerProcess, report: Report, count: int, label: str = "", room: int = 1000) -> None:
    """Watch the events of a busy project with many clients."""
    before = server.usage().threads
    with server.project() as project, ExitStack() as stack:
        with probing(server, report, f"{label}{count} watchers"):
            watching = _connect(server, stack, count, (_request_to(project, "/control/events/"),))
            for _ in range(report.size.count(100, 10)):
                project.order(by("bank-transfer"))
            answers = Counter(connection.recv(12) for connection in watching)
        report.note(f"{label}accepted watchers, refused watchers", _summarize(answers))
        report.expect(
            "other watchers are refused with 503", set(answers) <= {b"HTTP/1.1 200", b"HTTP/1.1 503"}, answers
        )
        report.expect(
            "watchers are accepted up to the limit", answers[b"HTTP/1.1 200"] >= min(count, room), answers
        )
        stack.close()
        _expect_threads_back(server, report, before, label)


def _summarize(answers: Counter[bytes]) -> str:
    return f"{answers[b'HTTP/1.1 200']}, {answers[b'HTTP/1.1 503']}"


def _expect_threads_back(server: ServerProcess, report: Report, before: int, label: str = "") -> None:
    start = perf_counter()
    while (threads := server.usage().threads) > before + SPARE_THREADS:
        if perf_counter() - start > RELEASE_SECONDS:
            break
        _read_health(server, 10)
    report.limit(f"{label}remaining threads", threads, before + SPARE_THREADS)


def _wait(server: ServerProcess, report: Report, count: int) -> None:
    """Wait with many clients for a status that is never reached; every event wakes them."""
    before = server.usage().threads
    with server.project() as project, ExitStack() as stack:
        order = project.order(by("bank-transfer"))
        path = f"/control/wait/?order_id={order['id']}&status=completed&timeout=3"
        with probing(server, report, f"{count} waits"):
            waiting = _connect(server, stack, count, (_request_to(project, path),))
            for _ in range(report.size.count(100, 10)):
                project.order(by("bank-transfer"))
            answers = Counter(connection.recv(12) for connection in waiting)
        report.expect("waits time out", answers[b"HTTP/1.1 408"] == count, answers)
    _expect_threads_back(server, report, before)


def _advance_projects(server: ServerProcess, report: Report) -> None:
    """Advance the clocks of many projects over many events at the same time."""
    count = report.size.count(64, 8)
    with ExitStack() as stack:
        projects = [stack.enter_context(server.project(clock="frozen")) for _ in range(count)]
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(_fill, projects))
        with probing(server, report, f"{count} projects advancing"), ThreadPoolExecutor(count) as pool:
            event_counts = list(pool.map(_advance, projects))
        report.expect(
            "each project runs all its events", all(events >= 40 for events in event_counts), event_counts
        )


def _fill(project: Project) -> None:
    for _ in range(40):
        project.order(by("credit-card"))


def _advance(project: Project) -> int:
    return len(project.expect("POST", "/control/clock/advance/", {"by": "P40D"})["events"])


def _upload(server: ServerProcess, report: Report, label: str = "") -> None:
    """Continuously send bodies of almost a mebibyte."""
    with (
        server.project() as project,
        _continuous_uploads(project, 8) as (statuses, finished),
        probing(server, report, f"{label}uploads of a mebibyte"),
    ):
        for _ in range(report.size.count(1000, 40)):
            assert finished.acquire(timeout=60)
    report.expect("each upload is answered", set(statuses) == {400}, statuses)


@contextmanager
def _continuous_uploads(project: Project, clients: int) -> Iterator[tuple[Counter[int], Semaphore]]:
    is_over, finished = Event(), Semaphore(0)
    statuses: Counter[int] = Counter()

    def send() -> None:
        with Project(project.url, project.key) as own:
            while not is_over.is_set():
                headers = {"Content-Type": "application/json"}
                statuses[own.call("POST", "/v1/orders/", data=LARGE, headers=headers).status_code] += 1
                finished.release()

    threads = [Thread(target=send) for _ in range(clients)]
    for thread in threads:
        thread.start()
    try:
        yield statuses, finished
    finally:
        is_over.set()
        for thread in threads:
            thread.join()


def _crowd_handshakes(report: Report) -> None:
    """Begin many TLS handshakes with one byte each."""
    count = report.size.count(2000, 400)
    with run_server("--tls") as server, ExitStack() as stack:
        before_mib = server.usage().memory_mib
        _connect(server, stack, count, (b"\x16",))
        used_mib = server.usage().memory_mib - before_mib
    report.limit(f"memory of {count} unfinished handshakes", used_mib, HANDSHAKE_CROWD_MIB, "MiB")


def _guess_tokens(report: Report) -> None:
    """Guess control tokens at the sign-in of the dashboard."""
    statuses: Counter[int] = Counter()
    start = perf_counter()
    with run_server("--control-token", "the-token-of-this-attack") as server:
        for number in range(report.size.count(1000, 40)):
            answer = requests.post(
                f"{server.url}/dashboard/sign-in/", data={"secret": f"guess-{number}"}, timeout=5
            )
            statuses[answer.status_code] += 1
    allowed = 11 + (perf_counter() - start) / 6
    report.limit("answered guesses", statuses[401], allowed)
    report.expect("the other guesses get 429", set(statuses) == {401, 429}, statuses)
