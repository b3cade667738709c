"""Projects change servers: one stops, one is gone, one comes back too late."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from threading import Event

import pytest
import requests

from payment_sandbox.orders.webhooks import TIMEOUT_SECONDS
from payment_sandbox.serving.cluster import Cluster
from payment_sandbox.serving.realtime import monotonic_seconds
from payment_sandbox.serving.server import Server
from payment_sandbox.storage.connections import Unavailable
from payment_sandbox.storage.postgresql import Database
from tests.cluster.conftest import Company
from tests.support.driver import Sandbox, by, card
from tests.support.postgres import needs_postgres
from tests.support.shop import Shop

pytestmark = needs_postgres


def crash(company: Company, server: Server) -> None:
    """What a kill leaves: no heartbeat, nobody who answers, and everything still in the database."""
    company.servers.remove(server)
    assert server.cluster is not None
    server.cluster._is_stopped = True
    server.services.courier.stop()
    server.services.pacer.stop()
    server._http.stop()
    assert isinstance(server.kept, Database)
    server.kept.close()
    company.execute(
        "UPDATE sandbox_server SET heartbeat_at = now() - interval '1 minute' "
        f"WHERE id = '{server.cluster._database.server_id}'"
    )


def test_a_server_that_stops_hands_its_projects_over(company: Company, first: Sandbox) -> None:
    """Sixteen clients of two servers see no refusal while one of these stops."""
    stopping, staying = company.servers
    is_over, statuses = Event(), []
    sandboxes = [company.at(server, Sandbox(stopping)) for server in (staying, stopping) * 4]

    def work(sandbox: Sandbox) -> None:
        while not is_over.is_set():
            try:
                statuses.append(sandbox.create(card()).status_code)
            except requests.ConnectionError:  # it has stopped: a load balancer takes the other one
                sandbox.url = staying.local_url

    with ThreadPoolExecutor(len(sandboxes)) as pool:
        working = [pool.submit(work, sandbox) for sandbox in sandboxes]
        while len(statuses) < 100:
            is_over.wait(0.01)
        company.end(stopping)
        before = len(statuses)
        while len(statuses) < before + 100:
            is_over.wait(0.01)
        is_over.set()
        for each in working:
            each.result()
    assert set(statuses) == {201}


def test_what_a_killed_server_had_is_all_there(company: Company, first: Sandbox, second: Sandbox) -> None:
    """Orders, settings, scenario, clock and agenda; the other server goes on with them."""
    order = first.place(by("bank-transfer"))
    first.patch("/control/project/", {"name": "Kept"})
    now = first.get("/control/clock/").json()["now"]
    crash(company, company.servers[0])
    assert second.read(order)["id"] == order["id"]
    assert second.get("/control/project/").json()["settings"]["name"] == "Kept"
    assert second.get("/control/clock/").json()["now"] == now
    assert second.post("/control/clock/advance/", {"by": "P60D"}).json()["events"]


def test_a_webhook_of_a_killed_server_is_sent_by_another(company: Company) -> None:
    """The attempt under way is made again with its number."""
    with closing(Shop()) as shop:
        sandbox = Sandbox(company.servers[0], webhook_url=shop.url, clock="running")
        hang, seen = Event(), Event()

        def answer(received: object) -> int:
            is_first = not seen.is_set()
            seen.set()
            if is_first:
                hang.wait(10)
            return 200

        shop.answer = answer
        order = sandbox.place(card())
        sandbox.acted(order, "customer pay")
        assert seen.wait(10)
        crash(company, company.servers[0])
        other = company.at(company.servers[0], sandbox)
        found = other.get(f"/control/webhooks/?order_id={order['id']}")
        assert found.status_code == 200
        project = next(
            each
            for each in company.servers[0].registry.loaded()
            if each.project_id == sandbox.project["project_id"]
        )
        assert project.settle(15)
        hang.set()
        statuses = [webhook["state"] for webhook in other.get("/control/webhooks/").json()["items"]]
        assert set(statuses) == {"delivered"}


def no_answer(*arguments: object, **options: object) -> None:
    """What a database does that is too slow."""
    raise Unavailable("the database", "it does not answer", is_full=False)


def test_taking_projects_over_delays_no_heartbeat(company: Company, monkeypatch: pytest.MonkeyPatch) -> None:
    """However long it takes: a server that takes over much would lose all that it has."""
    owner = company.servers[0].cluster
    assert owner is not None
    begun, may_end = Event(), Event()

    def takes_long(most: int) -> list[str]:
        begun.set()
        may_end.wait(30)
        return []

    monkeypatch.setattr(owner._database, "unattended", takes_long)
    assert begun.wait(10)
    before = owner._valid_until_seconds
    for _ in range(100):
        if owner._valid_until_seconds > before + 2:
            break
        Event().wait(0.1)
    may_end.set()
    assert owner._valid_until_seconds > before + 2


def test_a_webhook_is_sent_only_while_nobody_else_can(
    company: Company, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An attempt begins only if the lease outlasts its time limit: it waits for the next heartbeat."""
    with closing(Shop()) as shop:
        sandbox = Sandbox(company.servers[0], webhook_url=shop.url, clock="running")
        owner = company.servers[0].cluster
        assert owner is not None
        with monkeypatch.context() as without_heartbeat:
            without_heartbeat.setattr(owner._database, "beat", no_answer)
            owner._valid_until_seconds = monotonic_seconds() + TIMEOUT_SECONDS - 1.0
            order = sandbox.place(card())
            sandbox.acted(order, "customer pay")
            Event().wait(0.5)
            assert shop.received == []
        project = sandbox.server.registry.local(sandbox.project["project_id"])
        assert project is not None
        assert project.settle(15)
        webhooks = sandbox.get("/control/webhooks/").json()["items"]
        assert [webhook["state"] for webhook in webhooks] == ["delivered"] * len(shop.received)


