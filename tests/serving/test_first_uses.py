"""Eight concurrent clients send the first requests to a fresh server."""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Final, NamedTuple

import pytest
import requests

from payment_sandbox.orders.order import LOCALES
from payment_sandbox.web.docs.library import PAGE_NAMES
from tests.attack.server_process import Project, run_server
from tests.support.driver import by

CLIENTS: Final = 8
OK: Final = 200
DASHBOARD_VIEWS: Final = ("", "requests/", "mistakes/", "simulate/", "settings/")


class PageRequest(NamedTuple):
    """The path and the language of one client's request."""

    path: str
    language: str = "en-GB"


Prepare = Callable[[Project, int], Sequence[PageRequest]]
"""Prepares a fresh server and returns the request of each client in a numbered run."""


def failures_of(name: str, run: int = 0) -> list[str]:
    """Return the failures of the first, concurrent requests to a fresh server."""
    with run_server("--quiet") as server, Project(server.url) as project:
        page_requests = FIRST_USES[name](project, run)
        barrier = Barrier(len(page_requests))

        def fetch(request: PageRequest) -> tuple[PageRequest, requests.Response]:
            with requests.Session() as own:
                own.trust_env = False
                barrier.wait()
                headers = {"Accept-Language": request.language, "Accept": "text/html, */*"}
                return request, own.get(f"{server.url}{request.path}", headers=headers, timeout=60)

        with ThreadPoolExecutor(len(page_requests)) as clients:
            responses = list(clients.map(fetch, page_requests))
        bodies: dict[PageRequest, bytes] = {}
        failures = [
            f"{request}: {answer.status_code}" for request, answer in responses if answer.status_code != OK
        ]
        failures += [
            f"{request}: differs"
            for request, answer in responses
            if bodies.setdefault(request, answer.content) != answer.content
        ]
        return failures


def _documentation(project: Project, run: int) -> Sequence[PageRequest]:
    return [
        PageRequest(f"/docs/{PAGE_NAMES[(run * CLIENTS + number) % len(PAGE_NAMES)]}/")
        for number in range(CLIENTS)
    ]


def _dashboards(project: Project, run: int) -> Sequence[PageRequest]:
    project.order(by("bank-redirect-nl"))
    project_id = project.expect("GET", "/control/project/")["project_id"]
    return [PageRequest(f"/dashboard/{project_id}/{view}") for view in DASHBOARD_VIEWS]


def _payments(project: Project, run: int) -> Sequence[PageRequest]:
    orders = [
        project.order(by("bank-transfer") if number % 2 else by("credit-card")) for number in range(CLIENTS)
    ]
    project_id = project.expect("GET", "/control/project/")["project_id"]
    locales = sorted(LOCALES)
    return [
        PageRequest(f"/pay/{project_id}/{order['id']}/", locales[number % len(locales)])
        for number, order in enumerate(orders)
    ]


def _qr_codes(project: Project, run: int) -> Sequence[PageRequest]:
    codes = [
        project.expect("POST", "/v1/bankqr/", {"amount": 1295 + number}) for number in range(CLIENTS // 2)
    ]
    project_id = project.expect("GET", "/control/project/")["project_id"]
    return [
        PageRequest(f"/qr/{project_id}/{code['id']}{suffix}") for code in codes for suffix in (".png", "/")
    ]


def _descriptions(project: Project, run: int) -> Sequence[PageRequest]:
    return [PageRequest("/openapi.json")] * CLIENTS


def _everything(project: Project, run: int) -> Sequence[PageRequest]:
    """Return a mix of all kinds."""
    kinds = [kind(project, run) for name, kind in FIRST_USES.items() if name != EVERYTHING]
    return [kinds[number % len(kinds)][number // len(kinds)] for number in range(CLIENTS)]


EVERYTHING: Final = "everything"
FIRST_USES: Final[Mapping[str, Prepare]] = {
    "documentation": _documentation,
    "dashboards": _dashboards,
    "payment pages": _payments,
    "QR codes": _qr_codes,
    "OpenAPI": _descriptions,
    EVERYTHING: _everything,
}


def test_everything_is_shown_to_eight_clients_at_once() -> None:
    """Each client needs a page whose modules are not loaded yet."""
    assert failures_of(EVERYTHING) == []


@pytest.mark.prove
@pytest.mark.parametrize("repetition", range(10))
@pytest.mark.parametrize("name", FIRST_USES)
def test_one_kind_of_page_is_shown_to_eight_clients_at_once(name: str, repetition: int) -> None:
    """All clients need the same page."""
    assert failures_of(name, repetition) == []
