"""Interception of a shop's calls to a built-in address of the provider."""

from pathlib import Path

import pytest
import requests
import urllib3

from payment_sandbox.testing.clients.guard import AddressIntercepted
from payment_sandbox.testing.project_fixture import PaymentSandbox
from payment_sandbox.testing.servers import PaymentSandboxServer
from tests.support.in_process import ORDER
from tests.support.suites import passed, suite
from tests.testing.clients import ALL_CLIENTS, CLIENTS, Client, Sent, by_httpx, by_requests, by_urllib_request

PROVIDER = "https://api.provider.example"
CREATE = f"{PROVIDER}/v1/orders/"


def create(key: str, client: Client = by_requests) -> int:
    """Create an order; return the status of the response."""
    return client(Sent("POST", CREATE, key, ORDER))[0]


@pytest.mark.parametrize("client", ALL_CLIENTS.values(), ids=ALL_CLIENTS)
def test_calls_to_the_provider_reach_the_sandbox(payment_sandbox: PaymentSandbox, client: Client) -> None:
    """Calls by each library are intercepted, and the timeline reports a wrong key."""
    payment_sandbox.intercept(PROVIDER)
    assert create(payment_sandbox.api_key, client) == 201
    (entry,) = payment_sandbox.client.journal()
    assert (entry["method"], entry["path"], entry["status"]) == ("POST", "/v1/orders/", 201)
    assert create("pk_live_of-somebody-else", client) == 401
    timeline = payment_sandbox.timeline()
    assert (
        "POST /v1/orders/ for api.provider.example -> 401: the API key pk_l*** belongs to no project"
        in timeline
    )
    assert "somebody-else" not in timeline
    payment_sandbox.client.reset()
    assert "no call with" not in payment_sandbox.timeline(), "the shop uses the right address"


def test_a_project_with_a_key_of_its_own(payment_sandbox_server: PaymentSandboxServer) -> None:
    """Only one project at a time may have a given key."""
    for _ in range(2):
        with payment_sandbox_server.project(api_key="live-key") as project:
            assert project.api_key == "live-key"
            project.intercept(PROVIDER)
            assert create("live-key") == 201
            with pytest.raises(ValueError, match="another project uses this key"):
                payment_sandbox_server.project(api_key="live-key")


def test_the_shop_s_retries_and_sessions_work(payment_sandbox: PaymentSandbox) -> None:
    """Retries and sessions work, as the interception replaces connections of urllib3 only."""
    payment_sandbox.intercept(PROVIDER)
    payment_sandbox.client.faults([{"when": {"nth": 1}, "then": {"status": 503}}])
    with requests.Session() as session:
        session.auth = (payment_sandbox.api_key, "")
        retry = urllib3.Retry(2, status_forcelist=[503], allowed_methods=None, backoff_factor=0)
        session.mount("https://", requests.adapters.HTTPAdapter(max_retries=retry))
        assert session.post(CREATE, json=ORDER).status_code == 201
        assert session.get(f"{CREATE}nothing/").status_code == 404
    assert [entry["status"] for entry in payment_sandbox.client.journal()] == [503, 201, 404]


def test_rejected_requests_are_masked_and_reported_to_their_test_only(
    payment_sandbox_server: PaymentSandboxServer,
) -> None:
    """A rejected request is masked, and later projects do not report it."""
    with payment_sandbox_server.project() as first:
        first.intercept(PROVIDER)
        requests.get(f"{CREATE}x/?card=4111111111111111&cvc=123", auth=("foreign-key-12345", ""))
        timeline = first.timeline()
        assert "the API key fore*** belongs to no project" in timeline
        assert "4111111111111111" not in timeline
        assert "foreign-key" not in timeline
        with payment_sandbox_server.project() as second:
            second.intercept(PROVIDER)
            assert "fore***" not in second.timeline()


def test_a_payment_page_opens_over_https(payment_sandbox: PaymentSandbox) -> None:
    """A payment address has no scheme, so the shop uses that of the provider's address."""
    payment_sandbox.intercept(PROVIDER)
    order = requests.post(CREATE, json=ORDER, auth=(payment_sandbox.api_key, "")).json()
    url = f"https://{order['transactions'][0]['payment_url']}"
    for client in CLIENTS.values():
        for through in (None, payment_sandbox):
            status, page = client(Sent("GET", url, "", through=through))
            assert (status, b"12.95" in page) == (200, True)


