"""A shop whose client has the provider's address built in."""

import asyncio
import http.client
import json
import re
import urllib.error
import urllib.request
from base64 import b64encode
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import aiohttp
import httpx
import httpx2
import pytest
import requests
import urllib3

from payment_sandbox.testing.project import PaymentSandbox
from payment_sandbox.testing.servers import PaymentSandboxServer
from tests.support.in_process import ORDER
from tests.support.suites import passed, suite

PROVIDER = "https://api.provider.example"
CREATE = f"{PROVIDER}/v1/orders/"


def authorized(key: str) -> dict[str, str]:
    """The headers of a creation."""
    encoded = b64encode(f"{key}:".encode()).decode()
    return {"Authorization": f"Basic {encoded}", "Content-Type": "application/json"}


def by_requests(key: str) -> int:
    """requests."""
    return requests.post(CREATE, json=ORDER, auth=(key, ""), timeout=5).status_code


def by_httpx(key: str) -> int:
    """httpx."""
    return httpx.post(CREATE, json=ORDER, auth=(key, "")).status_code


def by_httpx2(key: str) -> int:
    """The successor of httpx."""
    return httpx2.post(CREATE, json=ORDER, auth=(key, "")).status_code


def by_async_httpx(key: str) -> int:
    """httpx on an event loop."""

    async def post() -> int:
        async with httpx.AsyncClient() as client:
            return (await client.post(CREATE, json=ORDER, auth=(key, ""))).status_code

    with ThreadPoolExecutor(1) as thread:  # Playwright leaves a loop on that of the tests
        return thread.submit(asyncio.run, post()).result()


def by_urllib3(key: str) -> int:
    """urllib3."""
    manager = urllib3.PoolManager()
    return manager.request("POST", CREATE, body=json.dumps(ORDER), headers=authorized(key)).status


def by_http_client(key: str) -> int:
    """The standard library."""
    connection = http.client.HTTPSConnection("api.provider.example")
    connection.request("POST", "/v1/orders/", json.dumps(ORDER), authorized(key))
    status = connection.getresponse().status
    connection.close()
    return status


def by_urllib_request(key: str) -> int:
    """The standard library's openers."""
    asked = urllib.request.Request(CREATE, json.dumps(ORDER).encode(), authorized(key))
    try:
        with urllib.request.urlopen(asked, timeout=5) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as refused:
        with refused:
            return refused.code


WAYS: list[Callable[[str], int]] = [
    by_requests,
    by_httpx,
    by_httpx2,
    by_async_httpx,
    by_urllib3,
    by_http_client,
    by_urllib_request,
]


def test_the_client_of_aiohttp_is_refused_by_name(payment_sandbox: PaymentSandbox) -> None:
    """It must not reach the provider; other addresses are its own, and so is this one afterwards."""

    async def get(url: str) -> int:
        async with aiohttp.ClientSession() as session, session.get(url) as answer:
            return answer.status

    def ask(url: str) -> int:
        with ThreadPoolExecutor(1) as thread:
            return thread.submit(asyncio.run, get(url)).result()

    before = aiohttp.BaseConnector.connect
    payment_sandbox.intercept(PROVIDER)
    with pytest.raises(
        RuntimeError, match="aiohttp's client cannot be intercepted, so the request to https://api"
    ):
        ask(CREATE)
    assert ask(f"{payment_sandbox.base_url}/v1/orders/x/") == 401
    payment_sandbox.close()
    assert aiohttp.BaseConnector.connect is before


@pytest.mark.parametrize("create", WAYS)
def test_what_is_sent_to_the_provider_comes_here(
    payment_sandbox: PaymentSandbox, create: Callable[[str], int]
) -> None:
    """With TLS, by each library; a wrong key is told in the report."""
    payment_sandbox.intercept(PROVIDER)
    assert create(payment_sandbox.api_key) == 201
    (entry,) = payment_sandbox.client.journal()
    assert (entry["method"], entry["path"], entry["status"]) == ("POST", "/v1/orders/", 201)
    assert create("pk_live_of-somebody-else") == 401
    told = payment_sandbox.timeline()
    assert (
        "POST /v1/orders/ for api.provider.example -> 401: the API key pk_l*** belongs to no project" in told
    )
    assert "somebody-else" not in told
    payment_sandbox.client.reset()
    assert "no call with" not in payment_sandbox.timeline(), "the shop's address is right"


def pages_by(client: str, sandbox: PaymentSandbox) -> tuple[int, str]:
    """Open the payment page of a new order over https, as a shop does whose client calls an https address."""
    order = requests.post(CREATE, json=ORDER, auth=(sandbox.api_key, ""), timeout=5).json()
    url = f"https://{order['transactions'][0]['payment_url']}"
    clients: dict[str, Callable[[], requests.Response | httpx.Response]] = {
        "requests": lambda: requests.get(url, timeout=5),
        "session": lambda: sandbox.session.get(url, timeout=5),
        "httpx": lambda: httpx.get(url, follow_redirects=True),
        "transport": lambda: httpx.Client(transport=sandbox.httpx_transport, follow_redirects=True).get(url),
    }
    if client == "pool":
        answer = sandbox.pool_manager.request("GET", url)
        return answer.status, answer.data.decode()
    page = clients[client]()
    return page.status_code, page.text


