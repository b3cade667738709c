"""Servers come and go: one stops, one is gone, and the others go on."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from threading import Event

import requests

from payment_sandbox.serving.server import Server
from payment_sandbox.serving.services import Housekeeper
from payment_sandbox_company.cluster import Cluster
from tests.cluster.conftest import Company
from tests.support.driver import Sandbox, by, card
from tests.support.postgres import needs_postgres
from tests.support.shop import Shop

pytestmark = needs_postgres


def crash(company: Company, server: Server) -> None:
    """What a kill leaves: nobody who answers, no renewals, and everything still in the database."""
    company.servers.remove(server)
    assert isinstance(server.cluster, Cluster)
    server.cluster._is_stopped = True
    server.services.courier.stop()
    server.services.scheduler.stop()
    server.listener.stop()
    assert server.state is not None
    server.state.close()
    company.execute(
        "UPDATE sandbox_project SET courier_until = now(), clock_until = now(), "
        "attend_at = CASE WHEN attend_at IS NOT NULL THEN least(attend_at, now()) END"
    )


def test_a_server_that_stops_leaves_nothing_to_do(company: Company, first: Sandbox) -> None:
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


def test_a_server_that_stops_answers_what_is_under_way(company: Company) -> None:
    """An advance that waits for the shop ends as if nothing were; a call that only waits ends at once."""
    stopping = company.servers[0]
    sandbox = Sandbox(stopping, clock="frozen")
    waiting = Sandbox(stopping)
    with closing(Shop()) as shop, ThreadPoolExecutor(2) as pool:
        seen, is_stopped = Event(), Event()

        def answer(received: object) -> int:
            seen.set()
            is_stopped.wait(1.5)  # it must not be
            return 200

        shop.answer = answer
        sandbox.patch("/control/project/", {"webhook_url": shop.url})
        order = sandbox.place(by("bank-transfer"))
        moving = pool.submit(sandbox.post, "/control/clock/advance/", {"by": "P40D"})
        path = f"/control/wait/?order_id={waiting.place(card())['id']}&status=completed&timeout=50"
        pool.submit(waiting.get, path)
        assert seen.wait(10)
        company.end(stopping)
        is_stopped.set()
        assert moving.result(0).status_code == 200
        there = company.at(company.servers[0], sandbox)
        assert there.status(order)[0] == "expired"
        assert {each["state"] for each in there.get("/control/webhooks/").json()["items"]} == {"delivered"}


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
        assert other.get("/control/wait/?idle=1&timeout=20").status_code == 200
        hang.set()
        statuses = [webhook["state"] for webhook in other.get("/control/webhooks/").json()["items"]]
        assert set(statuses) == {"delivered"}


def test_memory_that_is_old_is_brought_up(first: Sandbox, second: Sandbox) -> None:
    """What one server has done is there for the next call at another one, and nothing is overwritten."""
    order = first.place(card())
    assert second.read(order)["id"] == order["id"]
    first.acted(order, "customer pay")
    assert second.status(order) == ("completed", "completed")
    second.patch("/control/project/", {"name": "by the second"})
    first.patch("/control/project/", {"owner": "the first"})
    for each in (first, second):
        settings = each.get("/control/project/").json()["settings"]
        assert (settings["name"], settings["owner"]) == ("by the second", "the first")
    assert first.get("/control/state/").json() == second.get("/control/state/").json()


def test_a_clock_is_held_by_one_server(company: Company, first: Sandbox, second: Sandbox) -> None:
    """While it is advanced there, others refuse to, and show the time of its current event."""
    with closing(Shop()) as shop, ThreadPoolExecutor(1) as pool:
        first.patch("/control/project/", {"webhook_url": shop.url})
        seen, go_on = Event(), Event()

        def answer(received: object) -> int:
            seen.set()
            go_on.wait(10)
            return 200

        shop.answer = answer
        first.place(by("bank-transfer"))
        go_on.set()
        first.settle()
        seen.clear()
        go_on.clear()
        before = first.now()
        moving = pool.submit(first.post, "/control/clock/advance/", {"by": "P60D"})
        assert seen.wait(10)
        refused = second.post("/control/clock/advance/", {"by": "PT1H"})
        assert (refused.status_code, refused.json()["error"]["type"]) == (409, "ClockBusy")
        assert second.now() > before
        go_on.set()
        assert moving.result(20).status_code == 200
        assert second.post("/control/clock/advance/", {"by": "PT1H"}).status_code == 200


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


def test_what_nobody_uses_is_forgotten(company: Company, first: Sandbox, second: Sandbox) -> None:
    """Then it costs no server anything, and the next request brings it back as it was."""
    order = first.place(card())
    before = first.get("/control/state/").json()
    company.registry(0).drop_idle(-1.0)
    assert not company.has(company.servers[0], first)
    ((attend_at,),) = company.execute(
        f"SELECT attend_at FROM sandbox_project WHERE id = '{first.project['project_id']}'"
    )
    assert attend_at is None, "no server looks after it"
    assert second.get("/control/state/").json() == before
    assert first.read(order)["id"] == order["id"]


def test_what_nobody_uses_can_be_deleted(company: Company, first: Sandbox, second: Sandbox) -> None:
    """Also what no server has in memory; neither the first project nor one that is used."""
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
    assert registry.is_known(key)  # and not made again when a server starts
    assert first.get("/control/project/").status_code == 200


def test_a_project_that_nobody_has_in_memory_expires(company: Company) -> None:
    """Any server deletes it once its time is over."""
    sandbox = Sandbox(company.servers[0], expires_after="PT1S")
    company.registry(0).drop_idle(-1.0)
    pause = Event()
    while company.execute(f"SELECT id FROM sandbox_project WHERE id = '{sandbox.project['project_id']}'"):
        company.registry(1).prune(None)
        pause.wait(0.05)
    url = f"{company.servers[1].local_url}/control/clock/"
    assert requests.get(url, auth=(sandbox.key, ""), timeout=9).status_code == 401


def test_a_project_that_is_used_at_another_server_stays(company: Company) -> None:
    """However long nobody has called it at this one."""
    sandbox = Sandbox(company.servers[0], expires_after="PT1S")
    other = company.at(company.servers[1], sandbox)
    project = company.registry(0).find_by_id(sandbox.project["project_id"])
    assert project is not None
    project.used_at_seconds -= 3600
    assert project.is_over()
    Housekeeper(company.registry(0)).clean_up()
    company.registry(1).record_use()
    company.registry(0).prune(None)
    assert other.get("/control/clock/").status_code == 200
