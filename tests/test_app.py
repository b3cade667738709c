"""The Flask application: under Flask's own server, gunicorn and its test client, and inside a shop's tests."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import Event
from typing import Any

import flask
import pytest
import requests

from payment_sandbox import PaymentSandbox, create_app
from tests.support.ports import free_port
from tests.support.shop import Received, Shop

AUTH = ("sandbox-key", "")
AS_JSON = {"Content-Type": "application/json"}
TRANSFER = {"currency": "EUR", "amount": 1295, "transactions": [{"payment_method": "bank-transfer"}]}


def first_webhook(shop: Shop) -> Received:
    """Wait for the first webhook."""
    for _ in range(3000):
        if shop.received:
            break
        Event().wait(0.02)
    return shop.received[0]


def test_the_public_function_creates_a_flask_application() -> None:
    """Someone who knows Flask gets what they expect; its routes include all paths of the description."""
    app = create_app()
    assert type(app) is flask.Flask
    assert sorted(app.blueprints) == ["control", "dashboard", "docs", "merchant", "pages"]
    routes = "\n".join(rule.rule for rule in app.url_map.iter_rules())
    for path in app.test_client().get("/openapi.json").get_json()["paths"]:
        assert path.replace("{", "<").replace("}", ">") in routes, path


def test_the_test_client_creates_pays_and_reads(shop: Shop) -> None:
    """The test client needs no server; the webhook of a call goes out although nobody closes the response."""
    client = create_app(webhook_url=shop.url).test_client()
    created = client.post("/v1/orders/", json=TRANSFER, auth=AUTH)
    assert created.status_code == 201
    order = created.get_json()
    assert order["order_url"].startswith("localhost/pay/"), "the address of the first request"
    assert first_webhook(shop).body["order_id"] == order["id"]
    assert client.get(f"/v1/orders/{order['id']}/", auth=AUTH).get_json()["status"] == "processing"
    page = client.get("/dashboard/", follow_redirects=True)
    assert (page.status_code, "Orders" in page.text) == (200, True)
    assert client.get("/v1/orders/", auth=AUTH).status_code == 405
    assert client.options("/v1/orders/", auth=AUTH).status_code == 405


def test_a_call_without_a_token_is_for_this_machine() -> None:
    """Without a control token, other machines can neither list the projects nor see the dashboard."""
    client = create_app().test_client()
    assert client.get("/control/projects/").status_code == 200
    elsewhere: Any = {"environ_overrides": {"REMOTE_ADDR": "192.0.2.7"}}
    assert client.get("/control/projects/", **elsewhere).status_code == 401
    assert "sign-in" in client.get("/dashboard/", **elsewhere).headers["Location"]
    named = create_app(control_token="secret").test_client()
    bearer = {"Authorization": "Bearer secret"}
    assert named.get("/control/projects/", headers=bearer, **elsewhere).status_code == 200
    assert named.get("/control/projects/").status_code == 401


def test_a_forged_host_does_not_become_the_public_url() -> None:
    """The first request sets the address only if its host cannot be forged by DNS rebinding."""
    client = create_app().test_client()
    forged = client.post("/v1/orders/", json=TRANSFER, auth=AUTH, base_url="http://evil.example")
    assert forged.status_code == 403
    order = client.post("/v1/orders/", json=TRANSFER, auth=AUTH, base_url="http://127.0.0.1:5000").get_json()
    assert order["order_url"].startswith("127.0.0.1:5000/pay/")


def test_an_application_below_a_path_of_another_names_the_path() -> None:
    """The addresses of pages begin with the path where the application is mounted."""
    client = create_app().test_client()
    order = client.post("/v1/orders/", json=TRANSFER, auth=AUTH, base_url="http://localhost/mount").get_json()
    assert order["order_url"].startswith("localhost/mount/pay/")
    page = client.get("/", base_url="http://localhost/mount", headers={"Accept": "text/html"})
    assert page.headers["Location"].endswith("/mount/dashboard/")


@contextmanager
def running(*command: str, port: int) -> Iterator[str]:
    """Run a server, and yield its address once it answers."""
    program = subprocess.Popen([sys.executable, "-m", *command], env={**os.environ, "NO_COLOR": "1"})
    url = f"http://127.0.0.1:{port}"
    try:
        for _ in range(600):
            with suppress(requests.ConnectionError):
                requests.get(f"{url}/health/", timeout=60)
                break
            assert program.poll() is None, "the server has ended"
            Event().wait(0.05)
        yield url
    finally:
        program.terminate()
        program.wait(60)


SERVERS = {
    "flask": ("flask", "--app", "payment_sandbox", "run", "--port", "{port}"),
    "gunicorn": (
        *("gunicorn", "--bind", "127.0.0.1:{port}", "--workers", "1", "--threads", "64", "--timeout", "0"),
        "payment_sandbox:create_app()",
    ),
    "serve": ("payment_sandbox", "serve", "--port", "{port}", "--quiet"),
}


@pytest.mark.rule("SET-59")
@pytest.mark.parametrize("name", SERVERS)
def test_the_answer_comes_before_the_webhook_under_each_server(name: str, shop: Shop) -> None:
    """The background thread sends the webhook once the answer is on its way."""
    port, answered, was_answered = free_port(), Event(), []

    def note(received: Received) -> int:
        was_answered.append(answered.wait(60))
        return 200

    shop.answer = note
    with running(*(part.format(port=port) for part in SERVERS[name]), port=port) as url:
        order = {**TRANSFER, "webhook_url": shop.url}
        created = requests.post(f"{url}/v1/orders/", json=order, auth=AUTH, timeout=30)
        answered.set()
        assert created.status_code == 201
        first_webhook(shop)
        assert was_answered == [True]
        with requests.get(f"{url}/control/events/", auth=AUTH, stream=True, timeout=60) as events:
            assert next(events.iter_lines()) == b": watching"
        sent = (json.dumps(order).encode(), b" " * (1 << 20))
        whole = requests.post(
            f"{url}/v1/orders/", data=iter(sent[:1]), auth=AUTH, headers=AS_JSON, timeout=30
        )
        large = requests.post(f"{url}/v1/orders/", data=iter(sent), auth=AUTH, headers=AS_JSON, timeout=30)
        assert (whole.status_code, large.status_code) == (201, 413)
        for fault in ({"reset": True}, {"truncate": True}):
            faults = {"faults": [{"when": {"path": "/v1/orders/"}, "then": fault}]}
            assert requests.put(f"{url}/control/faults/", json=faults, auth=AUTH, timeout=30).ok
            with pytest.raises(requests.RequestException):
                requests.post(f"{url}/v1/orders/", json=order, auth=AUTH, timeout=30)
        dashboard = requests.get(f"{url}/", headers={"Accept": "text/html"}, timeout=60)
        assert dashboard.text.startswith("<!doctype html>")


def test_a_shop_runs_outside_of_the_application(payment_sandbox: PaymentSandbox) -> None:
    """Neither a webhook handler nor a job of the shop sees the sandbox's application, whatever its thread."""
    shop, seen = flask.Flask("shop"), list[bool]()

    @shop.post("/webhook")
    def webhook() -> str:
        seen.append(flask.current_app.name == "shop")
        return json.dumps({})

    def bare(environ: dict[str, Any], start_response: Any) -> list[bytes]:
        seen.append(not flask.has_app_context() and not flask.has_request_context())
        return list(shop(environ, start_response))

    payment_sandbox.deliver_to(bare)
    payment_sandbox.every("PT1M", lambda: seen.append(not flask.has_app_context()))
    for timing in ("after_response", "before_response"):
        payment_sandbox.client.change_settings(webhook_timing=timing)
        payment_sandbox.session.post(
            f"{payment_sandbox.base_url}/v1/orders/", json=TRANSFER
        ).raise_for_status()
    payment_sandbox.clock.advance("PT2M")
    assert (len(seen) >= 6, set(seen)) == (True, {True})
