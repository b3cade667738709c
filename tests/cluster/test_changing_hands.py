"""Servers stop or crash, and the other servers take over their work."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from threading import Event

import requests

from payment_sandbox.serving.server import Server
from payment_sandbox.serving.services import Housekeeper
from payment_sandbox_company.cluster import Cluster
from tests.cluster.conftest import Company
from tests.support.driver import Sandbox, by, card
from tests.support.shop import Shop


def crash(company: Company, server: Server) -> None:
    """Stop a server like a kill: no responses, no renewed leases, and no change to the database."""
    company.servers.remove(server)
    assert isinstance(server.cluster, Cluster)
    server.cluster._stopped.set()
    server.services.courier.stop()
    server.services.scheduler.stop()
    server.listener.stop()
    assert server.state is not None
    server.state.close()
    company.execute(
        "UPDATE sandbox_project SET courier_until = now(), clock_until = now(), "
        "attend_at = CASE WHEN attend_at IS NOT NULL THEN least(attend_at, now()) END"
    )


def test_a_stopping_server_refuses_no_call(company: Company, first: Sandbox) -> None:
    """Clients of two servers see no refusal while one of the servers stops."""
    stopping, staying = company.servers
    is_finished, statuses = Event(), []
    sandboxes = [company.client_at(server, Sandbox(stopping)) for server in (staying, stopping) * 4]

    def work(sandbox: Sandbox) -> None:
        while not is_finished.is_set():
            try:
                statuses.append(sandbox.create(card()).status_code)
            except requests.ConnectionError:
                # the server has stopped: use the other one, like a load balancer
                sandbox.url = staying.local_url

    with ThreadPoolExecutor(len(sandboxes)) as pool:
        clients = [pool.submit(work, sandbox) for sandbox in sandboxes]
        while len(statuses) < 100:
            is_finished.wait(0.01)
        company.stop_server(stopping)
        before = len(statuses)
        while len(statuses) < before + 100:
            is_finished.wait(0.01)
        is_finished.set()
        for each in clients:
            each.result()
    assert set(statuses) == {201}


def test_a_stopping_server_completes_calls_in_progress(company: Company) -> None:
    """A stopping server completes an advance in progress, and ends a waiting call at once."""
    stopping = company.servers[0]
    sandbox = Sandbox(stopping, clock="frozen")
    waiting = Sandbox(stopping)
    with closing(Shop()) as shop, ThreadPoolExecutor(2) as pool:
        is_received, is_stopped = shop.hold(
            late=200, seconds=1.5
        )  # the server must not stop during the advance
        sandbox.patch("/control/project/", {"webhook_url": shop.url})
        order = sandbox.place(by("bank-transfer"))
        advance = pool.submit(sandbox.post, "/control/clock/advance/", {"by": "P40D"})
        path = f"/control/wait/?order_id={waiting.place(card())['id']}&status=completed&timeout=60"
        pool.submit(waiting.get, path)
        assert is_received.wait(60)
        company.stop_server(stopping)
        is_stopped.set()
        assert advance.result(60).status_code == 200
        remaining = company.client_at(company.servers[0], sandbox)
        assert remaining.status(order)[0] == "expired"
        assert {each["state"] for each in remaining.get("/control/webhooks/").json()["items"]} == {
            "delivered"
        }


def test_a_webhook_of_a_killed_server_is_sent_by_another(company: Company) -> None:
    """An attempt that was in flight on a killed server is repeated by another server."""
    with closing(Shop()) as shop:
        sandbox = Sandbox(company.servers[0], webhook_url=shop.url, clock="running")
        may_answer_first, is_received = Event(), Event()

        def answer(received: object) -> int:
            is_first = not is_received.is_set()
            is_received.set()
            if is_first:
                may_answer_first.wait(60)
            return 200

        shop.answer = answer
        order = sandbox.place(card())
        sandbox.acted(order, "customer pay")
        assert is_received.wait(60)
        crash(company, company.servers[0])
        other = company.client_at(company.servers[0], sandbox)
        listed = other.get(f"/control/webhooks/?order_id={order['id']}")
        assert listed.status_code == 200
        assert other.get("/control/wait/?idle=1&timeout=60").status_code == 200
        may_answer_first.set()
        statuses = [webhook["state"] for webhook in other.get("/control/webhooks/").json()["items"]]
        assert set(statuses) == {"delivered"}


def test_a_clock_is_held_by_one_server(company: Company, first: Sandbox, second: Sandbox) -> None:
    """During an advance, other servers refuse another one, and show the time of the current event."""
    with closing(Shop()) as shop, ThreadPoolExecutor(1) as pool:
        first.patch("/control/project/", {"webhook_url": shop.url})
        is_received, may_answer = shop.hold()
        first.place(by("bank-transfer"))
        may_answer.set()
        first.settle()
        is_received.clear()
        may_answer.clear()
        before = first.now()
        advance = pool.submit(first.post, "/control/clock/advance/", {"by": "P60D"})
        assert is_received.wait(60)
        refused = second.post("/control/clock/advance/", {"by": "PT1H"})
        assert (refused.status_code, refused.json()["error"]["type"]) == (409, "ClockBusy")
        assert second.now() > before
        may_answer.set()
        assert advance.result(60).status_code == 200
        assert second.post("/control/clock/advance/", {"by": "PT1H"}).status_code == 200


def test_due_events_run_without_a_request(company: Company) -> None:
    """After a crash, another server runs due events and sends webhooks without a request for the project."""
    with closing(Shop()) as shop:
        sandbox = Sandbox(company.servers[0], webhook_url=shop.url, clock="running")
        order = sandbox.place(card())
        sandbox.patch("/control/clock/", {"mode": "running", "rate": 3600})
        crash(company, company.servers[0])
        pause = Event()
        while not any(each.body["order_id"] == order["id"] for each in shop.received if each.raw):
            pause.wait(0.05)
        assert company.client_at(company.servers[0], sandbox).read(order)["status"] == "expired"


def test_idle_projects_are_unloaded(company: Company, first: Sandbox, second: Sandbox) -> None:
    """An idle project is unloaded, and the next request loads it unchanged."""
    order = first.place(card())
    before = first.get("/control/state/").json()
    company.registry(0).drop_idle(-1.0)
    assert not company.has_loaded(company.servers[0], first)
    ((attend_at,),) = company.execute(
        f"SELECT attend_at FROM sandbox_project WHERE id = '{first.project['project_id']}'"
    )
    assert attend_at is None, "no server attends to it"
    assert second.get("/control/state/").json() == before
    assert first.read(order)["id"] == order["id"]


def test_unused_projects_are_pruned(company: Company, first: Sandbox, second: Sandbox) -> None:
    """Prune deletes unused projects that no server has in memory, but not the first project or used ones."""
    registry = company.registry(0)
    project, key = registry.create({}, "chosen-by-a-team")
    registry.record_use()
    registry.drop(project)
    company.execute(
        "UPDATE sandbox_project SET used_at = now() - interval '2 hours' "
        f"WHERE id = '{project.project_id}' RETURNING id"
    )
    prune = "/control/projects/prune/"
    assert second.post(prune, {"unused_for": "P1D"}).json() == {"deleted": []}
    assert second.post(prune, {"unused_for": "PT1H"}).json() == {"deleted": [project.project_id]}
    assert registry.find(key) is None
    assert registry.is_known(key)  # so a starting server does not create it again
    assert first.get("/control/project/").status_code == 200


def test_an_unloaded_project_expires(company: Company) -> None:
    """An expired project that no server has in memory is deleted by any server."""
    sandbox = Sandbox(company.servers[0], expires_after="PT1S")
    company.registry(0).drop_idle(-1.0)
    pause = Event()
    while company.execute(f"SELECT id FROM sandbox_project WHERE id = '{sandbox.project['project_id']}'"):
        company.registry(1).prune(None)
        pause.wait(0.05)
    url = f"{company.servers[1].local_url}/control/clock/"
    assert requests.get(url, auth=(sandbox.key, "")).status_code == 401


def test_a_project_in_use_at_another_server_does_not_expire(company: Company) -> None:
    """A project in use at another server does not expire, although this server has seen no calls."""
    sandbox = Sandbox(company.servers[0], expires_after="PT1S")
    other = company.client_at(company.servers[1], sandbox)
    project = company.registry(0).find_by_id(sandbox.project["project_id"])
    assert project is not None
    project.used_at_seconds -= 3600
    assert project.is_over()
    Housekeeper(company.registry(0)).clean_up()
    company.registry(1).record_use()
    company.registry(0).prune(None)
    assert other.get("/control/clock/").status_code == 200
