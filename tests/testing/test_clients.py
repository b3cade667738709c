"""Calls by the shop's HTTP clients reach the sandbox without sockets."""

import json
import socket
from collections.abc import Iterator
from importlib.metadata import version
from typing import Any

import httpx
import httpx2
import pytest
import requests
import urllib3
from urllib3.exceptions import ProtocolError, ReadTimeoutError

from payment_sandbox.client.receiver import WebhookReceiver
from payment_sandbox.testing.project_fixture import PaymentSandbox
from payment_sandbox.testing.servers import PaymentSandboxServer
from tests.support.in_process import ORDER, shop_that
from tests.testing.clients import CLIENTS, LONG_SECONDS, Client, Sent

JSON = {"Content-Type": "application/json"}


@pytest.fixture
def no_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fail the test if a socket is connected."""

    def refuse(*arguments: object) -> None:
        raise AssertionError("a socket was connected")

    monkeypatch.setattr(socket.socket, "connect", refuse)


@pytest.mark.usefixtures("no_connections")
@pytest.mark.parametrize("client", CLIENTS.values(), ids=CLIENTS)
def test_an_order_is_paid(payment_sandbox: PaymentSandbox, orders: str, client: Client) -> None:
    """Each client creates, reads and refunds an order, and webhooks have arrived when the call returns."""
    notified: list[str] = []
    payment_sandbox.deliver_to(shop_that(notified.append))

    def call(method: str, url: str, body: Any = None) -> tuple[int, Any]:
        sent = Sent(method, url, payment_sandbox.api_key, body, through=payment_sandbox)
        status, content = client(sent)
        return status, json.loads(content)

    status, order = call("POST", orders, ORDER)
    assert status == 201
    payment_sandbox.act(order["id"])
    notified.clear()
    status, _ = call("POST", f"{orders}{order['id']}/refunds/", {"amount": 5})
    assert (status, len(notified)) == (201, 1)
    status, order = call("GET", f"{orders}{order['id']}/")
    assert (status, order["status"]) == (200, "completed")
    status, refused = call("POST", orders, {"amount": 1.5})
    assert (status, refused["error"]["type"]) == (400, "ValidationError")


SHORT_SECONDS = 0.001
"""The time limit of a caller who must not get an answer in time."""
LATE = [httpx.ReadTimeout, ReadTimeoutError, requests.ReadTimeout]
CUT = [httpx.ReadError, ProtocolError, requests.ConnectionError]
SHORT = [httpx.RemoteProtocolError, ProtocolError, requests.exceptions.ChunkedEncodingError]
FAULTS: dict[str, tuple[dict[str, Any], dict[str, Any], float, list[type[Exception]]]] = {
    # the fault without and over sockets, the caller's time limit, and the errors of httpx, urllib3 and requests
    "no answer in time": ({"hang": 0.01}, {"hang": 2}, SHORT_SECONDS, LATE),
    "a late answer": ({"latency": 0.01}, {"latency": 2}, SHORT_SECONDS, LATE),
    "no answer at all": ({"hang": 0.01}, {"hang": 0.01}, LONG_SECONDS, CUT),
    "a reset": ({"reset": True}, {"reset": True}, LONG_SECONDS, CUT),
    "half an answer": ({"truncate": True}, {"truncate": True}, LONG_SECONDS, SHORT),
}


def test_the_same_code_with_a_running_server() -> None:
    """With a running server, the session and the transport work over sockets; nothing is intercepted."""
    own = PaymentSandboxServer()
    running = PaymentSandboxServer(own.base_url)
    with running.project() as project:
        for name in ("requests", "httpx", "httpx2", "async httpx"):
            sent = Sent("POST", f"{project.base_url}/v1/orders/", project.api_key, ORDER, through=project)
            assert CLIENTS[name](sent)[0] == 201
        settings = project.client.call("GET", "/control/project/")["settings"]
        assert settings["expires_after"] == "P1D", "if the tests are killed"
        with pytest.raises(RuntimeError, match="unset SANDBOX_URL"):
            project.intercept("https://api.provider.example")
    running.stop()
    own.stop()


def test_bodies_and_streams(payment_sandbox: PaymentSandbox, orders: str) -> None:
    """Bodies may be strings, bytes or chunks, whose length is unknown; streams need a socket."""
    raw = json.dumps(ORDER).encode()

    def pieces() -> Iterator[bytes]:
        yield raw[:7]
        yield raw[7:]

    headers = {**JSON, **urllib3.make_headers(basic_auth=f"{payment_sandbox.api_key}:")}
    events_url = f"{payment_sandbox.base_url}/control/events/"
    bodies: tuple[Any, ...] = (pieces(), memoryview(raw), raw.decode())
    for body in bodies:
        answer = payment_sandbox.session.post(orders, data=body, headers=JSON)
        assert answer.status_code == 201, answer.text
    with payment_sandbox.intercept(payment_sandbox.base_url):
        assert urllib3.request("POST", orders, body=pieces(), headers=headers).status == 201
        with pytest.raises(urllib3.exceptions.ProtocolError, match="needs a socket"):
            urllib3.request("GET", events_url, headers=headers, retries=False)
    with httpx.Client(transport=payment_sandbox.httpx_transport, headers=headers) as client:
        assert client.post(orders, content=pieces()).status_code == 201
        with client.stream("GET", events_url) as events:
            assert next(events.iter_lines()).startswith(("id", ":", "retry"))


@pytest.mark.parametrize("fault", FAULTS)
def test_faults_raise_what_they_raise_over_sockets(
    payment_sandbox: PaymentSandbox, orders: str, fault: str
) -> None:
    """With each client, a fault raises the same exception without sockets as over sockets."""
    without_sockets, over_sockets, seconds, (of_httpx, of_urllib3, of_requests) = FAULTS[fault]
    errors = {"httpx2": getattr(httpx2, of_httpx.__name__), "urllib3": of_urllib3, "requests": of_requests}
    checks_length = not version("urllib3").startswith("1.") or fault != "half an answer"
    for then, through, unchecking in (
        (without_sockets, payment_sandbox, ("urllib3",)),
        (over_sockets, None, ("urllib3", "requests")),
    ):
        payment_sandbox.client.faults([{"then": then}])
        for library in CLIENTS if checks_length else sorted({*CLIENTS} - {*unchecking}):
            sent = Sent("GET", f"{orders}nothing/", payment_sandbox.api_key, None, seconds, through)
            with pytest.raises(errors.get(library, of_httpx)) as raised:
                CLIENTS[library](sent)
            assert type(raised.value) is errors.get(library, of_httpx), library


def test_other_servers_are_reached_over_sockets(
    payment_sandbox: PaymentSandbox, webhook_receiver: WebhookReceiver
) -> None:
    """Each client reaches other servers over sockets."""
    for number, client in enumerate(CLIENTS.values()):
        sent = Sent("POST", webhook_receiver.url, "", {"order_id": str(number)}, through=payment_sandbox)
        assert (client(sent)[0], webhook_receiver.received[number].order_id) == (200, str(number))
