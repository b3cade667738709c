"""Calls without sockets behave like calls over sockets."""

import json
import sys
import threading
from types import FrameType
from typing import Any

import pytest
import requests
import urllib3

from payment_sandbox.client.errors import SandboxError
from payment_sandbox.testing.clients.with_requests import InProcessAdapter
from payment_sandbox.testing.project_fixture import PaymentSandbox
from payment_sandbox.testing.servers import PaymentSandboxServer
from tests.support.in_process import ORDER, in_time, place, shop_that
from tests.support.servers import make_server


def test_every_kind_of_timeout_is_taken(payment_sandbox: PaymentSandbox, orders: str) -> None:
    """All forms of timeouts of requests are accepted."""
    kinds: tuple[Any, ...] = (5, 5.0, (5, 5), (None, 5), None, urllib3.Timeout(5), urllib3.Timeout())
    for timeout in kinds:
        answer = payment_sandbox.session.get(f"{orders}nothing/", timeout=timeout)
        assert answer.status_code == 404


def test_no_cookie_goes_from_one_project_to_the_next() -> None:
    """Clients of different projects share connections, but no cookies."""
    with make_server() as server:
        sandbox = PaymentSandboxServer(server.url)
        client = sandbox.project({}).client
        order = client.call("POST", "/v1/orders/", ORDER)
        page = requests.get(f"http://{order['transactions'][0]['payment_url']}?language=de")
        assert page.cookies
        shared: Any = sandbox.client_for("").session
        shared.get(f"http://{order['transactions'][0]['payment_url']}?language=de")
        assert not list(shared.cookies)
        sandbox.stop()


def test_the_webhook_of_a_call_with_a_lost_response_arrives(
    payment_sandbox: PaymentSandbox, orders: str
) -> None:
    """The webhook of a call with a lost response arrives before the call raises."""
    notified: list[str] = []
    payment_sandbox.deliver_to(shop_that(notified.append))
    order_id = place(payment_sandbox)
    payment_sandbox.act(order_id)
    notified.clear()
    payment_sandbox.client.faults([{"when": {"method": "POST"}, "then": {"reset": True, "phase": "after"}}])
    with pytest.raises(requests.ConnectionError):
        payment_sandbox.session.post(f"{orders}{order_id}/refunds/", json={"amount": 5})
    assert len(notified) == 1


def test_responses_are_as_from_the_wire(payment_sandbox: PaymentSandbox, orders: str) -> None:
    """Reasons, cookies and authorization work as over the wire."""
    answer = payment_sandbox.session.get(f"{orders}nothing/")
    with pytest.raises(requests.HTTPError, match="Not Found for url"):
        answer.raise_for_status()
    order = payment_sandbox.session.post(orders, json={"currency": "EUR", "amount": 5}).json()
    page = f"http://{order['order_url']}"
    assert 'lang="de"' in payment_sandbox.session.get(f"{page}?language=de").text
    assert 'lang="de"' in payment_sandbox.session.get(page).text, "the cookie is kept"
    for header in ("Basic /////w==", "Basic a", "Bearer x"):
        bad_request = requests.Request(
            "GET", f"{orders}nothing/", headers={"Authorization": header}
        ).prepare()
        assert payment_sandbox.session.send(bad_request).status_code == 401


@pytest.mark.parametrize("order_id", ["Ж", "ü", "a b", "%41", "a%2Fb"])
def test_addresses_are_quoted_alike(payment_sandbox: PaymentSandbox, order_id: str) -> None:
    """Paths are quoted in the same manner with and without sockets."""
    over_sockets = requests.get(
        f"{payment_sandbox.base_url}/v1/orders/{order_id}/", auth=(payment_sandbox.api_key, "")
    )
    directly = payment_sandbox.session.get(f"{payment_sandbox.base_url}/v1/orders/{order_id}/")
    assert (directly.status_code, directly.json()) == (over_sockets.status_code, over_sockets.json())


def calls_to_prepare(session: requests.Session, **parts: Any) -> int:
    """Count the calls of functions that prepare a request."""
    calls: list[str] = []

    def count(frame: FrameType, event: str, argument: object) -> None:
        calls.append(event)

    request, before = requests.Request("GET", "http://127.0.0.1/", **parts), sys.getprofile()
    sys.setprofile(count)
    try:
        session.prepare_request(request)
    finally:
        sys.setprofile(before)
    return sum(event in ("call", "c_call") for event in calls)