@pytest.mark.parametrize("client", ["requests", "session", "httpx", "transport", "pool"])
def test_a_payment_page_opens_over_https(payment_sandbox: PaymentSandbox, client: str) -> None:
    """A payment address has no scheme, so the shop uses that of the provider's address."""
    payment_sandbox.intercept(PROVIDER)
    status, page = pages_by(client, payment_sandbox)
    assert status == 200
    assert "12.95" in page
    assert "opens the payment page" in payment_sandbox.timeline() or "visit" in payment_sandbox.timeline()


def test_the_key_selects_the_project(payment_sandbox_server: PaymentSandboxServer) -> None:
    """Of several on one address; the last one takes the hooks away."""
    before = (http.client.HTTPConnection.connect, httpx.HTTPTransport.handle_request)
    with payment_sandbox_server.project() as one:
        one.intercept(PROVIDER)
        with payment_sandbox_server.project() as other:
            other.intercept(PROVIDER)
            assert by_requests(other.api_key) == by_httpx(one.api_key) == 201
            assert len(one.client.journal()) == len(other.client.journal()) == 1
        assert by_requests(one.api_key) == 201, "it is still intercepted"
        assert http.client.HTTPConnection.connect is not before[0]
    assert (http.client.HTTPConnection.connect, httpx.HTTPTransport.handle_request) == before


@pytest.mark.parametrize("send", [by_requests, by_httpx])
def test_a_key_that_is_built_in(payment_sandbox: PaymentSandbox, send: Callable[[str], int]) -> None:
    """Comes to this project; the project's own key does so, too."""
    payment_sandbox.intercept(PROVIDER, key="live-key")
    assert [send(key) for key in ("live-key", payment_sandbox.api_key, "another")] == [201, 201, 401]
    assert len(payment_sandbox.client.journal()) == 2
    assert "live-key" not in payment_sandbox.timeline()


def test_a_project_with_a_key_of_its_own(payment_sandbox_server: PaymentSandboxServer) -> None:
    """One after the other; not two at a time."""
    for _ in range(2):
        with payment_sandbox_server.project(api_key="live-key") as project:
            assert project.api_key == "live-key"
            project.intercept(PROVIDER)
            assert by_requests("live-key") == 201
            with pytest.raises(ValueError, match="another project uses this key"):
                payment_sandbox_server.project(api_key="live-key")


def test_the_address_may_have_a_path_and_a_port(payment_sandbox: PaymentSandbox) -> None:
    """And other addresses are left alone."""
    payment_sandbox.intercept("http://localhost:9911/payments/", "https://other.example")
    answer = requests.post(
        "http://localhost:9911/payments/v1/orders/?a=b",
        json=ORDER,
        auth=(payment_sandbox.api_key, ""),
        timeout=5,
    )
    assert answer.status_code == 201
    with pytest.raises(requests.ConnectionError):
        requests.get("http://localhost:9912/payments/v1/orders/", timeout=5)


def test_the_shop_s_retries_and_sessions_work(payment_sandbox: PaymentSandbox) -> None:
    """It is urllib3 that is answered, and not requests that is replaced."""
    payment_sandbox.intercept(PROVIDER)
    payment_sandbox.client.faults([{"when": {"nth": 1}, "then": {"status": 503}}])
    with requests.Session() as session:
        session.auth = (payment_sandbox.api_key, "")
        retry = urllib3.Retry(2, status_forcelist=[503], allowed_methods=None, backoff_factor=0)
        session.mount("https://", requests.adapters.HTTPAdapter(max_retries=retry))
        assert session.post(CREATE, json=ORDER).status_code == 201
        assert session.get(f"{CREATE}nothing/").status_code == 404
    assert [entry["status"] for entry in payment_sandbox.client.journal()] == [503, 201, 404]


@pytest.mark.parametrize(
    "url",
    ["api.provider.example", "ftp://api.provider.example", "https://", "https://api.example:99999", None],
)
def test_an_address_that_is_none(payment_sandbox: PaymentSandbox, url: object) -> None:
    """Is refused with an example."""
    with pytest.raises(ValueError, match=re.escape(f"such as {PROVIDER}, with its scheme")):
        payment_sandbox.intercept(url)  # type: ignore[arg-type]


