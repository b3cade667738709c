"""Projects that try to store more than their quotas allow: orders, snapshots, resends, settings and texts."""

from collections import Counter
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, NamedTuple

from tests.attack import Report
from tests.attack.server_process import Project, run_server
from tests.support.driver import by

ORDERS_MAX: Final = 30
STATE_BYTES_MAX: Final = 1_100_000  # includes names and spaces, which a quota does not count
UNREACHABLE_URL: Final = "http://127.0.0.1:9/"
TEXT: Final = "x" * 4000
QUOTA_EXCEEDED: Final = 507
LONG: Final = {f"button-{number:03}-{'x' * 39}": "credit-card" for number in range(1000)}
MEMORY_MIB_MAX: Final = 16  # per megabyte of quota, as records take more space in memory than in a snapshot


class QuotaResult(NamedTuple):
    """The size of a project after it has tried to exceed its quotas, and the statuses of its calls."""

    state_bytes: int
    orders: int
    statuses: Mapping[int, int]


def attack(report: Report) -> None:
    """Let several projects store all kinds of records at the same time until their quotas are exhausted."""
    clients = report.size.count(8, 2)
    with run_server("--quiet") as other, other.project(clock="frozen") as project:
        for _ in range(report.size.count(400, 40)):
            project.order(by("bank-transfer"), description=TEXT, webhook_url=UNREACHABLE_URL)
        snapshot = project.expect("GET", "/control/state/")
    with run_server("--quiet", "--max-orders", str(ORDERS_MAX), "--max-megabytes", "1") as server:
        before = server.usage().memory_mib
        with ThreadPoolExecutor(clients) as pool:
            projects = [server.project(clock="frozen") for _ in range(clients)]
            for result in pool.map(
                lambda project: _exceed_quota(project, snapshot, report.size.count(150, 20)), projects
            ):
                report_result(report, result)
        growth = server.usage().memory_mib - before
        report.limit("memory growth of all projects", growth, MEMORY_MIB_MAX * clients, "MiB")


def report_result(report: Report, result: QuotaResult) -> None:
    """Report what one project could store."""
    report.expect("calls above the quota are refused", QUOTA_EXCEEDED in result.statuses, result.statuses)
    failures = {status for status in result.statuses if status >= 500 and status != QUOTA_EXCEEDED}
    report.expect("no call causes an internal error", not failures, result.statuses)
    report.limit("bytes of a project's snapshot", result.state_bytes, STATE_BYTES_MAX)
    report.limit("orders of a project", result.orders, ORDERS_MAX)


def _exceed_quota(project: Project, snapshot: Any, times: int) -> QuotaResult:
    """Make each kind of storing call many times."""
    statuses: Counter[int] = Counter()
    with project:
        statuses[project.call("PUT", "/control/state/", snapshot).status_code] += 1
        order = project.order(by("bank-transfer"), webhook_url=UNREACHABLE_URL)
        for _ in range(times):
            for store in STORING_CALLS.values():
                statuses[store(project, order["id"])] += 1
        state = project.call("GET", "/control/state/")
    return QuotaResult(len(state.content), len(state.json()["orders"]), statuses)


def _status(method: str, path: str, body: Any) -> Callable[[Project, str], int]:
    def store(project: Project, order_id: str) -> int:
        return project.call(method, path.replace("ID", order_id), body).status_code

    return store


def _resend(project: Project, order_id: str) -> int:
    items = project.expect("GET", f"/control/webhooks/?order_id={order_id}")["items"]
    if not items:
        return 404
    return project.call("POST", f"/control/webhooks/{items[-1]['id']}/redeliver/").status_code


RULE: Final = {"when": {"merchant_order_id": "x" * 900}, "then": {"customer": "pays"}}
FAULT: Final = {"when": {"path": "/v1/" + "x" * 900}, "then": {"status": 503}}
ORDER: Final = {"currency": "EUR", "amount": 1000, "description": TEXT, "transactions": [by("credit-card")]}
STORING_CALLS: Final[Mapping[str, Callable[[Project, str], int]]] = {
    "an order": _status("POST", "/v1/orders/", ORDER),
    "an update": _status("PUT", "/v1/orders/ID/", {"description": TEXT * 3}),
    "a QR request": _status("POST", "/v1/bankqr/", {"amount": 100, "description": TEXT}),
    "settings": _status("PATCH", "/control/project/", {"aliases": LONG}),
    "a scenario": _status("PUT", "/control/scenario/", {"name": "big", "rules": [RULE] * 90}),
    "faults": _status("PUT", "/control/faults/", {"faults": [FAULT] * 90}),
    "a resend": _resend,
}
