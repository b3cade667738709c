"""A server with a state file comes back as it was, and refuses a file that it cannot read."""

import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Event
from typing import Any

import pytest
import requests

from payment_sandbox.operations.clock import advance_clock
from payment_sandbox.operations.create_order import create_order
from payment_sandbox.orders.deliveries import Delivery
from payment_sandbox.projects.clock import RealTime
from payment_sandbox.projects.store import (
    DELIVERIES_DROPPED_AT_ONCE,
    DELIVERIES_KEPT_MAX,
    ChangeSet,
    StateRefused,
)
from payment_sandbox.serving.http import PortTaken
from payment_sandbox.serving.server import Server
from payment_sandbox.storage.registry import FIRST_API_KEY, Registry
from payment_sandbox.storage.sqlite import StateFile
from tests.support.driver import Sandbox, by, card, details
from tests.support.shop import Shop
from tests.support.state_files import check_file, comparable

HOUR = timedelta(hours=1)
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def with_server(path: Path, do: Callable[[Server], Any], **options: Any) -> Any:
    """Serve from a state file, do something, stop, and hold the file against the server."""
    with Server(state=path, **options) as server:
        done = do(server)
        assert server.file is not None
        check_file(server.file, server.registry)
    return done


def again(sandbox: Sandbox, server: Server) -> Sandbox:
    """The same project on another server."""
    other = object.__new__(Sandbox)
    other.__dict__.update(sandbox.__dict__)
    other.server, other.url = server, server.url
    return other


def test_every_journey_is_in_the_file(tmp_path: Path) -> None:
    """What hundreds of tests leave behind in memory is in the file, to the last counter."""
    root = Path(__file__).parent.parent
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:xdist", "-p", "no:cacheprovider"]
    places = [
        root / name
        for name in ("journeys", "scenarios", "web/control/test_state.py", "web/control/test_faults.py")
    ]
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
    with Server(state=state) as server:
        leave(server)
    ended.set()
    came = Event()
    shop.tell(came)
    with Server(state=state):
        assert came.wait(10)
    assert len(set(shop.orders())) == 1


def test_a_running_clock_went_on_while_nobody_served(tmp_path: Path) -> None:
    """As the world's did; what came due is done when the next request looks."""
    state = tmp_path / "state.db"
    wall = [NOON]
    real = RealTime(lambda: wall[0], lambda: 0.0)
    file = StateFile(state)
    project, key = Registry(real, state_file=file).create({"clock": "running"})
    before = project.now()
    file.close()
    wall[0] += HOUR
    file = StateFile(state)
    found = Registry(real, state_file=file).find(key)
    assert found is not None
    assert found.now() - before == HOUR
    wall[0] -= 2 * HOUR
    file.close()
    file = StateFile(state)
    found = Registry(real, state_file=file).find(key)
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
    registry = Registry(RealTime(lambda: NOON, lambda: 0.0), state_file=file)
    project, _ = registry.create({"clock": "frozen", "webhook_url": "http://127.0.0.1:9/"})
    owed = [
        Delivery(f"{number:032}", "order", "http://127.0.0.1:9/", "completed", NOON)
        for number in range(DELIVERIES_KEPT_MAX + DELIVERIES_DROPPED_AT_ONCE + 1)
    ]
    project.store.commit(ChangeSet(deliveries=owed))
    assert project.store.deliveries_dropped == DELIVERIES_DROPPED_AT_ONCE
    project.keep()
    check_file(file, registry)
    file.close()


def a_file(path: Path) -> bytes:
    """A file with an order in it."""
    with_server(path, lambda server: Sandbox(server).place(card()))
    return path.read_bytes()


def foreign(path: Path) -> None:
    """Some text."""
    path.write_text("orders: all of them\n" * 50)


def anothers(path: Path) -> None:
    """A database of another program's."""
    with sqlite3.connect(path) as database:
        database.execute("CREATE TABLE record (id)")
    database.close()


def of_another_version(path: Path) -> None:
    """A later one."""
    a_file(path)
    with sqlite3.connect(path) as database:
        database.execute("PRAGMA user_version = 7")
    database.close()


