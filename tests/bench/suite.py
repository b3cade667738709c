"""A merchant's tests, and smaller tests for comparison; ``tests.bench.plugin`` times them.

This module is a pytest plugin, too: it runs the kinds in turn, so that a slowdown of the machine affects all
of them, and writes the total seconds of each kind to the file named by ``BENCH_DURATIONS``.
"""

import json
import os
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from flask import Flask, request
from werkzeug.test import Client

from payment_sandbox.client.receiver import WebhookReceiver
from payment_sandbox.testing.project import PaymentSandbox
from tests.bench.bodies import ORDER
from tests.support.servers import make_server

WARM_UP: Final = 0  # the first test of each kind sets up shared objects; it does not count
NUMBERS: Final = range(1 + int(os.environ.get("BENCH_TESTS", "0")))

seconds_by_kind: dict[str, float] = defaultdict(float)
received: dict[str, list[str]] = {}


def pytest_collection_modifyitems(items: list[pytest.Function]) -> None:
    """Interleave the kinds: the first test of each kind, then the second of each."""
    items.sort(key=lambda item: str(item.callspec.params["number"]).zfill(9))


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Add up the durations by kind."""
    kind, _, number = report.nodeid.rpartition("::")[2].rstrip("]").partition("[")
    if number != str(WARM_UP):
        seconds_by_kind[kind] += report.duration


def pytest_sessionfinish() -> None:
    """Write the total durations."""
    if "BENCH_DURATIONS" in os.environ:
        Path(os.environ["BENCH_DURATIONS"]).write_text(json.dumps(seconds_by_kind))


@pytest.fixture(scope="session")
def client() -> Client:
    """A client of a server for bare creations."""
    return Client(make_server().app)


@pytest.fixture(scope="session")
def app() -> Flask:
    """A shop that records webhooks."""
    app = Flask("shop")

    @app.post("/<key>")
    def webhook(key: str) -> str:
        received[key].append(request.get_json()["order_id"])
        return ""

    return app


@pytest.fixture
def received_webhooks(payment_sandbox: PaymentSandbox, app: Flask) -> list[str]:
    """The webhooks that the shop receives in this process."""
    webhooks = received[payment_sandbox.api_key] = []
    payment_sandbox.deliver_to(app, f"http://shop.test/{payment_sandbox.api_key}")
    return webhooks


@pytest.fixture(scope="session")
def receiver() -> Iterator[WebhookReceiver]:
    """A shop behind a socket."""
    receiver = WebhookReceiver()
    yield receiver
    receiver.close()


@pytest.fixture
def project_receiver(payment_sandbox: PaymentSandbox, receiver: WebhookReceiver) -> WebhookReceiver:
    """The shop behind a socket, with this test's project."""
    payment_sandbox.client.change_settings(webhook_url=receiver.url)
    return receiver


@pytest.mark.parametrize("number", NUMBERS)
def test_nothing(number: int) -> None:
    """An empty test shows the time of pytest itself."""


@pytest.mark.parametrize("number", NUMBERS)
def test_a_creation(client: Client, number: int) -> None:
    """A single order is created."""
    client.post("/v1/orders/", json=ORDER, auth=("sandbox-key", "")).close()


@pytest.mark.parametrize("number", NUMBERS)
def test_a_project(payment_sandbox: PaymentSandbox, number: int) -> None:
    """The fixture creates a project."""


def pay_order(sandbox: PaymentSandbox) -> str:
    """Create and pay an order, advance half an hour, and return the order's id."""
    order: dict[str, Any] = sandbox.session.post(f"{sandbox.base_url}/v1/orders/", json=ORDER).json()
    sandbox.act(order["id"])
    sandbox.clock.advance("PT30M")
    return str(order["id"])


@pytest.mark.parametrize("number", NUMBERS)
def test_without_sockets(payment_sandbox: PaymentSandbox, received_webhooks: list[str], number: int) -> None:
    """An order is created and paid, and its webhook arrives without sockets."""
    assert pay_order(payment_sandbox) in received_webhooks


@pytest.mark.parametrize("number", NUMBERS)
def test_with_sockets(
    payment_sandbox: PaymentSandbox, project_receiver: WebhookReceiver, number: int
) -> None:
    """An order is created and paid, and its webhook arrives over sockets."""
    project_receiver.wait_for(pay_order(payment_sandbox))
