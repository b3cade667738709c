"""The database is slow, stopped, read-only or unusable."""

import json
from collections.abc import Iterator
from contextlib import closing, suppress
from threading import Event, Thread

import pytest

from payment_sandbox.projects.project import Services
from payment_sandbox.projects.registry import Registry
from payment_sandbox.serving.services import REAL_TIME
from payment_sandbox.storage.codec import StateRefused
from payment_sandbox_company.cluster import JoinedDatabase
from payment_sandbox_company.cluster_tables import PeerServer
from payment_sandbox_company.connections import Unavailable
from payment_sandbox_company.project_rows import UnknownOutcome
from payment_sandbox_company.schema import NEWEST_VERSION
from tests.cluster.conftest import Company
from tests.storage.conftest import NOON
from tests.support import postgres
from tests.support.cut_wire import Wire
from tests.support.driver import Sandbox, card
from tests.support.postgres import Postgres
from tests.support.projects import catalogue
from tests.support.servers import make_server

pytestmark = pytest.mark.prove


@pytest.fixture
def own_server() -> Iterator[Postgres]:
    """A PostgreSQL server that a test may stop."""
    with postgres.running() as server:
        yield server


def registry_on(database: JoinedDatabase) -> Registry:
    """Return an empty registry on a database."""
    return Registry(Services(REAL_TIME), database, catalogue(), clock=NOON)


@pytest.mark.parametrize("is_applied", [True, False])
def test_a_lost_response_to_a_commit(postgresql: Postgres, is_applied: bool) -> None:
    """After a lost response to a commit, the server reads its outcome: applied once, or refused."""
    address = postgresql.new_database()
    with closing(Wire(postgresql.port)) as wire:
        database = JoinedDatabase(address.replace(str(postgresql.port), str(wire.port)), "me", REAL_TIME)
        project, _ = registry_on(database).create({})
        marker = b"lost on the way"
        if is_applied:
            wire.cuts_answers_to = marker
            project.change_settings({"name": marker.decode()})
        else:
            wire.loses = marker
            with pytest.raises(Unavailable, match="nothing has changed"):
                project.change_settings({"name": marker.decode()})
        assert (project.settings.name == marker.decode()) is is_applied
        stored = postgresql.execute("SELECT chosen FROM sandbox_project", address.rpartition("/")[2])
        assert (marker.decode() in str(stored)) is is_applied
        project.change_settings({"name": "after it"})
        assert project.settings.name == "after it"
        database.close()


def test_a_commit_with_an_unknown_outcome(postgresql: Postgres) -> None:
    """If the outcome of a commit is unknown, the error hints at idempotency keys; a later read finds it."""
    address = postgresql.new_database()
    with closing(Wire(postgresql.port)) as wire:
        database = JoinedDatabase(address.replace(str(postgresql.port), str(wire.port)), "me", REAL_TIME)
        project, _ = registry_on(database).create({})
        wire.cuts_answers_to, wire.then_refuses = b"happened unseen", True
        with pytest.raises(UnknownOutcome, match="Idempotency-Key"):
            project.change_settings({"name": "happened unseen"})
        assert project.settings.name == ""
        wire.then_refuses = False
        project.change_settings({"owner": "somebody"})
        assert project.settings.name == "happened unseen"
        database.close()


def test_a_database_that_never_answers(postgresql: Postgres) -> None:
    """Each statement has a time limit, even if packets are dropped; later statements succeed again."""
    address = postgresql.new_database()
    with closing(Wire(postgresql.port)) as wire:
        database = JoinedDatabase(address.replace(str(postgresql.port), str(wire.port)), "me", REAL_TIME)
        wire.swallows = True
        with pytest.raises(Unavailable):
            database.rows("SELECT 1", (), 0.5)
        wire.swallows = False
        while True:  # a connection opened in between hangs until its own limit
            with suppress(Unavailable):
                assert database.identity("anybody") is None
                break
        database.close()


