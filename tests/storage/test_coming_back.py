"""A server with a state file comes back as it was."""

import os
import sqlite3
import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from threading import Event
from typing import Any

import pytest
import requests

from payment_sandbox.orders.webhooks import Delivery
from payment_sandbox.projects.registry import FIRST_API_KEY
from payment_sandbox.projects.store import ChangeSet
from payment_sandbox.serving.server import Server
from payment_sandbox.storage.memory import DELIVERIES_DROPPED_AT_ONCE, DELIVERIES_MAX
from payment_sandbox.storage.sqlite import StateFile, read_copy
from tests.support.driver import Sandbox, card, details
from tests.support.projects import stored_registry
from tests.support.servers import make_server
from tests.support.shop import Shop
from tests.support.state_files import NOON, again, check_file, comparable, with_server

HOUR = timedelta(hours=1)


@pytest.mark.prove
def test_every_journey_is_in_the_file(tmp_path: Path) -> None:
    """What hundreds of tests leave behind in memory is in the file, to the last counter."""
    root = Path(__file__).parent.parent
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:xdist", "-p", "no:cacheprovider"]
    places = [root / name for name in ("journeys", "web/control/test_state.py", "web/control/test_faults.py")]
    ran = subprocess.run(
        [*command, *places],
        env={**os.environ, "SANDBOX_TEST_STATE": str(tmp_path / "state.db")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout[-3000:]


def test_a_server_comes_back_with_everything(tmp_path: Path, shop: Shop) -> None:
    """Orders, cards, codes, agenda, webhooks, faults, scenario, clock and random state."""
    state = tmp_path / "state.db"

    def live(server: Server) -> tuple[Sandbox, dict[str, Any], str]:
        sandbox = Sandbox(server, webhook_url=shop.url, seed=5)
        order = sandbox.place(details(recurring_type="first"), amount=700)
        sandbox.pay(order)
        sandbox.authorized()
        sandbox.post("/v1/bankqr/", {"amount": 5})
        sandbox.post(f"/v1/orders/{order['id']}/refunds/", {"amount": 100})
        sandbox.put("/control/faults/", {"faults": [{"when": {"nth": 9}, "then": {"status": 503}}]})
        sandbox.scenario({"times": 2, "then": {"customer": "pays", "after": "PT20M"}})
        sandbox.place(card())
        sandbox.advance("PT1M")
        return sandbox, sandbox.get("/control/state/").json(), order["id"]

    sandbox, before, order_id = with_server(state, live)

    def come_back(server: Server) -> None:
        there = again(sandbox, server)
        after = there.get("/control/state/").json()
        assert comparable(after) == comparable(before)
        assert there.read(order_id)["flags"] == ["is-test", "has-refunds"]
        labels = [event["label"] for event in there.advance("PT20M")]
        assert any(label.startswith("customer pay") for label in labels)

    with_server(state, come_back)


def test_keys_are_known_and_not_told(tmp_path: Path) -> None:
    """A project's key opens it after a restart, and stands nowhere in the file."""
    state = tmp_path / "state.db"
    sandbox = with_server(state, Sandbox)
    assert (
        with_server(state, lambda server: again(sandbox, server).get("/control/project/").status_code) == 200
    )
    assert sandbox.key.encode() not in b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert state.stat().st_mode & 0o077 == 0


def test_a_webhook_that_waits_for_another_still_waits(tmp_path: Path, shop: Shop) -> None:
    """And goes with the next one, in the swapped order."""
    state = tmp_path / "state.db"

    def swap(server: Server) -> tuple[Sandbox, str]:
        sandbox = Sandbox(server, webhook_url=shop.url)
        sandbox.scenario(webhooks=[{"then": {"swap": True}}])
        order = sandbox.place(card())
        sandbox.acted(order, "customer visit")
        sandbox.settle()
        assert shop.received == []
        return sandbox, order["id"]

    sandbox, first = with_server(state, swap)

    def go_on(server: Server) -> str:
        there = again(sandbox, server)
        order = there.place(card())
        there.acted(order, "customer visit")
        there.settle()
        second: str = order["id"]
        return second

    second = with_server(state, go_on)
    assert shop.orders() == [second, first]


def test_a_webhook_on_its_way_goes_out_again(tmp_path: Path, shop: Shop) -> None:
    """The receiver did not answer before the end; nobody can know whether it got it."""
    state = tmp_path / "state.db"
    arrived, ended = Event(), Event()

    def hang(received: object) -> int:
        arrived.set()
        ended.wait(10)
        return 500

    def leave(server: Server) -> None:
        sandbox = Sandbox(server, webhook_url=shop.url)
        sandbox.acted(sandbox.place(card()), "customer visit")
        assert arrived.wait(10)

    shop.answer = hang
    with make_server(state=state) as server:
        leave(server)
    ended.set()
    came = Event()
    shop.tell(came)
    with make_server(state=state):
        assert came.wait(10)
    assert len(set(shop.orders())) == 1


def test_a_running_clock_went_on_while_nobody_served(tmp_path: Path) -> None:
    """As the world's did; what came due is done when the next request looks."""
    state = tmp_path / "state.db"
    at = NOON
    file = StateFile(state)
    project, key = stored_registry(file, at).create({"clock": "running"})
    before = project.now()
    file.close()
    at += HOUR
    file = StateFile(state)
    found = stored_registry(file, at).find(key)
    assert found is not None
    assert found.now() - before == HOUR
    at -= 2 * HOUR
    file.close()
    file = StateFile(state)
    found = stored_registry(file, at).find(key)
    assert found is not None
    assert found.now() == before  # a wall clock that was put back takes nothing back
    file.close()


def test_deleted_and_reset_projects_leave_nothing(tmp_path: Path) -> None:
    """Neither their orders nor themselves."""
    state = tmp_path / "state.db"

    def live(server: Server) -> tuple[Sandbox, Sandbox]:
        gone, fresh = Sandbox(server), Sandbox(server)
        for sandbox in (gone, fresh):
            sandbox.place(card())
        gone.delete("/control/project/")
        fresh.post("/control/reset/")
        return gone, fresh

    gone, fresh = with_server(state, live)
    with sqlite3.connect(state) as database:
        assert database.execute("SELECT count(*) FROM record").fetchone() == (0,)
    database.close()

    def look(server: Server) -> tuple[int, int]:
        deleted = requests.get(f"{server.url}/control/project/", auth=(gone.key, ""), timeout=5)
        return deleted.status_code, len(again(fresh, server).agenda())

    assert with_server(state, look) == (401, 0)


def test_new_projects_after_a_restart_are_new(tmp_path: Path) -> None:
    """A seeded server does not make the same project twice."""
    state = tmp_path / "state.db"
    first = with_server(state, lambda server: Sandbox(server).project["project_id"], seed=3)
    second = with_server(state, lambda server: Sandbox(server).project["project_id"], seed=3)
    assert first != second


def test_the_first_project_keeps_its_scenario(tmp_path: Path) -> None:
    """The command line's is for a project that begins."""
    state = tmp_path / "state.db"

    def named(server: Server) -> Any:
        answer = requests.get(f"{server.url}/control/scenario/", auth=(FIRST_API_KEY, ""), timeout=5)
        return answer.json()["name"]

    assert with_server(state, named, scenario="webhook-lost") == "webhook-lost"
    assert with_server(state, named, scenario="webhook-twice") == "webhook-lost"


def test_old_webhooks_leave_the_file_too(tmp_path: Path) -> None:
    """When memory makes room."""
    file = StateFile(tmp_path / "state.db")
    registry = stored_registry(file, NOON)
    project, _ = registry.create({"clock": "frozen", "webhook_url": "http://127.0.0.1:9/"})
    owed = tuple(
        Delivery(f"{number:032}", "order", "http://127.0.0.1:9/", "completed", NOON)
        for number in range(DELIVERIES_MAX + DELIVERIES_DROPPED_AT_ONCE + 1)
    )
    project.epoch.store.commit(ChangeSet(deliveries=owed))
    project.epoch.store.commit(ChangeSet(deliveries=(owed[-1]._replace(id="one more"),)))
    assert project.epoch.store.deliveries_dropped == DELIVERIES_DROPPED_AT_ONCE
    project.change_settings({"name": "shop"})
    check_file(file, registry)
    file.close()


def test_a_deleted_project_stays_deleted(tmp_path: Path) -> None:
    """Though a file declares it, or it is the first."""
    state, declared = tmp_path / "state.db", tmp_path / "projects.yaml"
    declared.write_text("api_key: shop-key")

    def status(server: Server, key: str, method: str = "GET") -> int:
        return requests.request(
            method, f"{server.url}/control/project/", auth=(key, ""), timeout=5
        ).status_code

    with make_server(state=state, project_files=[declared]) as server:
        for key in ("shop-key", FIRST_API_KEY):
            assert status(server, key, "DELETE") == 200
    with make_server(state=state, project_files=[declared]) as server:
        assert [status(server, key) for key in ("shop-key", FIRST_API_KEY)] == [401, 401]


def test_keys_that_were_drawn_leave_nothing_when_deleted(tmp_path: Path) -> None:
    """Nobody can choose them again, so nothing has to remember them."""
    state = tmp_path / "state.db"
    with make_server(state=state) as server:
        for _ in range(3):
            Sandbox(server).delete("/control/project/")
        assert server.state is not None
        assert not read_copy(state)[0].deleted
