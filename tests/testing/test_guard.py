"""An intercepted address is never reached, whichever client is used and however it is patched."""

import asyncio
import os
import socket
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

import aiohttp
import httpcore
import httpx
import pook
import pytest
import requests
import requests_mock
import responses
import respx
import urllib3
import vcr

from payment_sandbox.testing.clients.guard import AddressIntercepted, canonical_host
from payment_sandbox.testing.project_fixture import PaymentSandbox
from tests.support.in_process import ORDER
from tests.support.shop import Shop
from tests.testing.clients import Sent, by_urllib_request

KEY = "live-key"


@pytest.fixture(scope="session")
def providers() -> Iterator[ExitStack]:
    """Keep the providers' ports busy: no other server may get one, because they stay guarded."""
    with ExitStack() as stack:
        yield stack


@pytest.fixture
def provider(providers: ExitStack) -> Shop:
    """A server that plays the provider, and must get no request once its address is intercepted."""
    server = Shop(keeps_alive=True)
    server.answer, server.says = lambda received: 418, b""
    server.url = server.url.replace("127.0.0.1", "localhost").removesuffix("/webhook")
    providers.callback(server.close)
    return server


def post_by_httpx(url: str) -> int:
    """Create an order with httpx."""
    return httpx.post(f"{url}/v1/orders/", json=ORDER, auth=(KEY, ""), trust_env=False).status_code


def post_by_httpx_with_environment(url: str) -> int:
    """Create an order with httpx, through the proxy of the environment if there is one."""
    return httpx.post(f"{url}/v1/orders/", json=ORDER, auth=(KEY, "")).status_code


def post_by_urllib(url: str) -> int:
    """Create an order with urllib.request."""
    return by_urllib_request(Sent("POST", f"{url}/v1/orders/", KEY, ORDER))[0]


def post_by_requests(url: str) -> int:
    """Create an order with requests."""
    return requests.post(f"{url}/v1/orders/", json=ORDER, auth=(KEY, "")).status_code


def post_by_saved_method(url: str) -> int:
    """Send a request by httpx's method as it was before the interception."""
    request = httpx.Request("POST", f"{url}/v1/orders/", json=ORDER)
    with httpx.HTTPTransport() as transport:
        return SAVED_HANDLE_REQUEST(transport, request).status_code


def connect_socket(url: str) -> None:
    """Connect a socket."""
    host, _, port = url.removeprefix("http://").partition(":")
    socket.create_connection((host, int(port)), timeout=60).close()


def connect_address(url: str) -> None:
    """Connect a socket to the resolved address, in an unusual spelling."""
    with socket.socket() as plain:
        plain.connect(("127.1", int(url.rpartition(":")[2])))


def get_by_aiohttp(url: str) -> int:
    """Read an order with aiohttp."""

    async def get() -> int:
        async with aiohttp.ClientSession() as session, session.get(f"{url}/v1/orders/x/") as answer:
            return answer.status

    with ThreadPoolExecutor(1) as thread:  # Playwright leaves a loop on the test thread
        return thread.submit(asyncio.run, get()).result()


SAVED_HANDLE_REQUEST = httpx.HTTPTransport.handle_request
BYPASSES: list[tuple[Callable[[str], object], str]] = [
    (post_by_saved_method, "httpx"),
    (connect_socket, "tests"),
    (connect_address, "tests"),
    (get_by_aiohttp, "aiohttp"),
    (lambda url: httpcore.request("GET", f"{url}/v1/orders/x/"), "httpcore"),
]


@pytest.mark.parametrize(("reach", "client"), BYPASSES)
def test_nothing_reaches_an_intercepted_address(
    payment_sandbox: PaymentSandbox, provider: Shop, reach: Callable[[str], object], client: str
) -> None:
    """A client that is not hooked fails with the address, the client and the remedy; the report says so, too."""
    payment_sandbox.intercept(provider.url, key=KEY)
    with pytest.raises(AddressIntercepted) as refused:
        reach(provider.url)
    assert len(provider.received) == 0
    message = str(refused.value)
    assert provider.url.removeprefix("http://") in message
    assert client in message.partition(" tried to reach ")[0]
    assert "need payment_sandbox.base_url" in message
    assert message in payment_sandbox.timeline()
    payment_sandbox.close()
    refused_afterwards(provider, lambda: reach(provider.url))
    assert message not in refused_afterwards(provider, lambda: post_by_requests(provider.url))


