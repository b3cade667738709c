"""Where a request runs is decided once, so it leaves no traces of a second time."""

from collections.abc import Iterator
from typing import Any

import pytest
import requests
from werkzeug.test import EnvironBuilder

from payment_sandbox.client.client import SandboxClient
from payment_sandbox.projects.registry import FIRST_API_KEY
from payment_sandbox.serving.server import Server

ORDER = {"currency": "EUR", "amount": 1295, "transactions": [{"payment_method": "credit-card"}]}
AUTH = (FIRST_API_KEY, "")
LATE = {"when": {"method": "POST", "nth": 1000}, "then": {"latency": 1.0}}


@pytest.fixture
def server() -> Iterator[Server]:
    """A server with a frozen clock and a seed."""
    with Server(clock="frozen@2027-01-01T00:00:00Z", seed=1) as started:
        yield started


def test_calls_with_a_fault_that_matches_none_of_them_hold_nothing_back(server: Server) -> None:
    """Every webhook is sent, and the project comes to rest."""
    client = SandboxClient(server.url, FIRST_API_KEY)
    client.faults([LATE])
    for _ in range(20):
        assert requests.post(f"{server.url}/v1/orders/", json=ORDER, auth=AUTH, timeout=5).status_code == 201
    assert client.wait(idle=True)
    assert not server.registry.all()[0].epoch.outbox._holds
    client.clock.advance("PT1M")
    client.close()


@pytest.mark.parametrize("faults", [[], [LATE]])
def test_records_have_the_same_ids_as_without_a_connection(server: Server, faults: list[Any]) -> None:
    """Each request is counted once, on the event loop or on a thread."""
    with Server(clock="frozen@2027-01-01T00:00:00Z", seed=1) as other:
        app = other.app.test_client()
        for url, put, post in (
            (server.url, requests.put, requests.post),
            ("", app.put, app.post),
        ):
            put(f"{url}/control/faults/", json={"faults": faults, "webhooks": []}, auth=AUTH)
            for amount in (1, -1, 2):
                post(f"{url}/v1/orders/", json={**ORDER, "amount": amount}, auth=AUTH)
        first, second = (
            [entry.id for entry in one.registry.all()[0].epoch.journal.entries()] for one in (server, other)
        )
    assert len(first) == 3
    assert first == second


def test_a_page_is_placed_by_its_path_and_a_call_by_its_key(server: Server) -> None:
    """Whatever key a browser sends along with a page of another project."""
    (shop,) = server.registry.all()
    other, api_key = server.registry.create({})

    def share(method: str, path: str) -> str:
        environ = EnvironBuilder(path, method=method, auth=(api_key, "")).get_environ()
        return server.app.place(environ, 0).share

    assert share("GET", f"/dashboard/{shop.project_id}/") == shop.project_id
    assert share("POST", "/v1/orders/") == other.project_id
