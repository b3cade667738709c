"""All temporary state has an owner that it is deleted with: nothing refers to a deleted project."""

import gc
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from weakref import ref

import pytest
import requests

from payment_sandbox.delivery.receivers import destination_of, listener_of
from payment_sandbox.kernel.times import Period
from payment_sandbox.operations.bank_qr import scan
from payment_sandbox.projects.jobs import Job
from tests.support.dashboard import Dashboard
from tests.support.driver import Sandbox, card, details
from tests.support.servers import make_server
from tests.support.shop import Shop, ShopInServer

FORWARD = "http://127.0.0.1:9/listener"


def trade(sandbox: Sandbox) -> None:
    """Create orders, a refund, a stored card, a code, refused calls, faults, a scenario and settings."""
    order = sandbox.pay(sandbox.place(details(recurring_type="first"), merchant_order_id="shop-1"))
    sandbox.post(f"/v1/orders/{order['id']}/refunds/", {"amount": 1})
    sandbox.post(f"/v1/orders/{order['id']}/refunds/", {"amount": 10**6})
    sandbox.settle()
    later = sandbox.place(card())
    fault = {"when": {"order_id": later["id"]}, "then": {"delay": "PT1H"}}
    sandbox.put("/control/faults/", {"webhooks": [fault], "faults": [{"then": {"latency": 0.01}}]})
    sandbox.scenario({"then": {"customer": "pays", "after": "PT20M"}})
    code = sandbox.post("/v1/bankqr/", {"amount": 5, "one_off": False}).json()
    scan(sandbox.project_in_process, code["id"], None, None, "form-1")
    sandbox.put("/control/state/", sandbox.get("/control/state/").json())
    sandbox.delete("/control/faults/")


def look(sandbox: Sandbox) -> None:
    """Open pages, and create notices, refused forms, live pages and an advance."""
    browser = Dashboard(sandbox)
    browser.press(browser.open("orders/"), "P1D")
    browser.press(browser.open("simulate/"), "switch=lost-answer")
    sandbox.delete("/control/faults/")
    order = sandbox.place(card())
    browser.press(browser.open(f"orders/{order['id']}/"), "customer pay")
    for view in ("requests", "mistakes", "simulate", "settings"):
        browser.open(f"{view}/")
    events = sandbox.project_in_process.events
    events.watchers += 1000
    browser.http.get(f"{browser.base}orders/")
    events.watchers -= 1000
    requests.get(f"http://{order['order_url']}")


def register_in_process(sandbox: Sandbox) -> None:
    """Register a receiver and a job of the shop in the server's process."""
    project = sandbox.project_in_process
    destination = destination_of(project)
    destination.receiver, destination.on_waiting_thread = ShopInServer(), True
    destination.hosts, destination.allowed = frozenset({"localhost"}), frozenset({"example.com"})
    now = datetime(2026, 3, 1, tzinfo=UTC)
    project.epoch.jobs.append(Job("nightly", Period.parse("P1D"), now, lambda: None))


def watch(sandbox: Sandbox) -> None:
    """Create event streams that end, a listener that disconnects, and a wait that times out."""
    for path in ("/control/events/?after=1", f"/dashboard/{sandbox.project['project_id']}/events/?after=1"):
        with requests.get(f"{sandbox.url}{path}", auth=(sandbox.key, ""), stream=True) as stream:
            next(stream.iter_content(1))
    sandbox.get("/control/wait/?idle=1&timeout=0")
    body = {"timeout": 0, "listener": "one", "forward_to": FORWARD}
    sandbox.post("/control/listener/next/", body)
    sandbox.post("/control/listener/next/", {**body, "leaves": True})
    sandbox.project_in_process.forward_webhooks(FORWARD)
    sandbox.pay(sandbox.place(card()))


@pytest.mark.parametrize("kind", ["memory", "file"])
def test_nothing_outlives_a_reset_or_a_project(kind: str, tmp_path: Path, shop: Shop) -> None:
    """A reset and a restore free the epoch without the garbage collector, and a deletion frees the project."""
    with make_server(state=tmp_path / "state.db" if kind == "file" else None) as server:
        sandbox = Sandbox(server, webhook_url=shop.url)
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
        for use in (trade, look, register_in_process, watch):
            use(sandbox)
        project = sandbox.project_in_process
        owners: tuple[Any, ...] = (project, project.epoch, project.events)
        references = [ref(owner) for owner in owners]
        del project, owners
        sandbox.delete("/control/project/")
        sandbox.get("/health/")  # a connection refers to its last response until the next request
        gc.collect()
        assert [reference() for reference in references] == [None, None, None]


def test_a_disconnected_client_leaves_no_state(watched: Sandbox) -> None:
    """A disconnected client leaves no watcher, text for watchers, waiting call or deferred webhook."""
    project = watched.project_in_process
    events = project.events
    streams = [
        requests.get(f"{watched.url}{path}", auth=(watched.key, ""), stream=True)
        for path in ("/control/events/", f"/dashboard/{project.project_id}/events/")
    ]
    for stream in streams:
        stream.raw.read(1)
    watched.pay(watched.place(card()))
    watched.settle()
    assert events.watchers == len(streams)
    for stream in streams:
        stream.close()
    for _ in range(1000):
        if not events.watchers:
            break
        events.publish("noise")  # makes the server notice the closed connections
        events.wait_after(events.number, 0.02)
    assert (events.watchers, events._listeners, events.waiting_count) == (0, [], 0)
    assert project.epoch.outbox._pending == {}
    assert listener_of(project)._offered == {}
