"""Projects that want to keep more than they may: orders, snapshots, resends, settings and texts of every call."""

from collections import Counter
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, NamedTuple

from tests.attack import Report
from tests.attack.served import Project, served
from tests.support.driver import by

ORDERS_MAX: Final = 30
STATE_BYTES_MAX: Final = 1_100_000  # a snapshot is written with names and spaces that a quota does not count
NOBODY: Final = "http://127.0.0.1:9/"
TEXT: Final = "x" * 4000
FULL: Final = 507
LONG: Final = {f"button-{number:03}-{'x' * 39}": "credit-card" for number in range(1000)}
MEMORY_MIB_MAX: Final = 16  # for each megabyte of quota: records take more in memory than in a snapshot


class Exceeding(NamedTuple):
    """What a project keeps after it has tried to keep too much, and what it was answered."""

    state_bytes: int
    orders: int
    statuses: Mapping[int, int]


def attack(report: Report) -> None:
    """Several projects at once do everything that keeps something, until nothing fits any more."""
    clients = report.size.count(8, 2)
    with served("--quiet") as other, other.project(clock="frozen") as project:
        for _ in range(report.size.count(400, 40)):
            project.order(by("bank-transfer"), description=TEXT, webhook_url=NOBODY)
        snapshot = project.expect("GET", "/control/state/")
    with served("--quiet", "--max-orders", str(ORDERS_MAX), "--max-megabytes", "1") as server:
        before = server.use().memory_mib
        with ThreadPoolExecutor(clients) as many:
            projects = [server.project(clock="frozen") for _ in range(clients)]
            for done in many.map(lambda each: _exceed(each, snapshot, report.size.count(150, 20)), projects):
                judge(report, done)
        more = server.use().memory_mib - before
        report.limit("memory of all projects, more than before", more, MEMORY_MIB_MAX * clients, "MiB")


def judge(report: Report, done: Exceeding) -> None:
    """Report what one project could keep."""
    report.expect("what is too much is refused", FULL in done.statuses, done.statuses)
    failures = {status for status in done.statuses if status >= 500 and status != FULL}
    report.expect("nothing fails the server", not failures, done.statuses)
    report.limit("bytes of a project's snapshot", done.state_bytes, STATE_BYTES_MAX)
    report.limit("orders of a project", done.orders, ORDERS_MAX)


def _exceed(project: Project, snapshot: Any, times: int) -> Exceeding:
    """Do each of it many times."""
    statuses: Counter[int] = Counter()
    with project:
        statuses[project.call("PUT", "/control/state/", snapshot).status_code] += 1
        order = project.order(by("bank-transfer"), webhook_url=NOBODY)
        for _ in range(times):
            for keep in KEEPING.values():
                statuses[keep(project, order["id"])] += 1
        state = project.call("GET", "/control/state/")
    return Exceeding(len(state.content), len(state.json()["orders"]), statuses)


def _status(method: str, path: str, body: Any) -> Callable[[Project, str], int]:
    def keep(project: Project, order_id: str) -> int:
        return project.call(method, path.replace("ID", order_id), body).status_code

    return keep


def _resend(project: Project, order_id: str) -> int:
    items = project.expect("GET", f"/control/webhooks/?order_id={order_id}")["items"]
    if not items:
        return 404
    return project.call("POST", f"/control/webhooks/{items[-1]['id']}/redeliver/").status_code


RULE: Final = {"when": {"merchant_order_id": "x" * 900}, "then": {"customer": "pays"}}
FAULT: Final = {"when": {"path": "/v1/" + "x" * 900}, "then": {"status": 503}}
ORDER: Final = {"currency": "EUR", "amount": 1000, "description": TEXT, "transactions": [by("credit-card")]}
KEEPING: Final[Mapping[str, Callable[[Project, str], int]]] = {
    "an order": _status("POST", "/v1/orders/", ORDER),
    "an update": _status("PUT", "/v1/orders/ID/", {"description": TEXT * 3}),
    "a QR request": _status("POST", "/v1/bankqr/", {"amount": 100, "description": TEXT}),
    "settings": _status("PATCH", "/control/project/", {"aliases": LONG}),
    "a scenario": _status("PUT", "/control/scenario/", {"name": "big", "rules": [RULE] * 90}),
    "faults": _status("PUT", "/control/faults/", {"faults": [FAULT] * 90}),
    "a resend": _resend,
}
