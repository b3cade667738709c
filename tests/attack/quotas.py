"""Many clients make projects keep more, in every way at once, on a server with quotas."""

from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Any, Final

from tests.attack import Report
from tests.attack.served import Project, Served, served
from tests.support.driver import by, card
from tests.support.shop import Shop

CLIENTS: Final = 8
PROJECTS: Final = 4
MEGABYTES: Final = 1  # of a project
IN_ALL: Final = 2
MEGABYTE: Final = 1_000_000
COUNTED_TWICE: Final = 1.15  # a snapshot has spaces, scenario and counters that no quota counts
FULL: Final = 507
TEXT: Final = "x" * 20_000
RULE: Final = {"when": {"merchant_order_id": "x" * 900}, "then": {"customer": "pays"}}


def attack(report: Report) -> None:
    """No project and no server keeps more than it may; what is due happens all the same."""
    quotas = ("--max-megabytes", str(MEGABYTES), "--max-megabytes-in-all", str(IN_ALL), "--max-orders", "300")
    with closing(Shop()) as shop, served(*quotas) as server:
        shop.says, shop.answer = b"y" * 4000, lambda received: 500
        projects = [server.project(clock="frozen", webhook_url=shop.url) for _ in range(PROJECTS)]
        snapshot = projects[0].expect("GET", "/control/state/")
        before = server.use()
        statuses = _flood(server, projects, snapshot, report.size.count(500, 20))
        report.note("answers by status", dict(statuses.most_common()))
        report.expect("some calls are refused", statuses[FULL] > 0 or report.size.share < 1)
        report.expect("no call fails", not any(status >= 500 and status != FULL for status in statuses))
        report.limit("memory", server.use().memory_mib - before.memory_mib, 300, "MiB")
        _look(report, projects)
        for project in projects:
            project.expect("POST", "/control/reset/")
        report.expect("a reset gives back what was kept", projects[0].order(card(), description=TEXT))


def _flood(server: Served, projects: list[Project], snapshot: Any, count: int) -> Counter[int]:
    def client(number: int) -> Counter[int]:
        statuses: Counter[int] = Counter()
        with Project(server.url, projects[number % PROJECTS].key) as own:
            for step in range(count):
                statuses[WAYS[(step + number) % len(WAYS)](own, snapshot)] += 1
        return statuses

    with ThreadPoolExecutor(CLIENTS) as many:
        return sum(many.map(client, range(CLIENTS)), Counter())


def _resend(project: Project, snapshot: Any) -> int:
    webhooks = project.expect("GET", "/control/webhooks/?limit=1&summary=1")["items"]
    return _status(project, "POST", f"/control/webhooks/{webhooks[0]['id']}/redeliver/") if webhooks else 200


def _big(snapshot: Any) -> Any:
    """The snapshot, with a description of settings that is too long."""
    return {**snapshot, "scenario": {"name": "big", "rules": [RULE] * 900}, "rule_uses": []}


def _status(project: Project, method: str, path: str, json: Any = None) -> int:
    return project.call(method, path, json).status_code


def _order(project: Project, method: str, **fields: Any) -> int:
    body = {"currency": "EUR", "amount": 1000, "transactions": [by(method)], **fields}
    return _status(project, "POST", "/v1/orders/", body)


WAYS: Final[list[Callable[[Project, Any], int]]] = [
    lambda project, snapshot: _order(project, "credit-card", description=TEXT),
    lambda project, snapshot: _order(project, "bank-transfer"),
    lambda project, snapshot: _status(project, "POST", "/v1/bankqr/", {"amount": 100, "description": TEXT}),
    lambda project, snapshot: _status(
        project, "PUT", "/control/scenario/", {"name": "big", "rules": [RULE] * 300}
    ),
    lambda project, snapshot: _status(project, "PUT", "/control/state/", _big(snapshot)),
    lambda project, snapshot: _status(project, "POST", "/control/clock/advance/", {"by": "PT2M"}),
    _resend,
]
"""Ways to make a project keep more."""


def _look(report: Report, projects: list[Project]) -> None:
    """Look at what is kept, and run all that is due."""
    lengths = [len(project.call("GET", "/control/state/").content) for project in projects]
    report.limit("bytes of a project", max(lengths), MEGABYTES * MEGABYTE * COUNTED_TWICE)
    report.limit("bytes in all", sum(lengths), IN_ALL * MEGABYTE * COUNTED_TWICE)
    for project in projects:
        advanced = project.expect("POST", "/control/clock/advance/", {"by": "P31D", "max_events": 100_000})
        failed = [event for event in advanced["events"] if event.get("failed")]
        report.expect("what is due happens", not failed, failed)
        pending = project.expect("GET", "/control/agenda/")["items"]
        report.expect("nothing is left", not pending or advanced.get("stopped", False), pending[:3])
