"""Calls by the shop's HTTP clients reach the sandbox without sockets."""

import asyncio
import json
import socket
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection
from typing import Any

import httpx
import httpx2
import pytest
import requests
import urllib3

from payment_sandbox.testing.clients.memory_socket import MemorySocket
from payment_sandbox.testing.clients.with_urllib3 import LocalTarget
from payment_sandbox.testing.project import PaymentSandbox
from payment_sandbox.testing.servers import PaymentSandboxServer
from tests.support.in_process import ORDER, place, shop_that
from tests.support.wire import NOTICES_SHORT_BODIES

JSON = {"Content-Type": "application/json"}
Client = Callable[[PaymentSandbox, str, str, Any, float], tuple[int, bytes]]


def call_httpx(
    sandbox: PaymentSandbox, method: str, url: str, body: Any, timeout: float
) -> tuple[int, bytes]:
    """Call with httpx, without a socket."""
    with httpx.Client(transport=sandbox.httpx_transport, auth=(sandbox.api_key, "")) as client:
        answer = client.request(method, url, json=body, timeout=timeout)
        return answer.status_code, answer.content


def call_async_httpx(
    sandbox: PaymentSandbox, method: str, url: str, body: Any, timeout: float
) -> tuple[int, bytes]:
    """Call with httpx on an event loop, without a socket."""

    async def call() -> tuple[int, bytes]:
        async with httpx.AsyncClient(transport=sandbox.httpx_transport, auth=(sandbox.api_key, "")) as client:
            answer = await client.request(method, url, json=body, timeout=timeout)
            return answer.status_code, answer.content

    with ThreadPoolExecutor(1) as thread:  # Playwright leaves a loop on the test thread
        return thread.submit(asyncio.run, call()).result()


def call_urllib3(
    sandbox: PaymentSandbox, method: str, url: str, body: Any, timeout: float
) -> tuple[int, bytes]:
    """Call with urllib3, without a socket."""
    headers = {**JSON, **urllib3.make_headers(basic_auth=f"{sandbox.api_key}:")}
    answer = sandbox.pool_manager.request(
        method, url, body=json.dumps(body), headers=headers, timeout=timeout, retries=False
    )
    return answer.status, answer.data


def call_httpx2(
    sandbox: PaymentSandbox, method: str, url: str, body: Any, timeout: float
) -> tuple[int, bytes]:
    """Call with httpx2, without a socket."""
    with httpx2.Client(transport=sandbox.httpx_transport, auth=(sandbox.api_key, "")) as client:
        answer = client.request(method, url, json=body, timeout=timeout)
        return answer.status_code, answer.content


CLIENTS: list[Client] = [call_httpx, call_httpx2, call_async_httpx, call_urllib3]


