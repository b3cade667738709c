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
from urllib3.exceptions import ProtocolError, ReadTimeoutError

from payment_sandbox.testing.clients.memory_socket import MemorySocket
from payment_sandbox.testing.clients.with_urllib3 import LocalTarget
from payment_sandbox.testing.project_fixture import PaymentSandbox
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


def call_requests(
    sandbox: PaymentSandbox, method: str, url: str, body: Any, timeout: float
) -> tuple[int, bytes]:
    """Call with requests, without a socket."""
    answer = sandbox.session.request(method, url, json=body, timeout=timeout)
    return answer.status_code, answer.content


CLIENTS: list[Client] = [call_httpx, call_httpx2, call_async_httpx, call_urllib3, call_requests]


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


SHORT_SECONDS, LONG_SECONDS = 0.001, 20
"""The time limit of a caller who must not get an answer in time, and of one who must."""
FAULTS: list[tuple[dict[str, Any], dict[str, Any], float, list[type[Exception]]]] = [
    # the fault without and over sockets, the caller's time limit, and the errors of httpx, urllib3 and requests
    ({"hang": 0.01}, {"hang": 2}, SHORT_SECONDS, [httpx.ReadTimeout, ReadTimeoutError, requests.ReadTimeout]),
    (
        {"latency": 0.01},
        {"latency": 2},
        SHORT_SECONDS,
        [httpx.ReadTimeout, ReadTimeoutError, requests.ReadTimeout],
    ),
    (
        {"hang": 0.01},
        {"hang": 0.01},
        LONG_SECONDS,
        [httpx.ReadError, ProtocolError, requests.ConnectionError],
    ),
    (
        {"reset": True},
        {"reset": True},
        LONG_SECONDS,
        [httpx.ReadError, ProtocolError, requests.ConnectionError],
    ),
    (
        {"truncate": True},
        {"truncate": True},
        LONG_SECONDS,
        [httpx.RemoteProtocolError, ProtocolError, requests.exceptions.ChunkedEncodingError],
    ),
]


def call_over_sockets(client: Client, url: str, key: str, timeout: float) -> None:
    """Read an address with a client's library over sockets; the limit is for the answer, not for the connection."""
    if client is call_urllib3:
        limits = urllib3.Timeout(connect=LONG_SECONDS, read=timeout)
        urllib3.request(
            "GET", url, headers=urllib3.make_headers(basic_auth=f"{key}:"), timeout=limits, retries=False
        )
    elif client is call_requests:
        requests.get(url, auth=(key, ""), timeout=(LONG_SECONDS, timeout))
    else:
        library = httpx2 if client is call_httpx2 else httpx
        library.get(url, auth=(key, ""), timeout=library.Timeout(LONG_SECONDS, read=timeout))


@pytest.mark.parametrize("fault", FAULTS, ids=[f"{fault[0]} within {fault[2]} s" for fault in FAULTS])
@pytest.mark.parametrize("client", CLIENTS)
def test_faults_raise_what_they_raise_over_sockets(
    payment_sandbox: PaymentSandbox, orders: str, client: Client, fault: Any
) -> None:
    """A fault raises the same exception without sockets as over sockets."""
    then, then_over_sockets, timeout_seconds, (httpx_error, urllib3_error, requests_error) = fault
    errors: dict[Client, type[Exception]] = {
        call_httpx2: getattr(httpx2, httpx_error.__name__),
        call_urllib3: urllib3_error,
        call_requests: requests_error,
    }
    expected = errors.get(client, httpx_error)
    checks_length = NOTICES_SHORT_BODIES or then != {"truncate": True}
    if checks_length or client is not call_urllib3:
        payment_sandbox.client.faults([{"then": then}])
        with pytest.raises(expected) as raised:
            client(payment_sandbox, "GET", f"{orders}nothing/", None, timeout_seconds)
        assert type(raised.value) is expected
    if checks_length or client not in (call_urllib3, call_requests):
        payment_sandbox.client.faults([{"then": then_over_sockets}])
        with pytest.raises(expected) as raised:
            call_over_sockets(client, f"{orders}nothing/", payment_sandbox.api_key, timeout_seconds)
        assert type(raised.value) is expected


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
