"""Several interceptions at once, proxies, and reports of requests that reached no project."""

import os
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest
import requests

from payment_sandbox.testing.project_fixture import PaymentSandbox
from payment_sandbox.testing.servers import PaymentSandboxServer
from tests.support.in_process import ORDER
from tests.support.suites import passed, suite
from tests.testing.test_intercepting import (
    CREATE,
    PROVIDER,
    create_by_httpx,
    create_by_requests,
    create_by_urllib_request,
)


def test_two_addresses_of_one_provider(payment_sandbox_server: PaymentSandboxServer) -> None:
    """The more specific address takes precedence, and each interception ends separately."""
    with payment_sandbox_server.project() as first:
        first.intercept(PROVIDER)
        with payment_sandbox_server.project() as second:
            second.intercept(f"{PROVIDER}/eu")
            auth = (second.api_key, "")
            assert requests.post(f"{PROVIDER}/eu/v1/orders/", json=ORDER, auth=auth).status_code == 201
            assert requests.post(f"{PROVIDER}/europe/v1/orders/", json=ORDER, auth=auth).status_code == 404
            assert "paths begin with /v1/" in second.timeline()
        assert create_by_requests(first.api_key) == 201


def test_two_servers_in_one_process(payment_sandbox: PaymentSandbox) -> None:
    """The server with the project of the key answers."""
    payment_sandbox.intercept(PROVIDER)
    second = PaymentSandboxServer()
    with second.project() as project:
        project.intercept(PROVIDER)
        assert create_by_requests(payment_sandbox.api_key) == create_by_requests(project.api_key) == 201
    second.stop()
    assert create_by_requests(payment_sandbox.api_key) == 201


@pytest.mark.parametrize("create", [create_by_requests, create_by_httpx, create_by_urllib_request])
def test_proxies_of_the_environment_are_ignored(
    payment_sandbox: PaymentSandbox, monkeypatch: pytest.MonkeyPatch, create: Callable[[str], int]
) -> None:
    """Intercepted calls ignore proxies of the environment, whose variables are restored afterwards."""
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    monkeypatch.setenv("NO_PROXY", "localhost")
    monkeypatch.delenv("no_proxy", raising=False)
    payment_sandbox.intercept(PROVIDER)
    assert create(payment_sandbox.api_key) == 201
    payment_sandbox.close()
    assert (os.environ["NO_PROXY"], os.environ.get("no_proxy")) == ("localhost", None)


def test_a_stream_needs_a_socket(payment_sandbox: PaymentSandbox) -> None:
    """An intercepted stream is refused, and does not hang."""
    payment_sandbox.intercept(PROVIDER)
    url = f"{PROVIDER}/control/events/"
    with pytest.raises(httpx.UnsupportedProtocol, match="needs a socket"):
        httpx.get(url, auth=(payment_sandbox.api_key, ""))
    with pytest.raises(requests.ConnectionError, match="needs a socket"):
        requests.get(url, auth=(payment_sandbox.api_key, ""))


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
    assert not any("ImportWatcher" in type(finder).__name__ for finder in sys.meta_path)
    assert httpx.HTTPTransport.handle_request.__module__.startswith("httpx")

def test_once_more(payment_sandbox):
    payment_sandbox.intercept("https://api.provider.example")
    import httpx
    answer = httpx.post("https://api.provider.example/v1/orders/", json=ORDER, auth=(payment_sandbox.api_key, ""))
    assert answer.status_code == 201
"""


def test_libraries_that_are_imported_later(tmp_path: Path) -> None:
    """An interception does not import libraries, and hooks those that are imported later."""
    passed(suite(tmp_path, LATE, "-p", "no:anyio", "-p", "no:socket"), 2)
