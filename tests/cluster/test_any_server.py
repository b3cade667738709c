"""Any server takes any request: it answers as the one that owns the project does."""

import socket
from base64 import b64encode
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from threading import Event, Thread

import pytest
import requests

from payment_sandbox.client.client import SandboxClient
from payment_sandbox.operations.advance import stop_advance
from payment_sandbox.projects.registry import FIRST_API_KEY, FIRST_PROJECT_ID
from payment_sandbox.web.bodies import BODY_BYTES_MAX
from payment_sandbox_company.cluster import storage_of
from tests.cluster.conftest import Company
from tests.support.driver import Sandbox, by, card
from tests.support.postgres import needs_postgres
from tests.support.shop import Shop

pytestmark = needs_postgres


def test_an_order_is_the_same_everywhere(first: Sandbox, second: Sandbox) -> None:
    """Created at one server, changed at the other, read at both."""
    order = second.place(card())
    first.acted(order, "customer pay")
    assert first.read(order) == second.read(order)
    assert second.status(order) == ("completed", "completed")


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/v1/orders/nope/"),
        ("GET", "/v1/nope/"),
        ("POST", "/v1/orders/"),
        ("DELETE", "/v1/orders/"),
        ("GET", "/control/settings/nope/"),
        ("GET", "/control/state/"),
        ("HEAD", "/control/clock/"),
        ("BREW", "/v1/orders/"),
    ],
)
def test_answers_are_equal_to_the_byte(first: Sandbox, second: Sandbox, method: str, path: str) -> None:
    """Refusals, large ones, streams and those without a body; only the date may differ."""
    first.place(card())
    one, other = (each.http.request(method, each.url + path, auth=(each.key, "")) for each in (first, second))
    assert (one.status_code, one.content) == (other.status_code, other.content)
    kept = [{name: value for name, value in each.headers.items() if name != "Date"} for each in (one, other)]
    assert kept[0] == kept[1]


def test_the_journal_reaches_each_server(first: Sandbox, second: Sandbox) -> None:
    """A record is written a moment after its call; from then on, both servers show the same."""
    order = first.place(card())
    path = f"/control/journal/?order_id={order['id']}"
    for _ in range(200):
        if second.get(path).json()["items"]:
            break
        Event().wait(0.05)
    one, other = first.get(path).json(), second.get(path).json()
    assert one["items"] == other["items"] != []


def test_a_body_over_the_limit_is_refused_by_the_owner(second: Sandbox) -> None:
    """Although the other server keeps only a part of it."""
    answer = second.call("POST", "/v1/orders/", data=b" " * (BODY_BYTES_MAX + 9), headers=JSON)
    assert answer.status_code == 413


JSON = {"Content-Type": "application/json"}


def test_pages_and_their_forms(company: Company, first: Sandbox, second: Sandbox) -> None:
    """A customer opens the payment page at any server, and pays at another."""
    order = first.place(expiration_period="P1D")
    project_id = first.project["project_id"]
    page = second.http.get(f"{second.url}/pay/{project_id}/{order['id']}/")
    assert page.status_code == 200
    assert "credit" in page.text.lower()
    board = second.http.get(f"{second.url}/dashboard/{project_id}/orders/{order['id']}/")
    assert board.status_code == 200
    token = board.text.partition('name="token" value="')[2].partition('"')[0]
    moved = first.http.post(
        f"{first.url}/dashboard/{project_id}/clock/",
        data={"token": token, "by": "P1D"},
        allow_redirects=False,
    )
    assert moved.status_code in (302, 303), moved.text


def test_events_stream_through_another_server(first: Sandbox, second: Sandbox) -> None:
    """They come when they happen, not when the stream ends."""
    url, auth = f"{second.url}/control/events/", (second.key, "")
    with second.http.get(url, auth=auth, stream=True, timeout=10) as stream:
        lines = stream.iter_lines(chunk_size=1)
        assert next(lines).startswith(b": ")
        first.place(card())
        assert any(line == b"event: request" for line in lines)


def test_a_wait_at_one_server_hears_of_a_change_at_the_other(first: Sandbox, second: Sandbox) -> None:
    """It holds nothing up meanwhile."""
    order = first.place(card())
    answers: list[int] = []
    path = f"/control/wait/?order_id={order['id']}&status=completed&timeout=20"
    waiting = Thread(target=lambda: answers.append(second.get(path).status_code))
    waiting.start()
    first.acted(order, "customer pay")
    waiting.join(20)
    assert answers == [200]


@pytest.mark.parametrize("then", [{"reset": True}, {"truncate": True}, {"status": 503}])
def test_faults_come_through(first: Sandbox, second: Sandbox, then: dict[str, object]) -> None:
    """What a client sees of a fault is the same at each server."""
    outcomes = []
    for sandbox in (first, second):
        answer = first.put("/control/faults/", {"faults": [{"when": {"method": "GET"}, "then": then}]})
        assert answer.status_code == 200, answer.text
        outcomes.append(_raw(sandbox, "/v1/orders/x/"))
    first.put("/control/faults/", {"faults": []})
    assert outcomes[0] == outcomes[1]


def _raw(sandbox: Sandbox, path: str) -> bytes:
    """What comes over the wire until the connection ends, without its date."""
    host, _, port = sandbox.url.partition("://")[2].partition(":")
    key = b64encode(f"{sandbox.key}:".encode()).decode()
    with socket.create_connection((host, int(port)), timeout=10) as opened:
        opened.sendall(
            f"GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Basic {key}\r\n\r\n".encode()
        )
        pieces = []
        try:
            while piece := opened.recv(4096):
                pieces.append(piece)
        except ConnectionResetError:
            pieces.append(b"(reset)")
    lines = b"".join(pieces).split(b"\r\n")
    return b"\r\n".join(line for line in lines if not line.startswith(b"Date:"))