def test_a_session_prepares_only_what_it_sends(payment_sandbox: PaymentSandbox) -> None:
    """Empty headers and parameters are not merged; those of a call and of its session are."""
    with requests.Session() as usual:
        usual.trust_env, usual.auth = False, ("key", "")
        calls_to_prepare(usual)  # fills the caches of both
        assert calls_to_prepare(payment_sandbox.session) < 0.9 * calls_to_prepare(usual)
    session = payment_sandbox.session
    session.headers.update({"User-Agent": None, "X-Shop": "socks"})  # type: ignore[dict-item]
    session.params = {"limit": 1}
    request = requests.Request("GET", f"{payment_sandbox.base_url}/v1/", params={"before": ""})
    bare = session.prepare_request(requests.Request("GET", f"{payment_sandbox.base_url}/v1/"))
    assert session.prepare_request(request).url == f"{payment_sandbox.base_url}/v1/?limit=1&before="
    assert (bare.url, bare.headers["X-Shop"]) == (f"{payment_sandbox.base_url}/v1/?limit=1", "socks")
    assert "User-Agent" not in bare.headers


def test_headers_are_taken_as_servers_take_them(payment_sandbox: PaymentSandbox, orders: str) -> None:
    """Header values may be bytes, and Content_Type is not Content-Type."""
    body = json.dumps(ORDER)
    answer = payment_sandbox.session.post(orders, data=body, headers={"Content-Type": b"application/json"})
    assert answer.status_code == 201
    bad_request = payment_sandbox.session.post(
        orders, data=body, headers={"Content_Type": "application/json"}
    )
    assert bad_request.status_code == 415


def test_a_stream_without_its_trailing_slash(payment_sandbox: PaymentSandbox) -> None:
    """A stream from a path without its trailing slash works."""
    url = f"{payment_sandbox.base_url}/control/events"
    with payment_sandbox.session.get(url, stream=True) as answer:
        assert next(answer.iter_lines()) == b": watching"


def test_calls_after_the_server_has_stopped_end() -> None:
    """A call after the server has stopped returns without waiting for its webhooks."""
    server = PaymentSandboxServer()
    sandbox = server.project({})
    sandbox.deliver_to(shop_that(lambda order_id: None))
    order_id = place(sandbox)
    server.stop()
    in_time(lambda: sandbox.act(order_id))


def test_the_adapter_is_for_this_server_alone(payment_sandbox: PaymentSandbox) -> None:
    """The adapter does not serve a port with the same first digits."""
    other = payment_sandbox.session.get_adapter(f"{payment_sandbox.base_url}0/v1/orders/")
    assert not isinstance(other, InProcessAdapter)
    assert isinstance(
        payment_sandbox.session.get_adapter(f"{payment_sandbox.base_url}/v1/"), InProcessAdapter
    )


def test_an_invalid_webhook_address_is_refused(payment_sandbox: PaymentSandbox) -> None:
    """A webhook address without a scheme is refused, and the settings stay unchanged."""
    with pytest.raises(ValueError, match="webhook_url"):
        payment_sandbox.deliver_to(shop_that(lambda order_id: None), "shop.test/webhook")
    assert payment_sandbox.client.project()["settings"]["webhook_url"] is None


def test_a_project_that_its_test_deleted(payment_sandbox: PaymentSandbox) -> None:
    """A project that its test has deleted can be closed."""
    payment_sandbox.client.delete_project()
    payment_sandbox.close()


@pytest.mark.parametrize("running", [False, True])
def test_wrong_settings_are_refused_alike(running: bool) -> None:
    """Wrong settings are refused in the same manner in this process and over a socket."""
    with make_server() as server:
        sandbox = PaymentSandboxServer(server.url if running else None)
        with pytest.raises(SandboxError) as error:
            sandbox.project({"mode": "alive", "colour": "red"})
        assert {violation.path for violation in error.value.violations} == {"mode", "colour"}
        project = sandbox.project({"payment_methods": ("credit-card",)}).client.project()
        assert (project["clock"]["mode"], project["settings"]["payment_methods"]) == (
            "frozen",
            ["credit-card"],
        )
        sandbox.stop()


def test_a_webhook_that_is_answered_in_time_starts_no_thread() -> None:
    """One thread watches the time of all webhooks to a shop in this process."""
    threads_before = set(threading.enumerate())
    with PaymentSandboxServer() as server, server.project() as sandbox:
        sandbox.deliver_to(shop_that(lambda order_id: None))
        for _ in range(3):
            sandbox.act(place(sandbox))
        assert [len(webhook["attempts"]) for webhook in sandbox.webhooks] == [1] * 6
    started = [thread.name for thread in set(threading.enumerate()) - threads_before]
    assert started in ([], ["overdue"])
