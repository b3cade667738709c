"""Every server handles every request: the servers of a database give the same responses."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from threading import Event, Thread

import pytest
import requests

from payment_sandbox.client.client import SandboxClient
from payment_sandbox.operations.advance import stop_advance
from payment_sandbox.projects.default_scenario import default_scenario
from payment_sandbox.projects.journal import ReachedStatus
from payment_sandbox.projects.project import Project
from payment_sandbox.projects.registry import FIRST_API_KEY, FIRST_PROJECT_ID
from payment_sandbox.storage.journal_rows import journal_row
from payment_sandbox.storage.snapshot import restore
from payment_sandbox_company.cluster import store_of
from payment_sandbox_company.shared_storage import flush_all
from tests.cluster.conftest import Company
from tests.support.authorizations import amounts
from tests.support.driver import Sandbox, by, card
from tests.support.shop import Shop
from tests.support.state_files import snapshot_of


def test_the_journal_reaches_each_server(first: Sandbox, second: Sandbox) -> None:
    """Both servers show the same journal once a record is written."""
    order = first.place(card())
    path = f"/control/journal/?order_id={order['id']}"
    while not second.get(path).json()["items"]:
        Event().wait(0.05)
    one, other = first.get(path).json(), second.get(path).json()
    assert one["items"] == other["items"] != []


RESETS: dict[str, Callable[[Project, Project], None]] = {
    "at this server": lambda here, there: here.reset(default_scenario()),
    "at another server": lambda here, there: there.reset(default_scenario()),
    "by a snapshot": lambda here, there: restore(there, snapshot_of(there) | {"decisions": [], "unsent": []}),
}


@pytest.mark.parametrize("reset", RESETS)
def test_records_of_an_earlier_epoch_do_not_enter_the_journal(
    company: Company, first: Sandbox, reset: str
) -> None:
    """Records that are unwritten at a reset, or added after it, do not appear in the new journal."""
    here, there = (company.registry(number).find_by_id(first.project["project_id"]) for number in (0, 1))
    assert here is not None
    assert there is not None
    before, store, now = here.epoch.journal, here.epoch.store, here.now()
    reached = ReachedStatus(before.next_id("status"), "an order", None, None, "completed", now, now, None)
    store.save_journal_rows([journal_row(reached)])
    RESETS[reset](here, there)
    before.add([reached])
    before.requeue([reached])
    store.save_journal_rows([journal_row(reached)])
    flush_all(company.registry(0).database)
    for project in (here, there):
        project.epoch.store.follow()
        project.epoch.journal.invalidate()
        assert project.epoch.journal.of(ReachedStatus) == []


def test_pages_and_their_forms(company: Company, first: Sandbox, second: Sandbox) -> None:
    """Pages opened at one server can be submitted at the other."""
    order = first.place(expiration_period="P1D")
    project_id = first.project["project_id"]
    page = second.http.get(f"{second.url}/pay/{project_id}/{order['id']}/")
    assert page.status_code == 200
    assert "credit" in page.text.lower()
    order_page = second.http.get(f"{second.url}/dashboard/{project_id}/orders/{order['id']}/")
    assert order_page.status_code == 200
    token = order_page.text.partition('name="token" value="')[2].partition('"')[0]
    response = first.http.post(
        f"{first.url}/dashboard/{project_id}/clock/",
        data={"token": token, "by": "P1D"},
        allow_redirects=False,
    )
    assert response.status_code in (302, 303), response.text


def test_events_stream_through_another_server(first: Sandbox, second: Sandbox) -> None:
    """Events of one server are streamed by the other immediately, not when the stream ends."""
    url, auth = f"{second.url}/control/events/", (second.key, "")
    with second.http.get(url, auth=auth, stream=True) as stream:
        lines = stream.iter_lines(chunk_size=1)
        assert next(lines).startswith(b": ")
        first.place(card())
        assert any(line == b"event: request" for line in lines)
        first.advance("PT1S")  # passes no due event
        assert any(line == b"event: clock" for line in lines)


def test_a_wait_at_one_server_ends_with_a_change_at_the_other(first: Sandbox, second: Sandbox) -> None:
    """A wait at one server ends with a change at the other, and does not block it."""
    order = first.place(card())
    answers: list[int] = []
    path = f"/control/wait/?order_id={order['id']}&status=completed&timeout=60"
    waiting = Thread(target=lambda: answers.append(second.get(path).status_code))
    waiting.start()
    first.acted(order, "customer pay")
    waiting.join(60)
    assert answers == [200]


def test_all_servers_list_all_projects(company: Company, first: Sandbox) -> None:
    """Both servers list all projects, and the first project has the same key and id at both."""
    lists = [requests.get(f"{server.url}/control/projects/").json() for server in company.servers]
    ids = [[each["project_id"] for each in listed["items"]] for listed in lists]
    assert ids == [[FIRST_PROJECT_ID, first.project["project_id"]]] * 2
    for server in company.servers:
        assert requests.get(f"{server.url}/control/project/", auth=(FIRST_API_KEY, "")).ok


def test_a_project_is_deleted_at_all_servers(first: Sandbox, second: Sandbox) -> None:
    """The key of a deleted project is refused by both servers."""
    assert second.delete("/control/project/").status_code == 200
    assert [each.get("/control/clock/").status_code for each in (first, second)] == [401, 401]


def test_the_servers_of_a_sandbox(company: Company, first: Sandbox) -> None:
    """Each server lists both servers with their status."""
    for server in company.servers:
        listed = SandboxClient(server.local_url, first.key).servers()
        assert {each["url"] for each in listed} == {each.local_url for each in company.servers}
        assert {each["status"] for each in listed} == {"ok"}


def test_each_server_has_its_own_metrics(first: Sandbox, second: Sandbox) -> None:
    """The metrics of each server count its own calls and commits."""
    first.place(card())
    second.get("/v1/orders/nope/")
    texts = [requests.get(f"{each.url}/metrics").text for each in (first, second)]
    assert 'sandbox_calls_total{status="404"} 1.0' in texts[1]
    assert "sandbox_commits_total 0.0" not in texts[0]
    assert "sandbox_commits_total 0.0" in texts[1]
    assert "sandbox_call_seconds_count" in texts[0]


def test_calls_at_the_same_time_with_the_same_key(first: Sandbox, second: Sandbox) -> None:
    """Of concurrent calls with the same key, one has an effect; the others get its response."""
    body, key = {"currency": "EUR", "amount": 1295}, {"Idempotency-Key": "order 18"}
    with ThreadPoolExecutor(8) as pool:
        calls = [pool.submit(each.post, "/v1/orders/", body, headers=key) for each in (first, second) * 4]
        answers = [call.result() for call in calls]
    assert {answer.status_code for answer in answers} == {201}
    assert len({answer.content for answer in answers}) == 1
    assert len(second.get("/control/orders/").json()["items"]) == 1


def test_two_servers_never_capture_more_than_was_authorized(first: Sandbox, second: Sandbox) -> None:
    """Of eighty concurrent captures of 50 cents at both servers, forty succeed, and none is lost."""
    order = first.authorized()
    path = f"/v1/orders/{order['id']}/transactions/{order['transactions'][0]['id']}/captures/amount/"

    def capture_ten(sandbox: Sandbox) -> list[int]:
        return [
            requests.post(f"{sandbox.url}{path}", json={"amount": 50}, auth=(sandbox.key, "")).status_code
            for _ in range(10)
        ]

    with ThreadPoolExecutor(8) as pool:
        statuses = [status for each in pool.map(capture_ten, (first, second) * 4) for status in each]
    assert statuses.count(200) == 40
    assert amounts(second, order) == {"original": 2000, "captured": 2000, "voided": 0, "remaining": 0}


def test_an_advance_is_stopped_at_another_server(company: Company, first: Sandbox, second: Sandbox) -> None:
    """An advance can be stopped at another server, and its response says so."""
    with closing(Shop()) as shop, ThreadPoolExecutor(1) as pool:
        first.patch("/control/project/", {"webhook_url": shop.url})
        first.place(card())
        # a later event: without it, the advance may finish before it is stopped
        first.place(card(), expiration_period="P30D")
        is_received, may_answer = shop.hold()
        advance = pool.submit(first.post, "/control/clock/advance/", {"by": "P60D"})
        assert is_received.wait(60)
        project = company.registry(1).find_by_id(first.project["project_id"])
        assert project is not None
        assert stop_advance(project)
        may_answer.set()
        assert advance.result(60).json()["stopped"]
        later = company.registry(1).find_by_id(project.project_id)
        assert later is project
        assert not stop_advance(later)


def test_an_edit_ignores_older_reads(company: Company, first: Sandbox) -> None:
    """An edit reads the clock's holder from the row that it has locked, not from an older read."""
    local, remote = (company.registry(number).find_by_id(first.project["project_id"]) for number in range(2))
    assert local is not None
    assert remote is not None
    store = store_of(local)
    before = company.registry(0).database.head(local.project_id)
    assert before is not None
    assert remote.epoch.store.hold_clock()
    with ThreadPoolExecutor(1) as pool, local.locked():
        holder = store.replica.clock_holder
        assert holder is not None
        pool.submit(store.is_current, before).result()
        assert store.replica.clock_holder == holder
    store.is_current(before)
    assert store.replica.clock_holder is None


def test_a_listener_gets_webhooks_of_another_server(first: Sandbox, second: Sandbox) -> None:
    """A listener at one server gets the webhooks of the other; its server records the shop's response."""
    request = {"timeout": 10, "listener": "me", "forward_to": "http://localhost:3000/webhook"}
    assert second.post("/control/listener/next/", {**request, "timeout": 0}).json()["items"] == []
    order = first.place(by("bank-transfer"))
    (offer,) = second.post("/control/listener/next/", request).json()["items"]
    assert offer["order_id"] == order["id"]
    recorded = second.post("/control/listener/answers/", {"id": offer["id"], "status": 200})
    assert recorded.json() == {"recorded": True}
    (webhook,) = first.get("/control/webhooks/").json()["items"]
    assert webhook["state"] == "delivered"