def refused_afterwards(provider: Shop, call: Callable[[], object]) -> str:
    """Check that a call is refused after the interception, and names the test; return the message."""
    before = len(provider.received)
    with pytest.raises(AddressIntercepted, match="An intercepted address stays closed") as refused:
        call()
    assert len(provider.received) == before
    assert os.environ["PYTEST_CURRENT_TEST"].removesuffix(" (call)") in str(refused.value)
    return str(refused.value)


def test_a_name_is_not_even_resolved(payment_sandbox: PaymentSandbox) -> None:
    """Resolving an intercepted name fails in every spelling; other names and ports are unaffected."""
    payment_sandbox.intercept("https://api.Bücher.example")
    for resolve in (
        lambda: socket.getaddrinfo("API.bücher.example.", 443),
        lambda: socket.getaddrinfo("api.xn--bcher-kva.example", "https"),
        lambda: socket.gethostbyname("api.xn--bcher-kva.example"),
        lambda: socket.getaddrinfo(b"api.xn--bcher-kva.example", None),
    ):
        with pytest.raises(AddressIntercepted, match=r"api\.xn--bcher-kva\.example:443"):
            resolve()
    assert socket.getaddrinfo("localhost", 80)
    for loopback in ("LOCALHOST", "127.1", "[::1]", "::ffff:127.0.0.1", "0.0.0.0", "2130706433"):
        assert canonical_host(loopback) == "localhost"


def test_connections_from_before_the_interception(payment_sandbox: PaymentSandbox, provider: Shop) -> None:
    """A session with a connection to the provider gets its next answers from the sandbox, also the second time."""
    with requests.Session() as session:
        session.auth = (KEY, "")
        assert session.post(f"{provider.url}/v1/orders/", json=ORDER).status_code == 418
        for _ in range(2):
            with payment_sandbox.intercept(provider.url, key=KEY):
                assert session.post(f"{provider.url}/v1/orders/", json=ORDER).status_code == 201
                assert post_by_httpx(provider.url) == 201
            refused_afterwards(provider, lambda: session.post(f"{provider.url}/v1/orders/", json=ORDER))
    assert len(provider.received) == 1


@pytest.mark.parametrize(
    "create", [requests.Session, lambda: httpx.Client(trust_env=False), httpcore.ConnectionPool]
)
def test_open_connections_after_the_interception(
    payment_sandbox: PaymentSandbox, provider: Shop, create: Callable[[], Any]
) -> None:
    """A connection that was open before the interception takes no call to the provider after it."""
    with create() as client:
        client.request("GET", f"{provider.url}/v1/orders/x/")
        with payment_sandbox.intercept(provider.url):
            pass
        refused_afterwards(provider, lambda: client.request("GET", f"{provider.url}/v1/orders/x/"))


def test_the_sandbox_itself_is_reached_after_its_interception(payment_sandbox: PaymentSandbox) -> None:
    """The sandbox's own address is no provider's: it stays reachable over sockets."""
    for _ in range(2):
        with payment_sandbox.intercept(payment_sandbox.base_url):
            pass
        assert httpx.get(f"{payment_sandbox.base_url}/v1/orders/x/", trust_env=False).status_code == 401


