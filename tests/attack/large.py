"""Several clients request answers and snapshots of tens of megabytes at the same time."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

from tests.attack import Report
from tests.attack.probe import probing
from tests.attack.server_process import Project, run_server
from tests.support.driver import by

TEXT = "A sentence of the merchant's, about what is in the basket. " * 60
CLIENTS = 4


def attack(report: Report) -> None:
    """Read the journal, snapshot and agenda of a large project, and restore and delete it."""
    with run_server() as server, server.project(clock="frozen") as project:
        count = report.size.count(10_000, 200)
        with ThreadPoolExecutor(CLIENTS) as pool:
            list(pool.map(lambda _: _fill(project, count // CLIENTS), range(CLIENTS)))
        for path in ("/control/journal/", "/control/state/", "/control/agenda/"):
            with probing(server, report, f"GET {path}"), ThreadPoolExecutor(CLIENTS) as pool:
                lengths = list(pool.map(lambda _, path=path: _length(project, path), range(CLIENTS)))
            report.note(f"GET {path}: megabytes", f"{max(lengths) / 1e6:.1f}")
        snapshot = project.call("GET", "/control/state/").content
        with probing(server, report, "PUT /control/state/"), ThreadPoolExecutor(2) as pool:
            statuses = list(pool.map(lambda _: _restore(server.project(), snapshot), range(2)))
        report.expect("each snapshot is restored", statuses == [200, 200], statuses)
        with probing(server, report, "DELETE /control/project/"):
            project.expect("DELETE", "/control/project/")


def _fill(project: Project, count: int) -> None:
    with Project(project.url, project.key) as own:
        for _ in range(count):
            own.order(by("bank-transfer"), extra={"note": TEXT})


def _length(project: Project, path: str) -> int:
    with Project(project.url, project.key) as own:
        answer = own.call("GET", path)
        assert answer.status_code == 200, answer.text
        return len(answer.content)


def _restore(project: Project, snapshot: Any) -> int:
    with project:
        headers = {"Content-Type": "application/json"}
        return project.call("PUT", "/control/state/", data=snapshot, headers=headers).status_code