MARKED = """
@pytest.mark.payment_intercept("https://one.example", "https://two.example")
def test_without_the_fixture():
    for url in ("https://one.example", "https://three.example"):
        assert requests.post(f"{url}/v1/orders/", json=ORDER).status_code == 401


@pytest.mark.payment_intercept("https://one.example", "https://two.example")
def test_marked(payment_sandbox):
    for url in ("https://one.example", "https://two.example", "https://three.example"):
        answer = requests.post(f"{url}/v1/orders/", json=ORDER, auth=(payment_sandbox.api_key, ""))
        assert answer.status_code == 201


def test_fails(payment_sandbox):
    requests.post("https://three.example/v1/orders/", json=ORDER, auth=("built-in", ""))
    assert False
"""


def test_a_marker_and_an_ini_option(tmp_path: Path) -> None:
    """Both count; the report of a failure tells a wrong key."""
    (tmp_path / "pytest.ini").write_text("[pytest]\npayment_intercept =\n    https://three.example\n")
    ran = suite(tmp_path, MARKED)
    assert "1 failed, 2 passed" in ran.stdout
    assert "the API key buil*** belongs to no project; the shop needs payment_sandbox.api_key" in ran.stdout


OF_TEST_CASES = """
import unittest
import requests
from payment_sandbox import PaymentSandboxMixin

def status(url, key=""):
    return requests.get(f"{url}/v1/orders/nothing/", auth=(key, "")).status_code

class TestPlain(unittest.TestCase):
    def setUp(self):
        assert status("https://of-the-suite.example") == 401

    @pytest.mark.payment_intercept("https://one.example")
    def test_marked(self):
        assert status("https://one.example") == status("https://of-the-suite.example") == 401

    def test_of_the_suite(self):
        assert status("https://of-the-suite.example") == 401

@pytest.mark.payment_intercept("https://one.example", key="built-in")
@pytest.mark.payment_settings(name="mine")
@pytest.mark.payment_scenario("webhook-twice")
class TestMixed(PaymentSandboxMixin, unittest.TestCase):
    payment_intercept = "https://two.example"
    payment_settings = {"name": "theirs"}

    def test_one_project(self):
        for url in ("https://one.example", "https://two.example", "https://of-the-suite.example"):
            assert status(url, self.payment_sandbox.api_key) == 404
        assert status("https://one.example", "built-in") == 404
        assert len(self.payment_sandbox.client.journal()) == 4
        project = self.payment_sandbox.client.project()
        assert (project["settings"]["name"], project["scenario"]) == ("mine", "webhook-twice")

@pytest.mark.parametrize("number", [1, 2])
def test_numbered(number):
    assert status("https://of-the-suite.example") == 401
"""


def test_methods_of_a_test_case(tmp_path: Path) -> None:
    """Their requests come to the sandbox as those of functions do, already in setUp."""
    (tmp_path / "pytest.ini").write_text("[pytest]\npayment_intercept =\n    https://of-the-suite.example\n")
    passed(suite(tmp_path, OF_TEST_CASES), 5)


WITHOUT_SOCKETS = """
import httpx
import pytest_socket
import socket
import urllib3

def test_none_can_be_opened(payment_sandbox):
    with pytest.raises(pytest_socket.SocketBlockedError):
        socket.socket()

def test_all_that_needs_none(payment_sandbox, shop):
    order = place(payment_sandbox)
    payment_sandbox.act(order["id"])
    assert shop.known[-1] == "completed"
    payment_sandbox.clock.advance("P1D")
    url = f"{payment_sandbox.base_url}/v1/orders/{order['id']}/"
    auth = (payment_sandbox.api_key, "")
    assert httpx.Client(transport=payment_sandbox.httpx_transport).get(url, auth=auth).status_code == 200
    headers = urllib3.make_headers(basic_auth=f"{payment_sandbox.api_key}:")
    assert payment_sandbox.pool_manager.request("GET", url, headers=headers).status == 200
    page = payment_sandbox.session.get(f"http://{order['transactions'][0]['payment_url']}")
    assert page.status_code == 200
    assert payment_sandbox.review() == []

@pytest.mark.payment_intercept("https://api.provider.example")
def test_an_interception(payment_sandbox):
    url = "https://api.provider.example/v1/orders/"
    assert requests.post(url, json=ORDER, auth=(payment_sandbox.api_key, "")).status_code == 201
    assert httpx.post(url, json=ORDER, auth=(payment_sandbox.api_key, "")).status_code == 201

@pytest.mark.enable_socket
def test_that_is_allowed_to(payment_sandbox):
    url = f"{payment_sandbox.base_url}/v1/orders/"
    assert requests.post(url, json=ORDER, auth=(payment_sandbox.api_key, "")).status_code == 201
"""


def test_a_suite_that_may_open_no_sockets(tmp_path: Path) -> None:
    """With pytest-socket; a test that may open one finds the server listening."""
    passed(suite(tmp_path, WITHOUT_SOCKETS, "--disable-socket"), 4)
