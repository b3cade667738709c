"""All temporary state has an owner that it is deleted with: nothing refers to a deleted project."""

import gc
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from weakref import ref

import pytest
import requests

from payment_sandbox.delivery.receivers import destination_of, listener_of
from payment_sandbox.kernel.times import Period
from payment_sandbox.projects.jobs import Job
from payment_sandbox.serving.server import Server
from payment_sandbox.web.merchant import merchant_blueprint
from tests.support.driver import Sandbox, card
from tests.support.reachable import mentions
from tests.support.servers import make_server
from tests.support.shop import Shop, ShopInServer
from tests.support.uses import look, trade, watch


@pytest.fixture(params=["memory", "file"])
def own_server(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Server]:
    """A separate server, without projects of other tests, and with other IDs than the documentation's examples."""
    with make_server(seed=2, state=tmp_path / "state.db" if request.param == "file" else None) as server:
        yield server


def register_in_process(sandbox: Sandbox) -> None:
    """Register a receiver and a job of the shop in the server's process."""
    project = sandbox.project_in_process
    destination = destination_of(project)
    destination.receiver, destination.on_waiting_thread = ShopInServer(), True
    destination.hosts, destination.allowed = frozenset({"localhost"}), frozenset({"example.com"})
    now = datetime(2026, 3, 1, tzinfo=UTC)
    project.epoch.jobs.append(Job("nightly", Period.parse("P1D"), now, lambda: None))


def test_nothing_mentions_a_deleted_project(own_server: Server, shop: Shop) -> None:
    """After deletion, no object that is reachable from the server has the project's ID."""
    sandbox = Sandbox(own_server, webhook_url=shop.url)
    for use in (trade, look, register_in_process, watch):
        use(sandbox)
    project_id = sandbox.project["project_id"]
    assert any(mentions(project_id, own_server)), "the search finds an existing project"
    project = sandbox.project_in_process
    dead_references: list[Callable[[], object]] = [ref(project), ref(project.epoch), ref(project.events)]
    del project
    sandbox.delete("/control/project/")
    sandbox.get("/health/")  # a connection refers to its last response until the next request
    gc.collect()
    assert list(mentions(project_id, own_server)) == []
    assert [reference() for reference in dead_references] == [None, None, None]


def test_nothing_of_an_epoch_outlives_a_reset(own_server: Server, shop: Shop) -> None:
    """A reset and a restored snapshot each free the previous epoch, without the garbage collector."""
    sandbox = Sandbox(own_server, webhook_url=shop.url)
    gc.disable()  # `serve` lets it skip what lives long
    try:
        for use in (trade, look, register_in_process):
            use(sandbox)
        previous_epoch = ref(sandbox.project_in_process.epoch)
        sandbox.post("/control/reset/")
        before_the_restore = ref(sandbox.project_in_process.epoch)
        sandbox.put("/control/state/", sandbox.get("/control/state/").json())
        assert [reference() for reference in (previous_epoch, before_the_restore)] == [None, None]
    finally:
        gc.enable()


def test_a_disconnected_client_leaves_no_state(own_server: Server, shop: Shop) -> None:
    """A disconnected client leaves no watcher, text for watchers, waiting call or deferred webhook."""
    sandbox = Sandbox(own_server, webhook_url=shop.url)
    project = sandbox.project_in_process
    events, outbox = project.events, project.epoch.outbox
    streams = [
        requests.get(f"{sandbox.url}{path}", auth=(sandbox.key, ""), stream=True)
        for path in ("/control/events/", f"/dashboard/{project.project_id}/events/")
    ]
    for stream in streams:
        stream.raw.read(1)
    sandbox.pay(sandbox.place(card()))
    sandbox.settle()
    assert events.watchers == len(streams)
    for stream in streams:
        stream.close()
    for _ in range(1000):
        if not events.watchers:
            break
        events.publish("noise")  # makes the server notice the closed connections
        events.wait_after(events.number, 0.02)
    assert (events.watchers, events._listeners, events.waiting_count) == (0, [], 0)
    assert outbox._pending == {}
    assert listener_of(project)._offered == {}


def test_a_request_that_fails_late_still_sends_its_webhook(
    own_server: Server, shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A request that fails after creating its order still sends the webhook, and the project becomes idle."""

    def fail(*parts: object) -> object:
        raise ValueError("on purpose")

    sandbox = Sandbox(own_server, webhook_url=shop.url)
    monkeypatch.setattr(merchant_blueprint, "ReceivedRequest", fail)
    created = sandbox.http.post(
        f"{sandbox.url}/v1/orders/", json={"currency": "EUR", "amount": 1, **BANK}, auth=(sandbox.key, "")
    )
    assert created.status_code == 500
    outbox = sandbox.project_in_process.epoch.outbox
    assert sandbox.project_in_process.settle()
    assert (len(shop.received), outbox.is_idle) == (1, True)


BANK = {"transactions": [{"payment_method": "bank-transfer"}]}
