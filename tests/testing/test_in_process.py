"""Without sockets, calls are answered as over sockets, whatever bodies and faults they have."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import requests
import urllib3
from flask import Flask, request
from flask.testing import FlaskClient
from werkzeug.wrappers import Response

from payment_sandbox.client.errors import SandboxError
from payment_sandbox.testing.clients.with_requests import InProcessAdapter
from payment_sandbox.testing.project import PaymentSandbox
from payment_sandbox.testing.servers import PaymentSandboxServer
from tests.support.in_process import ORDER, in_time, place, shop_that
from tests.support.servers import make_server
from tests.support.wire import NOTICES_SHORT_BODIES


def test_every_kind_of_timeout_is_taken(payment_sandbox: PaymentSandbox, orders: str) -> None:
    """As requests takes them."""
    kinds: tuple[Any, ...] = (5, 5.0, (5, 5), (None, 5), None, urllib3.Timeout(5), urllib3.Timeout())
    for timeout in kinds:
        answer = payment_sandbox.session.get(f"{orders}nothing/", timeout=timeout)
        assert answer.status_code == 404


def test_no_cookie_goes_from_one_project_to_the_next() -> None:
    """Their clients share connections, no more."""
    with make_server() as server:
        sandbox = PaymentSandboxServer(server.url)
        client = sandbox.project({}).client
        order = client.call("POST", "/v1/orders/", ORDER)
        page = requests.get(f"http://{order['transactions'][0]['payment_url']}?language=de", timeout=5)
        assert page.cookies
        shared: Any = sandbox.client_for("")._session
        shared.get(f"http://{order['transactions'][0]['payment_url']}?language=de", timeout=5)
        assert not list(shared.cookies)
        sandbox.stop()


def test_a_body_without_an_end_is_cut(payment_sandbox: PaymentSandbox) -> None:
    """Its status counts."""

    def forever() -> Iterator[bytes]:
        while True:
            yield b"x" * 1000

    payment_sandbox.deliver_to(shop_that(lambda order_id: Response(forever())))
    order_id = place(payment_sandbox)
    in_time(lambda: payment_sandbox.act(order_id, action="visit"))
    (webhook,) = payment_sandbox.webhooks
    response = webhook["attempts"][0]["response"]
    assert response is not None
    assert (webhook["state"], len(response["body"])) == ("delivered", 4096)


def test_a_body_that_breaks_off_counts_by_its_status(payment_sandbox: PaymentSandbox) -> None:
    """With a warning, as over the wire."""

    def half() -> Iterator[bytes]:
        yield b"half"
        raise ValueError("out of paper")

    payment_sandbox.deliver_to(shop_that(lambda order_id: Response(half())))
    payment_sandbox.act(place(payment_sandbox), action="visit")
    (attempt,) = payment_sandbox.webhooks[0]["attempts"]
    assert attempt["response"] is not None
    assert attempt["response"]["status"] == 200
    assert "is incomplete" in str(attempt["warning"])


def pieces() -> Iterator[bytes]:
    """A body that is made as it is sent."""
    raw = json.dumps(ORDER).encode()
    yield raw[:7]
    yield raw[7:]


@pytest.mark.parametrize(
    "body", [pieces, lambda: memoryview(json.dumps(ORDER).encode()), lambda: json.dumps(ORDER)]
)
def test_bodies_of_every_kind_arrive(
    payment_sandbox: PaymentSandbox, orders: str, body: Callable[[], Any]
) -> None:
    """Pieces, bytes and texts."""
    headers = {"Content-Type": "application/json"}
    answer = payment_sandbox.session.post(orders, data=body(), headers=headers)
    assert answer.status_code == 201, answer.text


FAULTS: list[tuple[dict[str, Any], float, type[Exception]]] = [
    ({"hang": 0.3}, 0.2, requests.ReadTimeout),
    ({"hang": 0.01}, 5, requests.ConnectionError),
    ({"reset": True}, 5, requests.ConnectionError),
    ({"truncate": True}, 5, requests.exceptions.ChunkedEncodingError),
    ({"latency": 0.3}, 0.2, requests.ReadTimeout),
]


@pytest.mark.parametrize(
    ("fault", "timeout_seconds", "raised"), FAULTS, ids=[str(fault) for fault, _, _ in FAULTS]
)
@pytest.mark.parametrize("is_direct", [True, False])
def test_faults_raise_what_they_raise_over_sockets(
    payment_sandbox: PaymentSandbox,
    orders: str,
    fault: dict[str, Any],
    timeout_seconds: float,
    raised: type[Exception],
    is_direct: bool,
) -> None:
    """So the shop's code takes the same branch."""
    if fault == {"truncate": True} and not is_direct and not NOTICES_SHORT_BODIES:
        pytest.skip("this urllib3 does not notice it")
    payment_sandbox.client.faults([{"then": fault}])
    with requests.Session() as sockets:
        sockets.auth = (payment_sandbox.api_key, "")
        session = payment_sandbox.session if is_direct else sockets
        with pytest.raises(raised) as found:
            session.get(f"{orders}nothing/", timeout=(5, timeout_seconds))
    assert type(found.value) is raised


