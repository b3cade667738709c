"""Each request has a share of the server: that of its project, or a common one."""

import asyncio
from collections.abc import Iterator

import pytest
import requests
from werkzeug.test import Client, EnvironBuilder

from payment_sandbox.projects.registry import FIRST_API_KEY
from payment_sandbox.serving.server import Server
from payment_sandbox.serving.turns import Turns
from payment_sandbox.web.call import ClientConnection
from tests.support.servers import make_server

AUTH = (FIRST_API_KEY, "")
LATE = {"when": {"method": "POST", "nth": 1000}, "then": {"latency": 1.0}}


@pytest.fixture
def server() -> Iterator[Server]:
    """A server with a frozen clock and a seed."""
    with make_server(clock="frozen@2027-01-01T00:00:00Z", seed=1) as started:
        yield started


def test_records_have_the_same_ids_as_without_a_connection(server: Server) -> None:
    """With a fault, too, each request is counted once, on the event loop or on a thread."""
    with make_server(clock="frozen@2027-01-01T00:00:00Z", seed=1) as other:
        app = Client(other.app)
        for url, put, post in ((server.url, requests.put, requests.post), ("", app.put, app.post)):
            put(f"{url}/control/faults/", json={"faults": [LATE], "webhooks": []}, auth=AUTH)
            for amount in (1, -1, 2):
                post(f"{url}/v1/orders/", json={"currency": "EUR", "amount": amount}, auth=AUTH)
        first, second = (
            [entry.id for entry in one.registry.all()[0].epoch.journal.entries()] for one in (server, other)
        )
    assert len(first) == 3
    assert first == second


def share(server: Server, method: str, path: str, api_key: str | None) -> str:
    """Return the project or group whose share of the server a request uses."""
    auth = None if api_key is None else (api_key, "")
    return server.app.place(
        EnvironBuilder(path, method=method, auth=auth).get_environ(), 0, ClientConnection()
    ).share


def test_a_page_is_placed_by_its_path_and_a_call_by_its_key(server: Server) -> None:
    """A page uses the share of its project, whatever key the browser sends."""
    (shop,) = server.registry.all()
    other, api_key = server.registry.create({})
    assert share(server, "GET", f"/dashboard/{shop.project_id}/", api_key) == shop.project_id
    assert share(server, "POST", "/v1/orders/", api_key) == other.project_id


def test_keys_of_no_project_have_one_share_together(server: Server) -> None:
    """Unknown keys, missing keys and pages of unknown projects use one common share."""
    orders = {share(server, "GET", "/v1/orders/x/", f"made-up-{number}") for number in range(60)}
    pages = {share(server, "GET", f"/dashboard/made-up-{number}/", None) for number in range(60)}
    waits = {share(server, "GET", "/control/events/", f"made-up-{number}") for number in range(60)}
    assert orders | pages | waits == {share(server, "GET", "/v1/orders/x/", None)}


def test_a_project_has_a_share_of_its_own_while_it_is_loaded(server: Server) -> None:
    """An unloaded or deleted project uses the common share."""
    common = share(server, "GET", "/v1/orders/x/", None)
    project, api_key = server.registry.create({})
    assert share(server, "GET", "/v1/orders/x/", api_key) == project.project_id
    server.registry.drop(project)
    assert share(server, "GET", "/v1/orders/x/", api_key) == common
    server.registry.add(project)
    assert share(server, "GET", "/v1/orders/x/", api_key) == project.project_id
    server.registry.delete(project)
    assert share(server, "GET", "/v1/orders/x/", api_key) == common


def test_turns_go_round_robin_over_projects() -> None:
    """A project with one call waits for one call of each other project, however many those have; calls keep order."""

    async def take_turns() -> list[str]:
        turns, taken = Turns(asyncio.get_running_loop(), 1), list[str]()

        async def call(name: str) -> None:
            await turns.take(name[0])
            taken.append(name)
            turns.pass_on_soon()

        await turns.take("the call before")
        calls = [asyncio.ensure_future(call(name)) for name in ("a1", "a2", "a3", "b1", "a4", "c1", "b2")]
        await asyncio.sleep(0)  # all wait
        calls[2].cancel()
        turns.pass_on()
        await asyncio.gather(*calls, return_exceptions=True)
        return taken

    with asyncio.Runner() as runner:
        assert runner.run(take_turns()) == ["a1", "b1", "c1", "a2", "b2", "a4"]