def test_a_restart_of_the_database(own_server: Postgres) -> None:
    """Calls during a restart get 503 with Retry-After and change nothing; later calls succeed."""
    address = own_server.new_database()
    with make_server(state=address) as server:
        sandbox = Sandbox(server)
        order = sandbox.place(card())
        own_server.stop()
        refused = sandbox.http.post(
            f"{sandbox.url}/v1/orders/",
            json={"currency": "EUR", "amount": 5, "merchant_order_id": "half"},
            auth=(sandbox.key, ""),
        )
        assert refused.status_code == 503, refused.text
        assert refused.headers["Retry-After"]
        own_server.start()
        assert sandbox.read(order)["id"] == order["id"]
        assert sandbox.place(card())["id"] != order["id"]
        orders = own_server.execute(
            "SELECT count(*) FROM sandbox_record WHERE kind = 'orders'", address.rpartition("/")[2]
        )
        assert orders == [(2,)]


def test_a_standby_is_promoted() -> None:
    """A server with both addresses switches to the promoted standby, and keeps all acknowledged orders."""
    with postgres.running() as primary, postgres.running(following=primary) as standby:
        name = primary.new_database().rpartition("/")[2]
        primary.execute("ALTER SYSTEM SET synchronous_standby_names = '*'")
        primary.execute("SELECT pg_reload_conf()")
        hosts = f"postgres@127.0.0.1:{primary.port},127.0.0.1:{standby.port}"
        with make_server(state=f"postgresql://{hosts}/{name}?target_session_attrs=read-write") as server:
            sandbox = Sandbox(server)
            orders = [sandbox.place(card()) for _ in range(3)]
            primary.stop()
            refused = sandbox.create(card())
            assert (refused.status_code, refused.headers["Retry-After"]) == (503, "1")
            standby.promote()
            while (answer := sandbox.create(card())).status_code != 201:
                Event().wait(0.1)
            for order in [*orders, answer.json()]:
                assert sandbox.read(order)["id"] == order["id"]


def test_a_database_that_became_read_only(company: Company, first: Sandbox, second: Sandbox) -> None:
    """Calls to a read-only database get 503 and change nothing; the journal is written later."""
    name = company.state.rpartition("/")[2]
    order = first.place(card())
    company.database.execute(f"ALTER DATABASE {name} SET default_transaction_read_only = on")
    company.database.execute(
        f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'"
    )
    try:
        message = ""
        while "read-only" not in message:  # the first refusals report closed connections
            body = {"currency": "EUR", "amount": 5}
            refused = first.http.post(f"{first.url}/v1/orders/", json=body, auth=(first.key, ""))
            assert refused.status_code == 503, refused.text
            message = refused.json()["error"]["value"]
        for number in range(40):  # long enough for a recorder without retries to drop records
            assert first.get(f"/v1/orders/{order['id']}/?read={number}").status_code == 200
            Event().wait(0.02)
    finally:
        company.database.execute(f"ALTER DATABASE {name} RESET default_transaction_read_only")
        company.database.execute(
            f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'"
        )
    assert first.read(order)["id"] == order["id"]
    assert first.create(card()).status_code == 201
    missing = {f"read={number}" for number in range(40)}
    while missing:  # the recorder of the first server reconnects first
        items = second.get("/control/journal/?limit=100").json()["items"]
        missing -= {each["query"] for each in items}
        Event().wait(0.05)


UNUSABLE = {
    "postgresql://nobody@127.0.0.1:1/x": "refused",
    "postgresql://postgres@127.0.0.1:{port}/missing": "does not exist",
    "postgresql://stranger@127.0.0.1:{port}/postgres": "does not exist",
    "postgresql://no-such-host.invalid/x": "resolve",
    "postgresql://127.0.0.1:notaport/x": "port",
}


@pytest.mark.parametrize("address", UNUSABLE)
def test_an_unusable_database_is_refused(postgresql: Postgres, address: str) -> None:
    """An unusable database is refused in one line that names it; ``serve`` prints it as for a state file."""
    with pytest.raises(StateRefused) as refused:
        make_server(state=address.format(port=postgresql.port))
    (line,) = str(refused.value).splitlines()
    assert line.startswith("postgresql://")
    assert UNUSABLE[address] in line


