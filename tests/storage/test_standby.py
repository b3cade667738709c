"""One server of a database is the writer, another is a standby that takes over; there is one history."""

import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from typing import Any

import pytest
import requests

from payment_sandbox.projects.store import NotStored
from payment_sandbox.serving.server import Server
from payment_sandbox.storage import postgresql
from payment_sandbox.storage.codec import StateRefused
from payment_sandbox.storage.postgresql import Session
from payment_sandbox.storage.sql import PUT_VALUE
from payment_sandbox.web.call import EXTENSION
from tests.storage.wires import Wire
from tests.support.driver import Sandbox, card
from tests.support.postgres import Postgres, open_session
from tests.support.servers import make_server
from tests.support.state_files import check_state, reconnect

END_SESSIONS = "SELECT pg_terminate_backend(pid, 5000) FROM pg_locks WHERE locktype = 'advisory'"
WAIT_SECONDS = 20


@pytest.fixture
def database(postgres: Postgres) -> str:
    """The address of an empty database."""
    return postgres.new_database()


@pytest.fixture
def run(postgres: Postgres, database: str) -> Callable[[str], list[Any]]:
    """A function that runs a statement in the database."""
    return lambda statement: postgres.execute(statement, database.rpartition("/")[2])


@pytest.fixture
def writer(database: str) -> Iterator[Server]:
    """The server that has the place of the writer."""
    with make_server(state=database) as server:
        yield server


def health(server: Server) -> tuple[int, str]:
    """Return the status and the word of a server's health."""
    answer = requests.get(f"{server.url}/health/")
    return answer.status_code, answer.json()["status"]


def wait_until(server: Server, expected: tuple[int, str]) -> None:
    """Wait until a server has this health."""
    pause = Event()
    for _ in range(WAIT_SECONDS * 50):
        if health(server) == expected:
            return
        pause.wait(0.02)
    raise AssertionError(f"{health(server)}, not {expected}")


OK, STANDBY = (200, "ok"), (503, "standby")


def test_a_standby_answers_its_health_only_and_takes_over(database: str) -> None:
    """A standby refuses all calls; when the writer stops, it has all that was acknowledged."""
    with make_server(state=database) as first:
        sandbox = Sandbox(first)
        order = sandbox.place(card())
        with make_server(state=database) as second:
            assert (health(first), health(second)) == (OK, STANDBY)
            for path in ("/v1/orders/", "/control/projects/", "/", "/docs/", "/pay/x/"):
                refused = requests.get(f"{second.url}{path}", auth=(sandbox.key, ""))
                assert (refused.status_code, refused.headers["Retry-After"]) == (503, "1")
            first.stop()
            wait_until(second, OK)
            taken_over = reconnect(sandbox, second)
            assert taken_over.read(order)["status"] == "new"
            taken_over.place(card())
            assert second.state is not None
            check_state(second.state, second.registry)


def test_an_ended_session_is_noticed_by_the_next_call(writer: Server, run: Callable[[str], Any]) -> None:
    """After an administrator has ended the session, no call is answered from memory until it is read again."""
    sandbox = Sandbox(writer)
    order = sandbox.place(card())
    project = sandbox.project_in_process
    run(END_SESSIONS)
    refused = sandbox.get(f"/v1/orders/{order['id']}/")
    assert (refused.status_code, refused.headers["Retry-After"]) == (503, "1")
    wait_until(writer, OK)
    assert sandbox.read(order)["id"] == order["id"]
    assert sandbox.project_in_process is not project
    with pytest.raises(NotStored, match="lost its connection"):
        project.change_settings({"name": "late"})


def test_a_lock_that_was_lost_between_two_calls_makes_no_second_history(
    writer: Server, database: str
) -> None:
    """A server whose lock another one has taken commits nothing, says so, and becomes a standby."""
    sandbox = Sandbox(writer)
    before = sandbox.place(card())
    session = writer.state
    assert isinstance(session, Session)
    session.select("SELECT pg_advisory_unlock_all()", ())
    with make_server(state=database) as second:
        assert health(second) == OK
        refused = sandbox.create(card())
        assert refused.status_code == 503
        assert any(words in refused.text for words in ("nothing has changed", "is a standby"))
        assert health(writer) == STANDBY
        state = reconnect(sandbox, second).get("/control/orders/").json()["items"]
        assert [each["id"] for each in state] == [before["id"]]


def test_a_transaction_succeeds_only_directly_after_the_commit_that_its_server_knows(database: str) -> None:
    """The row that names the newest commit refuses the transaction of a session behind the newest."""
    with open_session(database) as first:
        first.run([(PUT_VALUE, ("deleted", '["1"]'))])
        first.select("SELECT pg_advisory_unlock_all()", ())
        with open_session(database) as second:
            with pytest.raises(NotStored, match=postgresql.OTHER_WRITER):
                first.run([(PUT_VALUE, ("deleted", '["2"]'))])
            assert first.over.is_set()
            second.run([(PUT_VALUE, ("deleted", '["3"]'))])
            assert second.select("SELECT body FROM server WHERE name = 'deleted'", ()) == [('["3"]',)]


def test_waiting_calls_and_streams_end_with_the_place(writer: Server, run: Callable[[str], Any]) -> None:
    """A long poll gets 503, and an event stream ends."""
    sandbox = Sandbox(writer)
    order = sandbox.place(card())
    auth = (sandbox.key, "")
    stream = requests.get(f"{writer.url}/control/events/", auth=auth, stream=True)
    with ThreadPoolExecutor() as pool:
        path = f"/control/wait/?order_id={order['id']}&status=completed&timeout=60"
        waiting = pool.submit(requests.get, f"{writer.url}{path}", auth=auth)
        project = sandbox.project_in_process
        while not project.events.waiting_count:
            Event().wait(0.01)
        run(END_SESSIONS)
        assert waiting.result(WAIT_SECONDS).status_code == 503
        assert pool.submit(lambda: stream.content).result(WAIT_SECONDS) is not None