def test_keys_and_paths_select_projects_and_blocks_end(payment_sandbox_server: PaymentSandboxServer) -> None:
    """At one address, the key and the more specific path select; each interception ends by itself."""
    with payment_sandbox_server.project() as first:
        first.intercept(PROVIDER)
        with payment_sandbox_server.project() as second:
            second.intercept(PROVIDER, f"{PROVIDER}/eu", "http://localhost:9911/payments/")
            assert create(second.api_key) == create(first.api_key, by_httpx) == 201
            assert len(first.client.journal()) == len(second.client.journal()) == 1
            auth = (second.api_key, "")
            for address in (f"{PROVIDER}/eu", "http://localhost:9911/payments"):
                assert requests.post(f"{address}/v1/orders/?a=b", json=ORDER, auth=auth).status_code == 201
            assert requests.post(f"{PROVIDER}/europe/v1/orders/", json=ORDER, auth=auth).status_code == 404
            assert "paths begin with /v1/" in second.timeline()
            with pytest.raises(requests.ConnectionError):
                requests.get("http://localhost:9912/payments/v1/orders/")
        with first.intercept("http://127.0.0.1:11"):
            assert requests.get("http://127.0.0.1:11/v1/orders/x/").status_code == 401
        with pytest.raises(AddressIntercepted):
            requests.get("http://127.0.0.1:11/v1/orders/x/")
        assert create(first.api_key) == 201, "it is still intercepted"


def test_a_key_that_is_built_in(payment_sandbox: PaymentSandbox) -> None:
    """Calls with the built-in key and with the project's own key reach the project."""
    payment_sandbox.intercept(PROVIDER, key="live-key")
    keys = ("live-key", payment_sandbox.api_key, "another")
    for client in (by_httpx, by_requests, by_urllib_request):
        assert [create(key, client) for key in keys] == [201, 201, 401]
    assert len(payment_sandbox.client.journal()) == 6
    assert "live-key" not in payment_sandbox.timeline()


MARKED = """
@pytest.mark.payment_intercept("https://one.example", "https://two.example")
def test_marked(payment_sandbox):
    for url in ("https://one.example", "https://two.example", "https://of-the-suite.example"):
        answer = requests.post(f"{url}/v1/orders/", json=ORDER, auth=(payment_sandbox.api_key, ""))
        assert answer.status_code == 201


def test_fails(payment_sandbox):
    requests.post("https://of-the-suite.example/v1/orders/", json=ORDER, auth=("built-in", ""))
    assert False

import unittest
from payment_sandbox import PaymentSandboxMixin

def status(url, key=""):
    return requests.get(f"{url}/v1/orders/nothing/", auth=(key, "")).status_code

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
"""


def test_markers_and_an_ini_option(tmp_path: Path) -> None:
    """Markers, an ini option and a class's attributes add up for functions, methods of a TestCase and setUp."""
    (tmp_path / "pytest.ini").write_text("[pytest]\npayment_intercept =\n    https://of-the-suite.example\n")
    result = suite(tmp_path, MARKED)
    assert "1 failed, 2 passed" in result.stdout, result.stdout
    wrong_key = "the API key buil*** belongs to no project; the shop needs payment_sandbox.api_key"
    assert wrong_key in result.stdout, "in the report of the failure"


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
    with payment_sandbox.intercept(payment_sandbox.base_url):
        assert urllib3.request("GET", url, headers=headers).status == 200
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
    """A suite works with pytest-socket, and a test with permission finds the server listening."""
    passed(suite(tmp_path, WITHOUT_SOCKETS, "--disable-socket"), 4)


LATE = """
import sys

def test_nothing_is_imported_for_it(payment_sandbox):
    payment_sandbox.intercept("https://api.provider.example")
    assert not {"httpx", "httpx2"} & set(sys.modules)
    import httpx
    import httpx2
    for library in (httpx, httpx2):
        answer = library.post("https://api.provider.example/v1/orders/", json=ORDER, auth=(payment_sandbox.api_key, ""))
        assert answer.status_code == 201
    payment_sandbox.close()
    with pytest.raises(RuntimeError, match="test_nothing_is_imported_for_it"):
        httpx.get("https://api.provider.example/v1/orders/")

def test_once_more(payment_sandbox):
    payment_sandbox.intercept("https://api.provider.example")
    import httpx
    answer = httpx.post("https://api.provider.example/v1/orders/", json=ORDER, auth=(payment_sandbox.api_key, ""))
    assert answer.status_code == 201
"""


def test_libraries_that_are_imported_later(tmp_path: Path) -> None:
    """An interception does not import libraries, and hooks those that are imported later."""
    passed(suite(tmp_path, LATE, "-p", "no:socket"), 2)