def test_after_a_lost_answer_its_webhook_has_told(payment_sandbox: PaymentSandbox, orders: str) -> None:
    """Before the request that lost it has raised."""
    known: list[str] = []
    payment_sandbox.deliver_to(shop_that(known.append))
    order_id = place(payment_sandbox)
    payment_sandbox.act(order_id)
    known.clear()
    payment_sandbox.client.faults([{"when": {"method": "POST"}, "then": {"reset": True, "phase": "after"}}])
    with pytest.raises(requests.ConnectionError):
        payment_sandbox.session.post(f"{orders}{order_id}/refunds/", json={"amount": 5})
    assert len(known) == 1


def test_responses_are_as_from_the_wire(payment_sandbox: PaymentSandbox, orders: str) -> None:
    """Reason, cookies, and an encoding; a wrong key's header included."""
    answer = payment_sandbox.session.get(f"{orders}nothing/")
    with pytest.raises(requests.HTTPError, match="Not Found for url"):
        answer.raise_for_status()
    order = payment_sandbox.session.post(orders, json={"currency": "EUR", "amount": 5}).json()
    page = f"http://{order['order_url']}"
    assert 'lang="de"' in payment_sandbox.session.get(f"{page}?language=de").text
    assert 'lang="de"' in payment_sandbox.session.get(page).text, "the cookie was kept"
    for header in ("Basic /////w==", "Basic a", "Bearer x"):
        wrong = requests.Request("GET", f"{orders}nothing/", headers={"Authorization": header}).prepare()
        assert payment_sandbox.session.send(wrong).status_code == 401


@pytest.mark.parametrize("order_id", ["Ж", "ü", "a b", "%41", "a%2Fb"])
def test_addresses_are_quoted_alike(payment_sandbox: PaymentSandbox, order_id: str) -> None:
    """By the client, without sockets and with them."""
    over_sockets = requests.get(
        f"{payment_sandbox.base_url}/v1/orders/{order_id}/", auth=(payment_sandbox.api_key, "")
    )
    directly = payment_sandbox.session.get(f"{payment_sandbox.base_url}/v1/orders/{order_id}/")
    assert (directly.status_code, directly.json()) == (over_sockets.status_code, over_sockets.json())


def test_headers_are_taken_as_servers_take_them(payment_sandbox: PaymentSandbox, orders: str) -> None:
    """Bytes are texts, and a_b is not a-b."""
    body = json.dumps(ORDER)
    right = payment_sandbox.session.post(orders, data=body, headers={"Content-Type": b"application/json"})
    assert right.status_code == 201
    wrong = payment_sandbox.session.post(orders, data=body, headers={"Content_Type": "application/json"})
    assert wrong.status_code == 415


def test_a_stream_without_its_final_slash(payment_sandbox: PaymentSandbox) -> None:
    """Goes over a socket, too."""
    url = f"{payment_sandbox.base_url}/control/events"
    with payment_sandbox.session.get(url, stream=True, timeout=5) as answer:
        assert next(answer.iter_lines()) == b": watching"


def test_calls_after_the_server_has_stopped_end() -> None:
    """What they owe is not delivered; nobody waits for it."""
    server = PaymentSandboxServer()
    sandbox = server.project({})
    sandbox.deliver_to(shop_that(lambda order_id: None))
    order_id = place(sandbox)
    server.stop()
    in_time(lambda: sandbox.act(order_id))


def test_the_adapter_is_for_this_server_alone(payment_sandbox: PaymentSandbox) -> None:
    """Another server on a port that begins alike is not meant."""
    other = payment_sandbox.session.get_adapter(f"{payment_sandbox.base_url}0/v1/orders/")
    assert not isinstance(other, InProcessAdapter)
    assert isinstance(
        payment_sandbox.session.get_adapter(f"{payment_sandbox.base_url}/v1/"), InProcessAdapter
    )


def test_a_shop_s_own_pages_are_not_touched(payment_sandbox: PaymentSandbox) -> None:
    """Its query and body come as they were sent."""
    app = Flask("shop")
    seen: list[Any] = []

    @app.post("/wöb")
    def webhook() -> str:
        seen.append((request.args["x"], request.get_json()["event"], request.host))
        return ""

    payment_sandbox.deliver_to(app, "https://shop.test:8443/wöb?x=ö")
    payment_sandbox.act(place(payment_sandbox), action="visit")
    assert seen == [("ö", "status_changed", "shop.test:8443")]
    assert isinstance(app.test_client(), FlaskClient)


def test_a_webhook_address_that_is_none_is_refused(payment_sandbox: PaymentSandbox) -> None:
    """And nothing is changed."""
    with pytest.raises(ValueError, match="webhook_url"):
        payment_sandbox.deliver_to(shop_that(lambda order_id: None), "shop.test/webhook")
    assert payment_sandbox.client.project()["settings"]["webhook_url"] is None


def test_a_project_that_its_test_deleted(payment_sandbox: PaymentSandbox) -> None:
    """Is not missed when the test ends."""
    payment_sandbox.client.delete_project()
    payment_sandbox.close()


@pytest.mark.parametrize("running", [False, True])
def test_wrong_settings_are_refused_alike(running: bool) -> None:
    """In this process and over a socket."""
    with make_server() as server:
        sandbox = PaymentSandboxServer(server.url if running else None)
        with pytest.raises(SandboxError) as refused:
            sandbox.project({"mode": "alive", "colour": "red"})
        assert {found.path for found in refused.value.violations} == {"mode", "colour"}
        made = sandbox.project({"payment_methods": ("credit-card",)}).client.project()
        assert (made["clock"]["mode"], made["settings"]["payment_methods"]) == ("frozen", ["credit-card"])
        sandbox.stop()