@pytest.mark.prove
@pytest.mark.parametrize(("seconds", "status"), [(9, 201), (30, 503)])
def test_a_commit_whose_answer_is_held_back(postgres: Postgres, seconds: int, status: int) -> None:
    """Within ten seconds of the loss the state tells that the call has succeeded; later, nobody knows."""
    wire = Wire(postgres.port)
    name = postgres.new_database().rpartition("/")[2]
    with make_server(state=f"postgresql://postgres@127.0.0.1:{wire.port}/{name}") as server:
        sandbox = Sandbox(server)
        wire.answers.clear()
        with ThreadPoolExecutor() as pool:
            creating = pool.submit(sandbox.create, card(), merchant_order_id="held")
            Event().wait(4)
            assert health(server) == STANDBY
            Event().wait(seconds - 4)
            wire.restore()
            answer = creating.result(WAIT_SECONDS)
        wait_until(server, OK)
        assert answer.status_code == status
        assert status == 201 or postgresql.UNKNOWN in answer.text
        orders = sandbox.get("/control/orders/").json()["items"]
        assert [each["merchant_order_id"] for each in orders] == ["held"]
    wire.close()


def test_a_damaged_project_is_set_aside(database: str, run: Callable[[str], Any]) -> None:
    """Its key gets the reason, its rows stay, the list names it, other projects work, and it can be deleted."""
    with make_server(state=database) as server:
        damaged, sound = Sandbox(server), Sandbox(server)
        damaged.place(card())
        order = sound.place(card())
        project_id = damaged.project["project_id"]
    (number,) = run(f"SELECT number FROM payment_sandbox.project WHERE id = '{project_id}'")[0]
    run(f"UPDATE payment_sandbox.record SET body = '{{}}' WHERE project = {number} AND kind = 'orders'")
    with make_server(state=database) as server:
        assert reconnect(sound, server).read(order)["id"] == order["id"]
        refused = reconnect(damaged, server).get("/control/project/")
        assert refused.status_code == 503
        assert f"project {project_id} is damaged" in refused.json()["error"]["value"]
        assert reconnect(damaged, server).create(card()).status_code == 503
        (listed,) = requests.get(f"{server.url}/control/projects/").json()["damaged"]
        assert (listed["project_id"], "orders[0]" in listed["problem"]) == (project_id, True)
        assert run(f"SELECT count(*) FROM payment_sandbox.record WHERE project = {number}") != [(0,)]
        assert reconnect(damaged, server).delete("/control/project/").json() == {"deleted": project_id}
        assert reconnect(damaged, server).get("/control/project/").status_code == 401
        assert run(f"SELECT count(*) FROM payment_sandbox.record WHERE project = {number}") == [(0,)]
        assert "damaged" not in requests.get(f"{server.url}/control/projects/").json()


def test_a_damaged_first_project_is_not_created_anew(database: str, run: Callable[[str], Any]) -> None:
    """A project with a fixed key that cannot be read is not replaced by an empty one."""
    with make_server(state=database):
        pass
    run("UPDATE payment_sandbox.project SET counters = '{'")
    with make_server(state=database) as server:
        assert server.sandbox.ignored == ["project sandbox is damaged, so it is not created again"]
        answer = requests.get(f"{server.url}/control/project/", auth=("sandbox-key", ""))
        assert answer.status_code == 503


def test_the_secrets_of_forms_and_cookies_survive(database: str) -> None:
    """Servers with the same state and token have the same secret; another token, another secret."""

    def secret(token: str) -> bytes:
        with make_server(state=database, control_token=token) as server:
            signed: bytes = server.app.extensions[EXTENSION].forgery_secret
            return signed

    assert secret("a") == secret("a") != secret("b")


REFUSED = {
    "the tables of the former package": (
        "CREATE TABLE sandbox_migration (number integer)",
        "payment-sandbox snapshot",
    ),
    "a newer format": ("UPDATE payment_sandbox.head SET format = 9", "reads only up to 1"),
    "damaged ids": ("UPDATE payment_sandbox.server SET body = '{' WHERE name = 'ids'", "is damaged"),
}


@pytest.mark.parametrize(("statement", "words"), REFUSED.values(), ids=REFUSED)
def test_a_database_that_cannot_be_used_is_refused(
    database: str, run: Callable[[str], Any], statement: str, words: str
) -> None:
    """The refusal is one sentence, without the user, and the lock is released."""
    with make_server(state=database):
        pass
    run(statement)
    for _ in range(2):
        with pytest.raises(StateRefused, match=words) as refused:
            make_server(state=database)
        assert "postgres@" not in str(refused.value)
    while run("SELECT 1 FROM pg_locks WHERE locktype = 'advisory'"):  # until PostgreSQL has ended the session
        Event().wait(0.01)


def test_a_commit_of_many_statements(database: str) -> None:
    """Thousands of statements are one transaction, and text needs no escapes."""
    text = json.dumps("it's 100 % \\ ? %s")
    with open_session(database) as session:
        session.run([(PUT_VALUE, (f"{number}", text)) for number in range(3000)])
        assert session.select("SELECT count(*), min(body) FROM server WHERE name <> 'salt'", ()) == [
            (3000, text)
        ]