def cut_off(path: Path) -> None:
    """A copy that did not come whole."""
    whole = a_file(path)
    path.write_bytes(whole[: len(whole) * 2 // 3])


def overwritten(path: Path) -> None:
    """A page of it."""
    whole = bytearray(a_file(path))
    whole[4096:8192] = b"\xff" * 4096
    path.write_bytes(whole)


def _changed(path: Path, statement: str) -> None:
    a_file(path)
    with sqlite3.connect(path) as database:
        assert database.execute(statement).rowcount
    database.close()


def of_no_json(path: Path) -> None:
    """A body that is cut."""
    _changed(path, "UPDATE record SET body = '{' WHERE kind = 'orders'")


def of_no_order(path: Path) -> None:
    """An order without a status."""
    _changed(path, "UPDATE record SET body = json_remove(body, '$.status', '$.id') WHERE kind = 'orders'")


def of_no_kind(path: Path) -> None:
    """Records that nobody knows."""
    _changed(path, "UPDATE record SET kind = 'pigeons'")


def of_no_identity(path: Path) -> None:
    """A project without a name."""
    _changed(path, "UPDATE project SET identity = '{}'")


def of_no_clock(path: Path) -> None:
    """A clock in no mode."""
    _changed(path, "UPDATE project SET running = json_set(running, '$.clock_mode', 'sideways')")


WRONG = [
    (foreign, "no state file"),
    (anothers, "no state file"),
    (of_another_version, "its format is 7, this server reads 1"),
    (cut_off, "is damaged"),
    (overwritten, "is damaged"),
    (of_no_json, "is damaged"),
    (of_no_order, "is damaged: state.orders[0]"),
    (of_no_kind, "is damaged"),
    (of_no_identity, "is damaged"),
    (of_no_clock, "is damaged: state.clock_mode"),
]


@pytest.mark.parametrize(("spoil", "says"), WRONG)
def test_a_file_that_cannot_be_read_is_refused_untouched(
    tmp_path: Path, spoil: Callable[[Path], None], says: str
) -> None:
    """With one clear sentence that names it; not a byte changes, and nothing is left beside it."""
    state = tmp_path / "state.db"
    spoil(state)
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    with pytest.raises(StateRefused) as refused:
        Server(state=state)
    assert str(refused.value).startswith(str(state))
    assert says in str(refused.value)
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_two_servers_do_not_share_a_file(tmp_path: Path) -> None:
    """The second is told so, and the first goes on."""
    state = tmp_path / "state.db"
    with Server(state=state) as server:
        with pytest.raises(StateRefused, match="in use by another server"):
            Server(state=state)
        Sandbox(server).place(card())
    with_server(state, lambda server: None)


def test_a_file_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    """In a folder that is not there."""
    with pytest.raises(StateRefused, match="cannot be used"):
        Server(state=tmp_path / "nowhere" / "state.db")


def test_an_empty_file_is_a_new_one(tmp_path: Path) -> None:
    """As ``mktemp`` makes it."""
    state = tmp_path / "state.db"
    state.touch()
    with_server(state, lambda server: Sandbox(server).place(by("wallet-qr")))


def test_a_server_that_does_not_start_lets_go_of_the_file(tmp_path: Path) -> None:
    """A taken port leaves it to the next."""
    state = tmp_path / "state.db"
    with Server() as other:
        with pytest.raises(PortTaken):
            Server(port=other.port, state=state)
        with_server(state, lambda server: None)


def full(file: StateFile) -> Callable[[], None]:
    """Let every write to the file fail, as on a full disk; returns what makes room again."""
    database = file._database
    (pages,) = database.execute("PRAGMA page_count").fetchone()
    database.execute(f"PRAGMA max_page_count = {pages}")
    with suppress(sqlite3.Error):
        database.execute("CREATE TABLE filler (body)")
    for _ in range(10_000):
        try:
            database.execute(
                "INSERT INTO record (project, kind, id, body) VALUES (-1, '', ?, ?)", (_, "x" * 900)
            )
        except sqlite3.Error:
            break

    def make_room() -> None:
        database.execute("PRAGMA max_page_count = 1000000")

    return make_room


WRITES: list[Callable[[Sandbox], requests.Response]] = [
    lambda sandbox: sandbox.create(card(), description="x" * 5000),
    lambda sandbox: sandbox.post("/control/reset/"),
    lambda sandbox: sandbox.patch("/control/project/", {"name": "x" * 5000}),
    lambda sandbox: sandbox.put(
        "/control/faults/", {"faults": [{"when": {"path": "/" + "x" * 5000}, "then": {"status": 503}}]}
    ),
    lambda sandbox: sandbox.put("/control/scenario/", {"name": "x", "description": "x" * 5000}),
]


@pytest.mark.parametrize("write", WRITES)
def test_what_the_disk_does_not_take_did_not_happen(tmp_path: Path, write: Callable[[Sandbox], Any]) -> None:
    """It is a 500, everything is as before, and once there is room all goes on."""
    state = tmp_path / "state.db"
    with Server(state=state) as server:
        sandbox = Sandbox(server)
        order = sandbox.place(card())
        assert server.file is not None
        before = sandbox.get("/control/project/").json()
        faults = sandbox.get("/control/faults/").json()
        make_room = full(server.file)
        answer = write(sandbox)
        make_room()
        if answer.status_code == 500:
            assert sandbox.get("/control/project/").json() == before
            assert sandbox.get("/control/faults/").json() == faults
        sandbox.place(card())
        sandbox.advance("PT1M")
    with Server(state=state) as server:
        there = again(sandbox, server)
        if answer.status_code == 500 and "reset" not in answer.url:
            assert there.read(order)["status"] == "new"
        there.place(card())


def test_an_advance_that_the_disk_stops_can_go_on(tmp_path: Path) -> None:
    """The clock is not busy for ever, and the event is still due."""
    file = StateFile(tmp_path / "state.db")
    registry = Registry(RealTime(lambda: NOON, lambda: 0.0), state_file=file)
    project, _ = registry.create({"clock": "frozen"})
    order = create_order(project, {"currency": "EUR", "amount": 5, "client": {}, "transactions": [card()]})
    make_room = full(file)
    file._database.execute("PRAGMA cache_size = 1")
    broken = file._database
    file._database = sqlite3.connect(":memory:", isolation_level=None)  # it knows no such table
    with pytest.raises(sqlite3.Error):
        advance_clock(project, {"by": "PT1H"})
    file._database.close()
    file._database = broken
    make_room()
    advance_clock(project, {"by": "PT1H"})
    assert project.find_order(order.id).status == "expired"
    check_file(file, registry)
    file.close()


@pytest.mark.parametrize("kind", ["fifo", "folder"])
def test_what_is_no_file_is_refused_untouched(tmp_path: Path, kind: str) -> None:
    """And a link is followed, not replaced."""
    place = tmp_path / kind
    os.mkfifo(place) if kind == "fifo" else place.mkdir()
    with pytest.raises(StateRefused, match="is no regular file"):
        Server(state=place)
    assert place.is_fifo() if kind == "fifo" else place.is_dir()
    target, link = tmp_path / "target.db", tmp_path / "link.db"
    target.touch()
    link.symlink_to(target)
    with_server(link, lambda server: None)
    assert link.is_symlink()
    assert target.stat().st_size


def test_a_deleted_project_stays_deleted(tmp_path: Path) -> None:
    """Though a file declares it, or it is the first."""
    state, declared = tmp_path / "state.db", tmp_path / "projects.yaml"
    declared.write_text("api_key: shop-key")

    def status(server: Server, key: str, method: str = "GET") -> int:
        return requests.request(
            method, f"{server.url}/control/project/", auth=(key, ""), timeout=5
        ).status_code

    with Server(state=state, project_files=[declared]) as server:
        for key in ("shop-key", FIRST_API_KEY):
            assert status(server, key, "DELETE") == 200
    with Server(state=state, project_files=[declared]) as server:
        assert [status(server, key) for key in ("shop-key", FIRST_API_KEY)] == [401, 401]
