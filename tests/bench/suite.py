"""A merchant's tests, and smaller ones to hold them against; ``tests.bench.plugin`` times them.

It is a pytest plugin, too: it runs the kinds in turn, so that a machine that gets slower makes all of them
slower, and writes what each kind took in all to the file named by ``BENCH_DURATIONS``, in seconds.
"""

import json
import os
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from flask import Flask, request
from flask.testing import FlaskClient

from payment_sandbox.client.receiver import WebhookReceiver
from payment_sandbox.testing.project import PaymentSandbox
from tests.bench.bodies import ORDER
from tests.support.servers import make_server

WARM_UP: Final = 0  # the first of each kind makes what all others share; it does not count
NUMBERS: Final = range(1 + int(os.environ.get("BENCH_TESTS", "0")))

took_seconds: dict[str, float] = defaultdict(float)
came: dict[str, list[str]] = {}


def pytest_collection_modifyitems(items: list[pytest.Function]) -> None:
    """One of each kind, then the next of each."""
    items.sort(key=lambda item: str(item.callspec.params["number"]).zfill(9))


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Add up, by kind."""
    kind, _, number = report.nodeid.rpartition("::")[2].rstrip("]").partition("[")
    if number != str(WARM_UP):
        took_seconds[kind] += report.duration


def pytest_sessionfinish() -> None:
    """Write the sums."""
    if "BENCH_DURATIONS" in os.environ:
        Path(os.environ["BENCH_DURATIONS"]).write_text(json.dumps(took_seconds))


@pytest.fixture(scope="session")
def client() -> FlaskClient:
    """Of a server for bare creations."""
    return make_server().app.test_client()


@pytest.fixture(scope="session")
def app() -> Flask:
    """A shop that only listens."""
    app = Flask("shop")

    @app.post("/<key>")
    def webhook(key: str) -> str:
        came[key].append(request.get_json()["order_id"])
        return ""

    return app


@pytest.fixture
def listening(payment_sandbox: PaymentSandbox, app: Flask) -> list[str]:
    """What the shop hears in this process."""
    heard = came[payment_sandbox.api_key] = []
    payment_sandbox.deliver_to(app, f"http://shop.test/{payment_sandbox.api_key}")
    return heard


@pytest.fixture(scope="session")
def receiver() -> Iterator[WebhookReceiver]:
    """A shop behind a socket."""
    receiver = WebhookReceiver()
    yield receiver
    receiver.close()


@pytest.fixture
def receiving(payment_sandbox: PaymentSandbox, receiver: WebhookReceiver) -> WebhookReceiver:
    """The same shop, for this test's project."""
    payment_sandbox.client.change_settings(webhook_url=receiver.url)
    return receiver


@pytest.mark.parametrize("number", NUMBERS)
def test_nothing(number: int) -> None:
    """What pytest itself takes."""


@pytest.mark.parametrize("number", NUMBERS)
def test_a_creation(client: FlaskClient, number: int) -> None:
    """An order and no more."""
    client.post("/v1/orders/", json=ORDER, auth=("sandbox-key", "")).close()


@pytest.mark.parametrize("number", NUMBERS)
def test_a_project(payment_sandbox: PaymentSandbox, number: int) -> None:
    """The fixture and no more."""


def paid(sandbox: PaymentSandbox) -> str:
    """An order that was paid, half an hour ago; gives its id."""
    order: dict[str, Any] = sandbox.session.post(f"{sandbox.base_url}/v1/orders/", json=ORDER).json()
    sandbox.act(order["id"])
    sandbox.clock.advance("PT30M")
    return str(order["id"])


@pytest.mark.parametrize("number", NUMBERS)
def test_without_sockets(payment_sandbox: PaymentSandbox, listening: list[str], number: int) -> None:
    """Created, paid, advanced, and the webhook came."""
    assert paid(payment_sandbox) in listening


@pytest.mark.parametrize("number", NUMBERS)
def test_with_sockets(payment_sandbox: PaymentSandbox, receiving: WebhookReceiver, number: int) -> None:
    """The same, with a server and a shop behind sockets."""
    receiving.wait_for(paid(payment_sandbox))
