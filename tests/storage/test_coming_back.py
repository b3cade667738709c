"""A server that is restarted with a state file restores everything."""

import sqlite3
import sys
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from threading import Event

import pytest

from payment_sandbox.orders.webhooks import Delivery
from payment_sandbox.projects.store import ChangeSet
from payment_sandbox.serving.server import Server
from payment_sandbox.storage.memory import DELIVERIES_DROPPED_AT_ONCE, DELIVERIES_MAX
from payment_sandbox.storage.sqlite import StateFile, read_copy
from tests.support.commands import run_program
from tests.support.driver import Sandbox, card
from tests.support.projects import stored_registry
from tests.support.servers import make_server
from tests.support.shop import Shop
from tests.support.state_files import NOON, check_state, reconnect, with_server

HOUR = timedelta(hours=1)


@pytest.mark.prove
@pytest.mark.timeout(600)
@pytest.mark.parametrize("suite", ["tests/journeys", "tests/web/control"])
@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_every_change_is_stored(
    request: pytest.FixtureRequest, tmp_path: Path, kind: str, suite: str
) -> None:
    """After the tests of the journeys and the control API, the state equals the memory."""
    is_file = kind == "sqlite"
    state = str(tmp_path / "state.db") if is_file else request.getfixturevalue("postgres").new_database()
    tests = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", suite]
    result = run_program(tests, Path(__file__).parents[2], 600, SANDBOX_TEST_STATE=state)
    assert result.returncode == 0, result.stdout[-4000:]


def test_keys_are_valid_after_a_restart_and_are_not_stored(tmp_path: Path) -> None:
    """A project's key is valid after a restart, and the files do not contain it."""
    state = tmp_path / "state.db"
    sandbox = with_server(state, Sandbox)
    assert (
        with_server(state, lambda server: reconnect(sandbox, server).get("/control/project/").status_code)
        == 200
    )
    assert sandbox.key.encode() not in b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert state.stat().st_mode & 0o077 == 0


def test_a_swapped_webhook_is_held_across_a_restart(tmp_path: Path, shop: Shop) -> None:
    """A webhook that is held for a swap is sent after a restart, behind the next webhook."""
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

    def place_second(server: Server) -> str:
        restarted = reconnect(sandbox, server)
        order = restarted.place(card())
        restarted.acted(order, "customer visit")
        restarted.settle()
        second: str = order["id"]
        return second

    second = with_server(state, place_second)
    assert shop.orders() == [second, first]


def test_a_webhook_in_flight_is_sent_again(tmp_path: Path, shop: Shop) -> None:
    """A webhook that was unanswered when the server stopped is sent again: it may not have arrived."""
    state = tmp_path / "state.db"
    arrived, stopped = shop.hold(status=500)

    def place_first(server: Server) -> None:
        sandbox = Sandbox(server, webhook_url=shop.url)
        sandbox.acted(sandbox.place(card()), "customer visit")
        assert arrived.wait(60)

    with make_server(state=state) as server:
        place_first(server)
    stopped.set()
    resent = Event()
    shop.tell(resent)
    with make_server(state=state):
        assert resent.wait(60)
    assert len(set(shop.orders())) == 1


def test_a_running_clock_includes_the_time_without_a_server(tmp_path: Path) -> None:
    """A running clock includes the time during which the server was stopped; it never goes backward."""
    state = tmp_path / "state.db"
    at = NOON
    file = StateFile(state)
    project, key = stored_registry(file, at).create({"clock": "running"})
    before = project.now()
    file.close()
    at += HOUR
    file = StateFile(state)
    restored = stored_registry(file, at).find(key)
    assert restored is not None
    assert restored.now() - before == HOUR
    at -= 2 * HOUR
    file.close()
    file = StateFile(state)
    restored = stored_registry(file, at).find(key)
    assert restored is not None
    assert restored.now() == before  # a wall clock that was set back does not set this one back
    file.close()


def test_deleted_and_reset_projects_leave_nothing(tmp_path: Path) -> None:
    """Their records and generated keys are not stored; later projects have other ids and keys, with a seed, too."""
    state = tmp_path / "state.db"

    def use_server(server: Server) -> tuple[Sandbox, Sandbox]:
        deleted, emptied = Sandbox(server), Sandbox(server)
        for sandbox in (deleted, emptied):
            sandbox.place(card())
        deleted.delete("/control/project/")
        emptied.post("/control/reset/")
        return deleted, emptied

    deleted, emptied = before = with_server(state, use_server, seed=3)
    with closing(sqlite3.connect(state)) as database:
        assert database.execute("SELECT count(*) FROM record").fetchone() == (0,)
    assert not read_copy(state).server.deleted

    def check_both(server: Server) -> None:
        assert reconnect(deleted, server).get("/control/project/").status_code == 401
        assert reconnect(emptied, server).agenda() == []
        new = Sandbox(server)
        assert new.key not in {each.key for each in before}
        assert new.project["project_id"] not in {each.project["project_id"] for each in before}

    with_server(state, check_both, seed=3)


def test_old_webhooks_leave_the_file_too(tmp_path: Path) -> None:
    """Webhooks that are dropped from memory are dropped from the file."""
    file = StateFile(tmp_path / "state.db")
    registry = stored_registry(file, NOON)
    project, _ = registry.create({"clock": "frozen", "webhook_url": "http://127.0.0.1:9/"})
    deliveries = tuple(
        Delivery(f"{number:032}", f"order {number}", "http://127.0.0.1:9/", "completed", NOON)
        for number in range(DELIVERIES_MAX + DELIVERIES_DROPPED_AT_ONCE + 1)
    )
    project.epoch.store.commit(ChangeSet(deliveries=deliveries))
    project.epoch.store.commit(ChangeSet(deliveries=(deliveries[-1]._replace(id="one more"),)))
    assert project.epoch.store.deliveries_dropped == DELIVERIES_DROPPED_AT_ONCE
    project.change_settings({"name": "shop"})
    check_state(file, registry)
    file.close()