def test_a_role_that_may_not_create_tables(postgresql: Postgres) -> None:
    """A role that may not create tables is refused, unless another role has created them."""
    address = postgresql.new_database()
    name = address.rpartition("/")[2]
    postgresql.execute(f"CREATE ROLE clerk_{name} LOGIN")
    weak = postgresql.address(name, user=f"clerk_{name}")
    with pytest.raises(StateRefused, match="permission denied"):
        JoinedDatabase(weak, "clerk", REAL_TIME)
    JoinedDatabase(address, "boss", REAL_TIME).close()
    postgresql.execute(
        f"GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO clerk_{name}", name
    )
    database = JoinedDatabase(weak, "clerk", REAL_TIME)
    project, _ = registry_on(database).create({})
    assert database.identity(project.project_id) is not None
    database.close()


def test_a_newer_schema_is_refused(postgresql: Postgres) -> None:
    """A server refuses a database that a newer version has migrated."""
    address = postgresql.new_database()
    name, newer = address.rpartition("/")[2], NEWEST_VERSION + 1
    JoinedDatabase(address, "old", REAL_TIME).close()
    postgresql.execute(f"INSERT INTO sandbox_migration (number, works_with) VALUES ({newer}, {newer})", name)
    with pytest.raises(StateRefused, match="upgrade this server"):
        JoinedDatabase(address, "old", REAL_TIME)


def test_an_older_schema_is_migrated_when_its_servers_have_ended(postgresql: Postgres) -> None:
    """Running servers of an older version are named; afterwards, their answers to keys are still replayed."""
    address = postgresql.new_database()
    name = address.rpartition("/")[2]
    first = JoinedDatabase(address, "old", REAL_TIME)
    project, _ = registry_on(first).create({})
    first.report(PeerServer("old", "http://127.0.0.1:1", "1.0", is_draining=False, projects=1))
    older = {"of": "POST /v1/orders/ 0", "status": 201, "etag": None, "order_id": None, "body": "{}"}
    postgresql.execute(f"DELETE FROM sandbox_migration WHERE number > {NEWEST_VERSION - 2}", name)
    older_columns = "DROP COLUMN epoch_version, ADD COLUMN watched_until timestamptz"
    postgresql.execute(f"ALTER TABLE sandbox_project {older_columns}", name)
    postgresql.execute(
        "INSERT INTO sandbox_request (project, id, part, version, answer) "
        f"VALUES ('{project.project_id}', 'order-17', 1, 1, '{json.dumps(older)}')",
        name,
    )
    with pytest.raises(StateRefused, match=r"http://127.0.0.1:1 \(version 1.0\); .* never share"):
        JoinedDatabase(address, "new", REAL_TIME)
    first.leave()
    first.close()
    with closing(JoinedDatabase(address, "new", REAL_TIME)) as database:
        answer = database.answer(project.project_id, "order-17")
        assert answer is not None
        assert (answer.of, answer.status, answer.body) == ("POST /v1/orders/ 0", 201, "{}")
        assert database.identity(project.project_id) is not None


def test_servers_that_start_together_create_the_tables_once(postgresql: Postgres) -> None:
    """Servers that start at the same time create the tables once."""
    address = postgresql.new_database()
    databases: list[JoinedDatabase] = []
    threads = [
        Thread(target=lambda number=n: databases.append(JoinedDatabase(address, f"s{number}", REAL_TIME)))
        for n in range(6)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(databases) == 6
    for database in databases:
        database.close()


def test_only_digests_of_keys_are_stored(company: Company, first: Sandbox) -> None:
    """The database contains no API key, only digests."""
    first.place(card())
    for (table,) in company.execute("SELECT tablename FROM pg_tables WHERE tablename LIKE 'sandbox%'"):
        assert first.key not in str(company.execute(f"SELECT * FROM {table}"))
