"""Where a call runs, and whose limits it shares: those of its project, or common ones."""

import asyncio
from collections.abc import Iterator

import pytest
import requests
from werkzeug.test import Client, EnvironBuilder

from payment_sandbox.projects.registry import FIRST_API_KEY
from payment_sandbox.serving.placing import EVENT_LOOP_BYTES_MAX, Placement, Places, place
from payment_sandbox.serving.server import Server
from payment_sandbox.web.call import Call, ClientConnection
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


def route(server: Server, method: str, path: str, api_key: str | None) -> Call:
    """Route a call as the server does."""
    auth = None if api_key is None else (api_key, "")
    environ = EnvironBuilder(path, method=method, auth=auth).get_environ()
    return server.app.route(environ, ClientConnection())


def placement_of(server: Server, method: str, path: str, length: int = 0) -> Placement:
    """Return where a call to the first project runs."""
    return place(route(server, method, path, FIRST_API_KEY), length)


def group(server: Server, method: str, path: str, api_key: str | None) -> str:
    """Return the group of calls that a call shares its limits with."""
    return route(server, method, path, api_key).group


def test_a_page_is_placed_by_its_path_and_a_call_by_its_key(server: Server) -> None:
    """A page belongs to its project, whatever key the browser sends."""
    (shop,) = server.registry.all()
    other, api_key = server.registry.create({})
    assert group(server, "GET", f"/dashboard/{shop.project_id}/", api_key) == shop.project_id
    assert group(server, "POST", "/v1/orders/", api_key) == other.project_id


def test_keys_of_no_project_are_one_group(server: Server) -> None:
    """Unknown keys, missing keys and pages of unknown projects are one group."""
    orders = {group(server, "GET", "/v1/orders/x/", f"made-up-{number}") for number in range(60)}
    pages = {group(server, "GET", f"/dashboard/made-up-{number}/", None) for number in range(60)}
    waits = {group(server, "GET", "/control/events/", f"made-up-{number}") for number in range(60)}
    assert orders | pages | waits == {group(server, "GET", "/v1/orders/x/", None)}


def test_a_project_is_a_group_until_it_is_deleted(server: Server) -> None:
    """A deleted project is in the common group."""
    common = group(server, "GET", "/v1/orders/x/", None)
    project, api_key = server.registry.create({})
    assert group(server, "GET", "/v1/orders/x/", api_key) == project.project_id
    server.registry.delete(project)
    assert group(server, "GET", "/v1/orders/x/", api_key) == common


@pytest.mark.parametrize(
    ("method", "path", "length", "placement"),
    [
        ("GET", "/v1/orders/x/", 0, Placement.EVENT_LOOP),
        ("GET", "/control/orders/", 0, Placement.SLOW),
        ("POST", "/v1/orders/", EVENT_LOOP_BYTES_MAX + 1, Placement.SLOW),
        ("GET", "/control/wait/", 0, Placement.WAITING),
        ("GET", "/control/events/", 0, Placement.EVENT_LOOP),
    ],
)
def test_the_route_and_the_length_of_the_body_decide_where_a_call_runs(
    server: Server, method: str, path: str, length: int, placement: Placement
) -> None:
    """Short calls and streams run on the event loop, others on the pool for slow calls or for those that wait."""
    assert placement_of(server, method, path, length) is placement


@pytest.mark.parametrize(
    ("path", "changed", "control_waits"),
    [
        ("/control/faults/", {"faults": [LATE], "webhooks": []}, False),
        ("/control/project/", {"webhook_timing": "before_response"}, True),
    ],
)
def test_the_calls_of_a_project_that_may_wait_have_a_pool_of_their_own(
    server: Server, path: str, changed: object, control_waits: bool
) -> None:
    """A fault delays no call of the control API, so that it can be removed while many calls hang."""
    method = requests.put if path == "/control/faults/" else requests.patch
    assert method(f"{server.url}{path}", json=changed, auth=AUTH, timeout=60).status_code == 200
    for verb, call in (("GET", "/v1/orders/x/"), ("POST", "/v1/orders/")):
        assert placement_of(server, verb, call) is Placement.WAITING
    control = placement_of(server, "DELETE", "/control/faults/")
    assert control is (Placement.WAITING if control_waits else Placement.EVENT_LOOP)
    _, other_key = server.registry.create({})
    assert place(route(server, "GET", "/v1/orders/x/", other_key), 0) is Placement.EVENT_LOOP


def test_a_call_with_an_idempotency_key_may_wait_for_another_with_the_key(server: Server) -> None:
    """It waits on a thread of the pool for waiting calls, so that it neither blocks the loop nor slow calls."""
    environ = EnvironBuilder("/v1/orders/", method="POST", auth=AUTH, headers=[("Idempotency-Key", "k")])
    call = server.app.route(environ.get_environ(), ClientConnection())
    assert place(call, 0) is Placement.WAITING


def test_a_group_has_some_of_the_places_and_its_calls_keep_their_order() -> None:
    """A crowd waits for its own places only; a call that is given up takes no place."""

    async def take_places() -> list[str]:
        places, taken = Places(4, 1), list[str]()

        async def call(name: str) -> None:
            give_back = await places.take(name[0])
            taken.append(name)
            asyncio.get_running_loop().call_soon(give_back)

        before = await places.take("a")
        assert (places.has_free("a"), places.has_free("b")) == (False, True)
        calls = [asyncio.ensure_future(call(name)) for name in ("a1", "a2", "a3", "b1", "a4", "c1", "b2")]
        await asyncio.sleep(0)
        assert taken == ["b1", "c1"]
        calls[2].cancel()
        before()
        await asyncio.gather(*calls, return_exceptions=True)
        assert all(places.has_free(group) for group in "abc")
        return [name for name in taken if name[0] == "a"]

    with asyncio.Runner() as runner:
        assert runner.run(take_places()) == ["a1", "a2", "a4"]


def test_a_call_that_is_given_up_while_all_places_are_taken_keeps_none() -> None:
    """The place in its group is free again."""

    async def give_up() -> bool:
        places = Places(1, 2)
        give_back = await places.take("a")
        waiting = asyncio.ensure_future(places.take("b"))
        await asyncio.sleep(0)
        waiting.cancel()
        give_back()
        await asyncio.sleep(0)
        for _ in range(2):
            (await places.take("b"))()
        return waiting.cancelled()

    with asyncio.Runner() as runner:
        assert runner.run(give_up())