def test_projects_are_one_list(company: Company, first: Sandbox) -> None:
    """Each server lists all, and the first one has the same key and id at each."""
    lists = [requests.get(f"{server.url}/control/projects/", timeout=9).json() for server in company.servers]
    ids = [[each["project_id"] for each in listed["items"]] for listed in lists]
    assert ids == [[FIRST_PROJECT_ID, first.project["project_id"]]] * 2
    for server in company.servers:
        assert requests.get(f"{server.url}/control/project/", auth=(FIRST_API_KEY, ""), timeout=9).ok


def test_a_project_is_deleted_everywhere(first: Sandbox, second: Sandbox) -> None:
    """Its key works at no server."""
    assert second.delete("/control/project/").status_code == 200
    assert [each.get("/control/clock/").status_code for each in (first, second)] == [401, 401]


def test_the_servers_of_a_sandbox(company: Company, first: Sandbox) -> None:
    """Each lists both."""
    for server in company.servers:
        listed = SandboxClient(server.local_url, first.key).servers()
        assert {each["url"] for each in listed} == {each.local_url for each in company.servers}
        assert {each["status"] for each in listed} == {"ok"}


def test_what_a_server_did(first: Sandbox, second: Sandbox) -> None:
    """As a scraper reads it: each server counts its own calls, commits and webhooks."""
    first.place(card())
    second.get("/v1/orders/nope/")
    texts = [requests.get(f"{each.url}/metrics", timeout=9).text for each in (first, second)]
    assert 'sandbox_calls_total{status="404"} 1.0' in texts[1]
    assert "sandbox_commits_total 0.0" not in texts[0]
    assert "sandbox_commits_total 0.0" in texts[1]
    assert "sandbox_call_seconds_count" in texts[0]


def test_a_call_that_is_asked_for_again_at_another_server(first: Sandbox, second: Sandbox) -> None:
    """It has happened once, and both are answered alike."""
    body, key = {"currency": "EUR", "amount": 1295}, {"Idempotency-Key": "order 17"}
    made = [each.post("/v1/orders/", body, headers=key) for each in (first, second, first)]
    assert [answer.status_code for answer in made] == [201] * 3
    assert len({answer.content for answer in made}) == 1
    assert len(second.get("/control/orders/").json()["items"]) == 1
    assert second.post("/v1/orders/", {**body, "amount": 5}, headers=key).status_code == 409


def test_calls_at_the_same_time_with_the_same_key(first: Sandbox, second: Sandbox) -> None:
    """One of them happens; the other is told so, or to ask again."""
    body, key = {"currency": "EUR", "amount": 1295}, {"Idempotency-Key": "order 18"}
    with ThreadPoolExecutor(8) as pool:
        calls = [pool.submit(each.post, "/v1/orders/", body, headers=key) for each in (first, second) * 4]
        answers = [call.result() for call in calls]
    assert {answer.status_code for answer in answers} <= {201, 503}
    assert len({answer.content for answer in answers if answer.status_code == 201}) == 1
    assert len(second.get("/control/orders/").json()["items"]) == 1


def test_an_advance_is_stopped_at_another_server(company: Company, first: Sandbox, second: Sandbox) -> None:
    """It ends where it is, and says so."""
    with closing(Shop()) as shop, ThreadPoolExecutor(1) as pool:
        first.patch("/control/project/", {"webhook_url": shop.url})
        seen, go_on = Event(), Event()

        def answer(received: object) -> int:
            seen.set()
            go_on.wait(10)
            return 200

        first.place(card())
        first.place(
            card(), expiration_period="P30D"
        )  # without it, the advance may be over before it is stopped
        shop.answer = answer
        moving = pool.submit(first.post, "/control/clock/advance/", {"by": "P60D"})
        assert seen.wait(10)
        project = company.registry(1).find_by_id(first.project["project_id"])
        assert project is not None
        assert stop_advance(project)
        go_on.set()
        assert moving.result(20).json()["stopped"]
        later = company.registry(1).find_by_id(project.project_id)
        assert later is project
        assert not stop_advance(later)


def test_an_edit_is_not_misled_by_what_was_read_before(company: Company, first: Sandbox) -> None:
    """The row that it has locked says who advances the clock, and not an answer that comes late."""
    here, there = (company.registry(number).find_by_id(first.project["project_id"]) for number in range(2))
    assert here is not None
    assert there is not None
    storage = storage_of(here)
    before = company.registry(0).database.head(here.project_id)
    assert before is not None
    assert there.hold_clock()
    with ThreadPoolExecutor(1) as pool, here.locked():
        holder = storage.place.clock_holder
        assert holder is not None
        pool.submit(storage.is_current, here, before).result()
        assert storage.place.clock_holder == holder
    storage.is_current(here, before)
    assert storage.place.clock_holder is None


def test_a_listener_gets_webhooks_of_another_server(first: Sandbox, second: Sandbox) -> None:
    """The server that it calls takes them over, and records what the shop has answered."""
    asked = {"timeout": 10, "listener": "me", "forward_to": "http://localhost:3000/webhook"}
    assert second.post("/control/listener/next/", {**asked, "timeout": 0}).json()["items"] == []
    order = first.place(by("bank-transfer"))
    (offer,) = second.post("/control/listener/next/", asked).json()["items"]
    assert offer["order_id"] == order["id"]
    answered = second.post("/control/listener/answers/", {"id": offer["id"], "status": 200})
    assert answered.json() == {"recorded": True}
    (webhook,) = first.get("/control/webhooks/").json()["items"]
    assert webhook["state"] == "delivered"
