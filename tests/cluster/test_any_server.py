"""Any server takes any request: it answers as the one that owns the project does."""

import asyncio
import socket
import ssl
from base64 import b64encode
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Thread
from unittest.mock import MagicMock

import pytest
import requests
import trustme

from payment_sandbox.client.client import SandboxClient
from payment_sandbox.projects.registry import FIRST_API_KEY, FIRST_PROJECT_ID
from payment_sandbox.serving.forwarding import Forwarder, Unsent
from payment_sandbox.serving.server import Security
from payment_sandbox.serving.tls import fingerprint
from payment_sandbox.serving.wsgi import Request
from payment_sandbox.storage.postgresql import Address
from payment_sandbox.web.bodies import BODY_BYTES_MAX
from tests.cluster.conftest import Company
from tests.support.driver import Sandbox, card
from tests.support.postgres import needs_postgres

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
        ("GET", "/control/journal/?limit=2"),
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
    kept = [{name: value for name, value in each.headers.items() if name != "date"} for each in (one, other)]
    assert kept[0] == kept[1]


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
    return b"\r\n".join(line for line in lines if not line.startswith(b"date:"))


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


def test_nobody_from_outside_is_taken_for_a_server(company: Company, first: Sandbox) -> None:
    """The header of a forwarded request means nothing without the secret that servers share."""
    project_id = first.project["project_id"]
    for forged, shown in (("guessed;9;https;1;10.0.0.1", 200), (f"{secret_of(company)};99;https;1;x", 503)):
        url = f"{company.servers[1].local_url}/dashboard/{project_id}/settings/"
        assert requests.get(url, headers={"Sandbox-Forwarded": forged}, timeout=9).status_code == shown


def test_servers_with_certificates_speak_tls_with_each_other(company: Company, tmp_path: Path) -> None:
    """Nothing is sent to whoever shows another certificate than the one that stands in the database."""
    company.end_all()
    issuer, trusted = trustme.CA(), tmp_path / "ca.pem"
    issuer.cert_pem.write_to_path(trusted)
    tls = [ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER) for _ in range(2)]
    for context in tls:
        issuer.issue_cert("127.0.0.1").configure_cert(context)
    session = requests.Session()
    session.trust_env, session.verify = False, str(trusted)
    first = Sandbox(company.begin(Security(tls[0])), session)
    order = first.place(card())
    second = company.at(company.begin(Security(tls[1])), first)
    path = f"/v1/orders/{order['id']}/"
    assert second.get(path).json() == first.get(path).json() == order
    assert {fingerprint(context) for context in tls} == {one for (one,) in company.execute(FINGERPRINTS)}
    owner = company.servers[0].local_url
    with ThreadPoolExecutor(1) as pool:  # a browser may have a loop on this thread
        pool.submit(asyncio.run, ask(Address(owner, fingerprint(tls[0])))).result(20)
        with pytest.raises(Unsent):
            pool.submit(asyncio.run, ask(Address(owner, fingerprint(tls[1])))).result(20)


FINGERPRINTS = "SELECT fingerprint FROM sandbox_server"


async def ask(address: Address) -> None:
    """Pass a request on to a server."""
    forwarder = Forwarder(asyncio.get_running_loop())
    try:
        await forwarder.forward(
            Request("GET", b"/health/", "1.1", [], b"", 0),
            b"",
            address,
            MagicMock(),
            lambda: True,
        )
    finally:
        await forwarder.close()


def secret_of(company: Company) -> object:
    """What the servers share."""
    ((secret,),) = company.execute("SELECT body FROM sandbox_value WHERE name = 'secret'")
    return secret


def test_the_servers_of_a_sandbox(company: Company, first: Sandbox) -> None:
    """Each lists both, with what they have."""
    for server in company.servers:
        listed = SandboxClient(server.local_url, first.key).servers()
        assert {each["url"]: each["projects"] for each in listed} == {
            company.servers[0].local_url: 2,
            company.servers[1].local_url: 0,
        }
        assert {each["status"] for each in listed} == {"ok"}


def test_what_a_server_did(first: Sandbox, second: Sandbox) -> None:
    """As a scraper reads it: each server counts its own calls, commits and webhooks."""
    first.place(card())
    second.get("/v1/orders/nope/")
    texts = [requests.get(f"{each.url}/metrics", timeout=9).text for each in (first, second)]
    assert 'sandbox_calls_total{status="404"} 1.0' in texts[1]
    assert "sandbox_projects 2.0" in texts[0]
    assert "sandbox_projects 0.0" in texts[1]
    assert "sandbox_commits_total 0.0" not in texts[0]
    assert "sandbox_commits_total 0.0" in texts[1]
    assert "sandbox_call_seconds_count" in texts[0]