def test_a_server_that_comes_back_too_late_writes_nothing(
    company: Company, first: Sandbox, second: Sandbox
) -> None:
    """Its memory is old: what another server did meanwhile is not overwritten, and it answers with that."""
    order = first.place(card())
    stopped = company.servers[0].cluster
    assert stopped is not None
    company.execute(
        f"UPDATE sandbox_server SET heartbeat_at = now() - interval '1 minute' WHERE id = '{stopped._database.server_id}'"
    )
    second.acted(order, "customer pay")
    assert company.has(company.servers[1], first)
    changed = first.patch("/control/project/", {"name": "by the old owner"})
    assert changed.status_code == 200
    assert company.owner_of(first) is company.servers[1]
    assert first.read(order) == second.read(order)
    assert second.get("/control/project/").json()["settings"]["name"] == "by the old owner"


def test_what_is_due_in_a_project_that_nobody_asks_for(company: Company) -> None:
    """The server is gone, the clock runs: another one sends the webhooks in time."""
    with closing(Shop()) as shop:
        sandbox = Sandbox(company.servers[0], webhook_url=shop.url, clock="running")
        order = sandbox.place(card())
        sandbox.patch("/control/clock/", {"mode": "running", "rate": 3600})
        crash(company, company.servers[0])
        came = Event()
        for _ in range(400):
            if any(each.body["order_id"] == order["id"] for each in shop.received if b"order_id" in each.raw):
                break
            came.wait(0.05)
        status = company.at(company.servers[0], sandbox).read(order)["status"]
        assert status == "expired"
        assert shop.received


def test_what_nobody_uses_is_given_back(company: Company, first: Sandbox, second: Sandbox) -> None:
    """Then it costs no server anything, and the next request brings it back as it was."""
    order = first.place(card())
    before = first.get("/control/state/").json()
    owner = company.servers[0].cluster
    assert isinstance(owner, Cluster)
    owner.give_back_idle(-1.0)
    assert not company.has(company.servers[0], first)
    assert company.execute(
        f"SELECT owner FROM sandbox_project WHERE id = '{first.project['project_id']}'"
    ) == [(None,)]
    assert second.get("/control/state/").json() == before
    assert company.owner_of(first) is company.servers[1]
    assert first.read(order)["id"] == order["id"]


def test_what_nobody_uses_can_be_deleted(company: Company, first: Sandbox, second: Sandbox) -> None:
    """Also what no server has in memory; neither the first project nor one that is used."""
    owner = company.servers[0].cluster
    assert isinstance(owner, Cluster)
    project, key = owner.registry.create({}, "chosen-by-a-team")
    project.used_at_seconds -= 7200
    owner._give_back(project, 1.0)
    assert second.post("/control/projects/prune/", {"unused_for": "P1D"}).json() == {"deleted": []}
    assert second.post("/control/projects/prune/", {"unused_for": "PT1H"}).json() == {
        "deleted": [project.project_id]
    }
    assert owner.registry.find(key) is None
    assert owner.registry.is_known(key)  # and not made again when a server starts
    assert first.get("/control/project/").status_code == 200
    assert second.post("/control/projects/prune/", {"unused_for": "P999999Y"}).json() == {"deleted": []}


def test_a_project_that_was_given_back_expires(company: Company) -> None:
    """A server takes it over once its time is over, and deletes it."""
    sandbox = Sandbox(company.servers[0], expires_after="PT1S")
    owner = company.servers[0].cluster
    assert isinstance(owner, Cluster)
    owner.give_back_idle(-1.0)
    pause = Event()
    url = f"{company.servers[1].local_url}/control/clock/"
    while company.execute(f"SELECT id FROM sandbox_project WHERE id = '{sandbox.project['project_id']}'"):
        pause.wait(0.05)
    while requests.get(url, auth=(sandbox.key, ""), timeout=9).status_code != 401:
        pause.wait(0.05)  # the server that deletes it has not finished