@pytest.fixture
def no_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fail the test if a socket is connected."""

    def refuse(*arguments: object) -> None:
        raise AssertionError("a socket was connected")

    monkeypatch.setattr(socket.socket, "connect", refuse)


@pytest.mark.usefixtures("no_connections")
@pytest.mark.parametrize("client", CLIENTS)
def test_an_order_is_paid(payment_sandbox: PaymentSandbox, orders: str, client: Client) -> None:
    """Each client creates, reads and refunds an order, and webhooks have arrived when the call returns."""
    notified: list[str] = []
    payment_sandbox.deliver_to(shop_that(notified.append))
    status, body = client(payment_sandbox, "POST", orders, ORDER, 5)
    order_id = json.loads(body)["id"]
    assert status == 201
    payment_sandbox.act(order_id)
    notified.clear()
    status, body = client(payment_sandbox, "POST", f"{orders}{order_id}/refunds/", {"amount": 5}, 5)
    assert (status, len(notified)) == (201, 1)
    status, body = client(payment_sandbox, "GET", f"{orders}{order_id}/", None, 5)
    assert (status, json.loads(body)["status"]) == (200, "completed")
    status, body = client(payment_sandbox, "POST", orders, {"amount": 1.5}, 5)
    assert (status, json.loads(body)["error"]["type"]) == (400, "ValidationError")


FAULTS: list[tuple[dict[str, Any], float, type[Exception], type[Exception]]] = [
    ({"hang": 0.3}, 0.2, httpx.ReadTimeout, urllib3.exceptions.ReadTimeoutError),
    ({"hang": 0.01}, 5, httpx.ReadError, urllib3.exceptions.ProtocolError),
    ({"reset": True}, 5, httpx.ReadError, urllib3.exceptions.ProtocolError),
    ({"truncate": True}, 5, httpx.RemoteProtocolError, urllib3.exceptions.ProtocolError),
    ({"latency": 0.3}, 0.2, httpx.ReadTimeout, urllib3.exceptions.ReadTimeoutError),
]


@pytest.mark.parametrize("fault", FAULTS, ids=[str(fault[0]) for fault in FAULTS])
@pytest.mark.parametrize("client", CLIENTS)
def test_faults_raise_what_they_raise_over_sockets(
    payment_sandbox: PaymentSandbox, orders: str, client: Client, fault: Any
) -> None:
    """A fault raises the same exception without sockets as over sockets."""
    then, timeout_seconds, httpx_error, urllib3_error = fault
    if then == {"truncate": True} and client is call_urllib3 and not NOTICES_SHORT_BODIES:
        pytest.skip("this urllib3 does not notice short bodies")
    payment_sandbox.client.faults([{"then": then}])
    expected_error = urllib3_error if client is call_urllib3 else httpx_error
    if client is call_httpx2:
        expected_error = getattr(httpx2, expected_error.__name__)
    with pytest.raises(expected_error):
        client(payment_sandbox, "GET", f"{orders}nothing/", None, timeout_seconds)
    if timeout_seconds < 1:  # over sockets, a busy machine must not read the late response in time
        payment_sandbox.client.faults([{"then": dict.fromkeys(then, 30)}])
    libraries: dict[Client, Any] = {call_httpx2: httpx2.Client, call_urllib3: urllib3.PoolManager}
    client_class = libraries.get(client, httpx.Client)
    with client_class() as sockets:
        headers = urllib3.make_headers(basic_auth=f"{payment_sandbox.api_key}:")
        options: Any = {"retries": False} if client is call_urllib3 else {}
        with pytest.raises(expected_error):
            sockets.request("GET", f"{orders}nothing/", headers=headers, timeout=timeout_seconds, **options)


@pytest.mark.parametrize("client", CLIENTS)
def test_other_servers_are_reached_over_sockets(
    payment_sandbox: PaymentSandbox, webhook_receiver: Any, client: Client
) -> None:
    """Each client reaches other servers over sockets."""
    status, _ = client(payment_sandbox, "POST", webhook_receiver.url, {"order_id": "1"}, 5)
    assert (status, webhook_receiver.received[0].order_id) == (200, "1")


@pytest.mark.parametrize("client", CLIENTS)
def test_the_same_code_with_a_running_server(client: Client) -> None:
    """With a running server, the same clients work over sockets."""
    own = PaymentSandboxServer()
    running = PaymentSandboxServer(own.base_url)
    with running.project() as project:
        status, _ = client(project, "POST", f"{project.base_url}/v1/orders/", ORDER, 5)
        assert status == 201
        settings = project.client.call("GET", "/control/project/")["settings"]
        assert settings["expires_after"] == "P1D", "if the tests are killed"
        with pytest.raises(RuntimeError, match="unset SANDBOX_URL"):
            project.intercept("https://api.provider.example")
    running.stop()
    own.stop()


def test_bodies_in_chunks_and_streams(payment_sandbox: PaymentSandbox, orders: str) -> None:
    """Chunked bodies of urllib3 and httpx arrive; streams need a socket."""

    def pieces() -> Iterator[bytes]:
        raw = json.dumps(ORDER).encode()
        yield raw[:7]
        yield raw[7:]

    headers = {**JSON, **urllib3.make_headers(basic_auth=f"{payment_sandbox.api_key}:")}
    pool = payment_sandbox.pool_manager
    assert pool.request("POST", orders, body=pieces(), headers=headers).status == 201
    with httpx.Client(transport=payment_sandbox.httpx_transport, headers=headers) as client:
        assert client.post(orders, content=pieces()).status_code == 201
        with client.stream("GET", f"{payment_sandbox.base_url}/control/events/") as events:
            assert next(events.iter_lines()).startswith(("id", ":", "retry"))
    with pytest.raises(urllib3.exceptions.ProtocolError, match="needs a socket"):
        pool.request("GET", f"{payment_sandbox.base_url}/control/events/", headers=headers, retries=False)


def test_urllib3_retries_as_it_does_over_sockets(payment_sandbox: PaymentSandbox, orders: str) -> None:
    """The shop's retries of urllib3 work without sockets."""
    headers = urllib3.make_headers(basic_auth=f"{payment_sandbox.api_key}:")
    retries = urllib3.Retry(3, status_forcelist=[503], backoff_factor=0)
    order_id = place(payment_sandbox)
    payment_sandbox.client.faults([{"when": {"nth": 1}, "then": {"status": 503}}])
    answer = payment_sandbox.pool_manager.request(
        "GET", f"{orders}{order_id}/", headers=headers, retries=retries
    )
    assert answer.status == 200
    assert [entry["status"] for entry in payment_sandbox.client.journal(method="GET")][-2:] == [503, 200]


def test_heads_and_empty_answers(payment_sandbox: PaymentSandbox) -> None:
    """A HEAD request and an error of ``http.client`` are answered correctly."""
    server = payment_sandbox.server.in_process
    assert server is not None
    for method, path, status in (("HEAD", "/health/", 200), ("GET", "/nothing/", 404)):
        connection = HTTPConnection("sandbox.test")
        memory_socket: Any = MemorySocket(LocalTarget(server))
        connection.sock = memory_socket
        connection.request(method, path)
        answer = connection.getresponse()
        assert answer.status == status
        length = int(answer.headers["Content-Length"])
        assert (length > 0, len(answer.read())) == (True, 0 if method == "HEAD" else length)
        assert answer.reason == {200: "OK", 404: "Not Found"}[status]
        connection.close()


def test_a_session_of_requests_is_unchanged(payment_sandbox: PaymentSandbox, orders: str) -> None:
    """``session`` is a session of requests."""
    assert isinstance(payment_sandbox.session, requests.Session)
    assert payment_sandbox.session.post(orders, json=ORDER).status_code == 201
