"""Crowds of watchers, waits and advances of one project, far above a server's limits."""

from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

from tests.attack import Report
from tests.attack.probe import probing
from tests.attack.server_process import Project, ServerProcess, run_server
from tests.attack.shares import connected
from tests.support.driver import by

SPARE_THREADS = 40
RELEASE_SECONDS = 120
OK, TIMEOUT, BUSY = b"HTTP/1.1 200", b"HTTP/1.1 408", b"HTTP/1.1 503"


def attack(report: Report) -> None:
    """Send the crowds to a server in memory, one with a state file, and one with few file descriptors."""
    with run_server() as server:
        _watch(server, report, report.size.count(1000, 60))
        _wait(server, report, report.size.count(500, 30))
        _advance_projects(server, report)
    with TemporaryDirectory() as folder, run_server("--state", str(Path(folder) / "state.db")) as server:
        _watch(server, report, report.size.count(1000, 60), "with a state file, ")
    with run_server(program=("prlimit", "--nofile=256:256")) as server:
        _watch(server, report, 300, "with 256 files, ", room=40)


def _watch(server: ServerProcess, report: Report, count: int, label: str = "", room: int = 1000) -> None:
    """Watch the events of a busy project with many clients."""
    answers = _crowd(server, report, f"{label}{count} watchers", count, lambda order_id: "/control/events/")
    report.note(f"{label}accepted watchers, refused watchers", f"{answers[OK]}, {answers[BUSY]}")
    report.expect("other watchers are refused with 503", set(answers) <= {OK, BUSY}, answers)
    report.expect("watchers are accepted up to the limit", answers[OK] >= min(count, room), answers)


def _wait(server: ServerProcess, report: Report, count: int) -> None:
    """Wait with many clients for a status that is never reached; every event wakes them."""
    path = "/control/wait/?order_id={}&status=completed&timeout=3"
    answers = _crowd(server, report, f"{count} waits", count, path.format)
    report.expect("waits time out", answers[TIMEOUT] == count, answers)


def _crowd(
    server: ServerProcess, report: Report, label: str, count: int, path: Callable[[str], str]
) -> Counter[bytes]:
    """Make a call with many clients of a busy project at once; return the beginnings of the answers."""
    before = server.usage().threads
    with server.project() as project:
        order = project.order(by("bank-transfer"))
        with probing(server, report, label), connected(project, count, path(order["id"])) as connections:
            for _ in range(report.size.count(100, 10)):
                project.order(by("bank-transfer"))
            answers = Counter(connection.recv(len(OK)) for connection in connections)
    start = perf_counter()
    while (threads := server.usage().threads) > before + SPARE_THREADS:
        if perf_counter() - start > RELEASE_SECONDS:
            break
        with Project(server.url) as other:
            other.expect("GET", "/health/")
    report.limit(f"{label}: remaining threads", threads, before + SPARE_THREADS)
    return answers


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
