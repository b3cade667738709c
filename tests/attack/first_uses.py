"""Eight clients at once are the first to look at a fresh server: at its pages, pictures and descriptions."""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Final, NamedTuple

import requests

from payment_sandbox.orders.order import LOCALES
from payment_sandbox.web.docs.library import PAGE_NAMES
from tests.attack import Report
from tests.attack.served import Project, served
from tests.support.driver import by

CLIENTS: Final = 8
OK: Final = 200
DASHBOARDS: Final = ("", "settings/", "scenario/", "webhooks/", "journal/", "review/", "coverage/", "vault/")


class Look(NamedTuple):
    """What one client looks at, and in which language."""

    path: str
    language: str = "en-GB"


Prepare = Callable[[Project, int], Sequence[Look]]
"""Prepares a fresh server; says what each client looks at, which may differ from time to time."""


def attack(report: Report) -> None:
    """Each kind of first use, on a fresh server each time."""
    for name in FIRST_USES:
        for time in range(report.size.count(10)):
            failures = failures_of(name, time)
            report.expect(f"{name}: everything is shown", not failures, failures)
    report.note("fresh servers of each kind", report.size.count(10))


def failures_of(name: str, time: int = 0) -> list[str]:
    """What was not shown to clients who were the first, all at once."""
    with served("--quiet") as server, Project(server.url) as project:
        looks = FIRST_USES[name](project, time)
        ready = Barrier(CLIENTS)

        def look(at: Look) -> tuple[Look, requests.Response]:
            with requests.Session() as own:
                own.trust_env = False
                ready.wait()
                headers = {"Accept-Language": at.language, "Accept": "text/html, */*"}
                return at, own.get(f"{server.url}{at.path}", headers=headers, timeout=60)

        with ThreadPoolExecutor(CLIENTS) as clients:
            shown = list(clients.map(look, looks))
        bodies: dict[Look, bytes] = {}
        failures = [f"{at}: {answer.status_code}" for at, answer in shown if answer.status_code != OK]
        failures += [
            f"{at}: differs"
            for at, answer in shown
            if bodies.setdefault(at, answer.content) != answer.content
        ]
        return failures


def _documentation(project: Project, time: int) -> Sequence[Look]:
    return [
        Look(f"/docs/{PAGE_NAMES[(time * CLIENTS + number) % len(PAGE_NAMES)]}/") for number in range(CLIENTS)
    ]


def _dashboards(project: Project, time: int) -> Sequence[Look]:
    project.order(by("bank-redirect-nl"))
    project_id = project.expect("GET", "/control/project/")["project_id"]
    return [Look(f"/dashboard/{project_id}/{view}") for view in DASHBOARDS]


def _payments(project: Project, time: int) -> Sequence[Look]:
    orders = [
        project.order(by("bank-transfer") if number % 2 else by("credit-card")) for number in range(CLIENTS)
    ]
    project_id = project.expect("GET", "/control/project/")["project_id"]
    tongues = sorted(LOCALES)
    return [
        Look(f"/pay/{project_id}/{order['id']}/", tongues[number % len(tongues)])
        for number, order in enumerate(orders)
    ]


def _pictures(project: Project, time: int) -> Sequence[Look]:
    asked = [
        project.expect("POST", "/v1/bankqr/", {"amount": 1295 + number}) for number in range(CLIENTS // 2)
    ]
    project_id = project.expect("GET", "/control/project/")["project_id"]
    return [Look(f"/qr/{project_id}/{each['id']}{end}") for each in asked for end in (".png", "/")]


def _descriptions(project: Project, time: int) -> Sequence[Look]:
    return [Look("/openapi.json")] * CLIENTS


def _everything(project: Project, time: int) -> Sequence[Look]:
    """Of each kind something, in turn."""
    kinds = [kind(project, time) for name, kind in FIRST_USES.items() if name != EVERYTHING]
    return [kinds[number % len(kinds)][number] for number in range(CLIENTS)]


EVERYTHING: Final = "everything"
FIRST_USES: Final[Mapping[str, Prepare]] = {
    "documentation": _documentation,
    "dashboards": _dashboards,
    "payment pages": _payments,
    "QR codes": _pictures,
    "OpenAPI": _descriptions,
    EVERYTHING: _everything,
}
