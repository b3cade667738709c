"""Webhooks that a shop causes while it answers a request come after its response, as in production."""

from types import SimpleNamespace
from typing import Any

import pytest
from flask import Flask, request
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route
from starlette.testclient import TestClient

from payment_sandbox.scenarios.variations import sequences
from payment_sandbox.testing.project import PaymentSandbox
from payment_sandbox.testing.servers import PaymentSandboxServer
from pytest_payment_sandbox.sequences import SEQUENCE_FIXTURE, configure_project

TRANSFER = {"currency": "EUR", "amount": 5, "transactions": [{"payment_method": "bank-transfer"}]}


class Shop:
    """Notes what it knows of an order when a webhook arrives."""

    def __init__(self, sandbox: PaymentSandbox) -> None:
        self.sandbox = sandbox
        self.known: set[str] = set()
        self.arrived: list[str] = []
        self.flask = Flask("shop")
        self.flask.testing = True
        self.flask.add_url_rule("/checkout", view_func=self.checkout, methods=["POST"])
        self.flask.add_url_rule("/webhook", view_func=self.webhook, methods=["POST"])

    def checkout(self) -> str:
        for _ in range(int(request.args.get("orders", 1))):
            order = self.sandbox.session.post(f"{self.sandbox.base_url}/v1/orders/", json=TRANSFER).json()
            self.arrived.append("answered")
            self.known.add(order["id"])
        if "fail" in request.args:
            raise ZeroDivisionError
        return "thank you"

    def webhook(self) -> str:
        self.arrived.append("known" if request.get_json()["order_id"] in self.known else "unknown")
        return ""


@pytest.fixture
def shop(payment_sandbox: PaymentSandbox) -> Shop:
    """A shop in this process."""
    made = Shop(payment_sandbox)
    payment_sandbox.deliver_to(made.flask)
    return made


def test_the_shop_has_stored_the_order_before_it_hears_of_it(shop: Shop) -> None:
    """And the test finds everything done when it has the response."""
    assert shop.flask.test_client().post("/checkout").text == "thank you"
    assert shop.arrived == ["answered", "known"]


def test_what_several_calls_cause_comes_in_their_order(shop: Shop) -> None:
    """All of it after the response."""
    shop.flask.test_client().post("/checkout?orders=3")
    assert shop.arrived == ["answered"] * 3 + ["known"] * 3
    states = [webhook["state"] for webhook in shop.sandbox.webhooks]
    assert states == ["delivered"] * 3


def test_a_request_that_fails_has_webhooks_too(shop: Shop) -> None:
    """The order was made."""
    with pytest.raises(ZeroDivisionError):
        shop.flask.test_client().post("/checkout?fail=1")
    assert shop.arrived == ["answered", "known"]
    shop.flask.testing = False
    assert shop.flask.test_client().post("/checkout?fail=1").status_code == 500
    assert shop.arrived == ["answered", "known"] * 2


def test_a_call_of_the_test_waits_as_ever(shop: Shop) -> None:
    """It is no request to the shop."""
    shop.sandbox.session.post(f"{shop.sandbox.base_url}/v1/orders/", json=TRANSFER)
    assert shop.arrived == ["unknown"]


def test_the_application_is_left_as_it_was(shop: Shop) -> None:
    """Its class is replaced while it is watched."""
    assert isinstance(shop.flask, Flask)
    shop.sandbox.deliver_to(shop.flask)
    assert type(shop.flask) is not Flask
    shop.sandbox.deliver_over_network()
    assert type(shop.flask) is Flask


def test_two_projects_may_watch_one_application(
    shop: Shop, payment_sandbox_server: PaymentSandboxServer
) -> None:
    """The last one to leave restores it."""
    with payment_sandbox_server.project() as other:
        other.deliver_to(shop.flask)
    assert type(shop.flask) is not Flask
    shop.flask.test_client().post("/checkout")
    assert shop.arrived == ["answered", "known"]


def test_a_function_is_an_application_too(payment_sandbox: PaymentSandbox) -> None:
    """It cannot be watched: its webhooks come before its response."""

    def app(environ: dict[str, Any], start_response: Any) -> list[bytes]:
        start_response("204 No Content", [])
        return []

    payment_sandbox.deliver_to(app)
    payment_sandbox.session.post(f"{payment_sandbox.base_url}/v1/orders/", json=TRANSFER)
    assert [webhook["state"] for webhook in payment_sandbox.webhooks] == ["delivered"]


@pytest.mark.parametrize("is_async", [True, False])
def test_an_asgi_application_hears_of_it_afterwards(payment_sandbox: PaymentSandbox, is_async: bool) -> None:
    """Whether its view runs on the loop or on a thread."""
    arrived: list[str] = []

    def place() -> PlainTextResponse:
        answer = payment_sandbox.session.post(f"{payment_sandbox.base_url}/v1/orders/", json=TRANSFER)
        assert answer.status_code == 201
        arrived.append("answered")
        return PlainTextResponse("thank you")

    async def on_loop(request: Request) -> PlainTextResponse:
        return place()

    def on_thread(request: Request) -> PlainTextResponse:
        return place()

    async def webhook(request: Request) -> PlainTextResponse:
        arrived.append("webhook")
        return PlainTextResponse("")

    view = on_loop if is_async else on_thread
    app = Starlette(
        routes=[
            Route("/checkout", view, methods=["POST"]),
            Route("/webhook", webhook, methods=["POST"]),
        ]
    )
    payment_sandbox.deliver_to(app)
    assert TestClient(app).post("/checkout").text == "thank you"
    assert arrived == ["answered", "webhook"]
    assert type(app) is not Starlette
    payment_sandbox.close()
    assert type(app) is Starlette


@pytest.mark.parametrize(
    ("timing", "arrived"),
    [("after_response", ["answered", "known"]), ("before_response", ["unknown", "answered"])],
)
def test_the_setting_makes_the_difference(shop: Shop, timing: str, arrived: list[str]) -> None:
    """Before the response, the shop does not know the order yet."""
    shop.sandbox.client.change_settings(webhook_timing=timing)
    shop.flask.test_client().post("/checkout")
    assert shop.arrived == arrived


def test_the_five_sequences_are_five(payment_sandbox_server: PaymentSandboxServer) -> None:
    """Each lets something else happen."""
    happened = []
    for sequence in sequences():
        with payment_sandbox_server.project() as project:
            configure_project(project, SimpleNamespace(params={SEQUENCE_FIXTURE: sequence}))
            shop = Shop(project)
            project.deliver_to(shop.flask)
            shop.flask.test_client().post("/checkout?orders=2")
            project.clock.advance("PT1M")
            first, second = (webhook["attempts"][0]["real_at"] for webhook in project.webhooks)
            happened.append((*shop.arrived, first < second))
    assert len(set(happened)) == len(sequences()) == 5, happened