def test_open_connections_of_other_clients_are_refused(
    payment_sandbox: PaymentSandbox, provider: Shop
) -> None:
    """Pools of clients that the sandbox does not answer give out no connection, not even an open one."""

    async def get_twice() -> None:
        async with aiohttp.ClientSession() as session:
            async with session.get(f"{provider.url}/v1/orders/x/") as answer:
                await answer.read()
            payment_sandbox.intercept(provider.url)
            with pytest.raises(AddressIntercepted, match="aiohttp tried to reach"):
                await session.get(f"{provider.url}/v1/orders/x/")

    with httpcore.ConnectionPool() as pool, ThreadPoolExecutor(1) as thread:
        pool.request("GET", f"{provider.url}/v1/orders/x/")
        thread.submit(asyncio.run, get_twice()).result()
        with pytest.raises(AddressIntercepted, match="httpcore tried to reach"):
            pool.request("GET", f"{provider.url}/v1/orders/x/")
    assert len(provider.received) == 2


def test_a_proxy_gets_no_request_for_the_address(
    payment_sandbox: PaymentSandbox, provider: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Requests over plain HTTP do not reach a proxy, which gets whole URLs."""
    payment_sandbox.intercept("http://api.provider.example", key=KEY)
    monkeypatch.setenv("HTTP_PROXY", provider.url)
    monkeypatch.setenv("http_proxy", provider.url)
    for post in (post_by_requests, post_by_httpx_with_environment, post_by_urllib):
        assert post("http://api.provider.example") == 201
    proxies = {"http": provider.url}
    url = "http://api.provider.example/v1/orders/"
    assert requests.post(url, json=ORDER, auth=(KEY, ""), proxies=proxies).status_code == 201
    manager = urllib3.ProxyManager(provider.url)
    headers = urllib3.make_headers(basic_auth=f"{KEY}:")
    assert manager.request("GET", f"{url}x/", headers=headers).status == 404
    payment_sandbox.close()
    refused_afterwards(provider, lambda: post_by_requests("http://api.provider.example"))
    refused_afterwards(provider, lambda: manager.request("GET", f"{url}x/"))
    assert len(provider.received) == 0


RECORDS: Final = "vcrpy is recording: exclude the address with ignore_hosts"
STUBS: dict[str, tuple[Callable[[Path], Any], Callable[[str], int], str]] = {
    "responses": (lambda file: responses.RequestsMock(), post_by_requests, "responses.add_passthru"),
    "requests_mock": (lambda file: requests_mock.Mocker(), post_by_requests, "real_http=True"),
    "respx": (lambda file: respx.mock, post_by_httpx, "pass_through"),
    "pook": (lambda file: pook.use(), post_by_requests, "pook.enable_network"),
    "vcrpy and httpx": (lambda file: vcr.use_cassette(str(file)), post_by_httpx, RECORDS),
    "vcrpy and requests": (lambda file: vcr.use_cassette(str(file)), post_by_requests, RECORDS),
}


@pytest.mark.parametrize("is_first", [True, False])
@pytest.mark.parametrize("library", STUBS)
def test_stub_libraries(
    payment_sandbox: PaymentSandbox, provider: Shop, tmp_path: Path, library: str, is_first: bool
) -> None:
    """With a library for stubs or records, in either order, the provider gets nothing; the report has the remedy."""
    start, post, remedy = STUBS[library]
    if not is_first:
        payment_sandbox.intercept(provider.url, key=KEY)
    with start(tmp_path / "mail.yaml"):
        if is_first:
            payment_sandbox.intercept(provider.url, key=KEY)
        try:
            status = post(provider.url)
        except Exception:  # each library has its own
            status = 0
        if is_first or remedy == RECORDS:
            assert remedy in payment_sandbox.timeline()
    assert status in (0, 201)
    assert len(provider.received) == 0
    if remedy != RECORDS:
        assert post(provider.url) == 201, "the stubs are gone, and the address is still intercepted"
    payment_sandbox.close()
    refused_afterwards(provider, lambda: post(provider.url))


def test_an_interception_that_fails_leaves_nothing(payment_sandbox: PaymentSandbox, provider: Shop) -> None:
    """If one step of an interception fails, the address is not intercepted at all."""
    with pytest.raises(ValueError, match="takes an address with its scheme"):
        payment_sandbox.intercept(provider.url, "no-address", key=KEY)
    assert post_by_requests(provider.url) == 418
