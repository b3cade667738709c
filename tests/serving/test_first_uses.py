"""Eight concurrent clients send the first requests to a fresh server."""

from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from threading import Barrier
from typing import Final

import pytest
import requests

from payment_sandbox.orders.order import LOCALES
from payment_sandbox.ui.docs.library import PAGE_NAMES
from tests.attack.server_process import Project, run_server
from tests.support.driver import by

CLIENTS: Final = 8
DASHBOARD_VIEWS: Final = ("", "requests/", "mistakes/", "simulate/", "settings/")
EVERYTHING: Final = "everything"
KINDS: Final = (EVERYTHING, "documentation", "dashboards", "payment pages", "QR codes", "OpenAPI")


def paths_by_kind(project: Project) -> dict[str, list[str]]:
    """Create orders and QR codes; return the paths of eight clients, or fewer, for each kind of page."""
    orders = [
        project.order(by("bank-transfer" if number % 2 else "credit-card")) for number in range(CLIENTS)
    ]
    codes = [
        project.expect("POST", "/v1/bankqr/", {"amount": 1295 + number}) for number in range(CLIENTS // 2)
    ]
    project_id = orders[0]["project_id"]
    locales = sorted(LOCALES)
    paths = {
        "documentation": [f"/docs/{name}/" for name in islice(PAGE_NAMES, CLIENTS)],
        "dashboards": [f"/dashboard/{project_id}/{view}" for view in DASHBOARD_VIEWS],
        "payment pages": [
            f"/pay/{project_id}/{order['id']}/?language={locales[number % len(locales)]}"
            for number, order in enumerate(orders)
        ],
        "QR codes": [f"/qr/{project_id}/{code['id']}{suffix}" for code in codes for suffix in (".png", "/")],
        "OpenAPI": ["/openapi.json"] * CLIENTS,
    }
    mixed = [kind[number] for number in range(2) for kind in paths.values()]
    return {EVERYTHING: mixed[:CLIENTS], **paths}


@pytest.mark.parametrize(
    "kind", [EVERYTHING, *(pytest.param(kind, marks=pytest.mark.prove) for kind in KINDS[1:])]
)
def test_the_first_pages_are_shown_to_eight_clients_at_once(kind: str) -> None:
    """Clients that need the same module first, or different ones, all get whole and equal pages."""
    with run_server("--quiet") as server, Project(server.url) as project:
        paths = paths_by_kind(project)[kind]
        barrier = Barrier(len(paths))

        def fetch(path: str) -> tuple[int, str, bytes]:
            with requests.Session() as own:
                own.trust_env = False
                barrier.wait()
                answer = own.get(f"{server.url}{path}", headers={"Accept": "text/html, */*"})
                return answer.status_code, path, answer.content

        with ThreadPoolExecutor(len(paths)) as clients:
            answers = list(clients.map(fetch, paths))
    assert {status for status, *_ in answers} == {200}
    assert len({answer[1:] for answer in answers}) == len(set(paths)), "equal requests have different answers"
