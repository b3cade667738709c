"""In a merchant's suite: what the fixtures cost, with and without sockets, on one worker and on two."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median
from time import perf_counter

from sandbox.testing import PaymentSandboxServer
from tests.bench import report, seconds
from tests.bench.bodies import ORDER
from tests.bench.startup import environment

ROUNDS = 5
STARTS = 21
TESTS = 1000
BATCH = 5  # creations per test, so that their time stands out from pytest's own
FIRST_ORDER = f"""
from sandbox.testing import PaymentSandboxServer
server = PaymentSandboxServer()
project = server.project({{}})
assert project.client.call("POST", "/v1/orders/", {ORDER!r})["status"] == "new"
server.stop()
"""
SUITE = f"""
import pytest
from flask import Flask, request

ORDER = {ORDER!r}
shops = {{}}


@pytest.fixture(scope="session")
def app():
    app = Flask("shop")

    @app.post("/<key>")
    def webhook(key):
        shops[key].append(request.json["order_id"])
        return ""

    return app


@pytest.fixture
def come(payment_sandbox, app, request):
    came = shops[payment_sandbox.api_key] = []
    payment_sandbox.deliver_to(app, f"http://shop.test/{{payment_sandbox.api_key}}")
    return came


@pytest.fixture
def received(payment_sandbox, receiver):
    payment_sandbox.client.change_settings(webhook_url=receiver.url)
    return receiver


@pytest.fixture(scope="session")
def receiver():
    from sandbox.receiver import WebhookReceiver

    receiver = WebhookReceiver()
    yield receiver
    receiver.close()


@pytest.mark.parametrize("number", range(COUNT))
def test_without_sockets(payment_sandbox, come, number):
    order = payment_sandbox.session.post(f"{{payment_sandbox.base_url}}/v1/orders/", json=ORDER).json()
    payment_sandbox.act(order["id"])
    payment_sandbox.clock.advance("PT30M")
    assert order["id"] in come


@pytest.mark.parametrize("number", range(COUNT))
def test_with_sockets(payment_sandbox, received, number):
    order = payment_sandbox.session.post(f"{{payment_sandbox.base_url}}/v1/orders/", json=ORDER).json()
    payment_sandbox.act(order["id"])
    payment_sandbox.clock.advance("PT30M")
    received.wait_for(order["id"])


@pytest.mark.parametrize("number", range(COUNT))
def test_a_project(payment_sandbox, number):
    pass


@pytest.mark.parametrize("number", range(COUNT))
def test_bare(number):
    pass


@pytest.fixture(scope="session")
def client(payment_sandbox_server):
    return payment_sandbox_server.in_process.app.test_client()


@pytest.mark.parametrize("number", range(COUNT))
def test_creations(client, number):
    for _ in range(BATCH):
        client.post("/v1/orders/", json=ORDER, auth=("sandbox-key", "")).close()

"""


def run(folder: Path, test: str, *options: str, url: str | None = None) -> float:
    """Seconds of a run of one of the tests, a thousand times."""
    more = {"SANDBOX_URL": url} if url is not None else {}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:randomly"]
    begun = perf_counter()
    subprocess.run(
        [*command, *options, "-k", test, str(folder)],
        check=True,
        stdout=subprocess.DEVNULL,
        env={**environment(str(folder / "cache")), **more},
    )
    return perf_counter() - begun


def starts(folder: Path) -> None:
    """Of the server, in a process that has imported it, and from nothing to the first order."""
    cache = environment(str(folder / "cache"))

    def first_order() -> object:
        return subprocess.run([sys.executable, "-c", FIRST_ORDER], check=True, env=cache)

    def flask() -> object:
        return subprocess.run([sys.executable, "-c", "import flask"], check=True, env=cache)

    first_order()
    flask()
    ratio = median(seconds(first_order) / seconds(flask) for _ in range(STARTS))
    report("in-process server and first order / python -c 'import flask'", ratio, "none")
    PaymentSandboxServer().stop()
    ready = median(_ready_seconds() for _ in range(STARTS))
    report("server thread ready and answering, once imported / 10 ms", ready / 0.010, "<= 1")


def _ready_seconds() -> float:
    begun = perf_counter()
    server = PaymentSandboxServer()
    server.session_for("sandbox-key").get(f"{server.base_url}/health/")
    taken = perf_counter() - begun
    server.stop()
    return taken


def suites(folder: Path) -> None:
    """A thousand tests of each kind, less what pytest itself takes for them."""
    (folder / "test_suite.py").write_text(SUITE.replace("COUNT", str(TESTS)).replace("BATCH", str(BATCH)))
    project = _costs(folder, "test_a_project")
    report("a fresh project for a test / an order creation", project, "<= 3")
    for test, aim in (("test_without_sockets", "<= 6"), ("test_with_sockets", "none")):
        what = test.removeprefix("test_").replace("_", " ")
        report(f"1,000 tests {what} / 1,000 bare creations", _costs(folder, test), aim)
        two = median(run(folder, test, "-n", "2") / run(folder, test) for _ in range(3))
        report(f"the same on two workers / on one ({os.cpu_count()} processors)", two, "none")


def _costs(folder: Path, test: str) -> float:
    """What a test costs in order creations, without what pytest itself takes: the median of rounds."""

    def once() -> float:
        bare = run(folder, "test_bare")
        creation = (run(folder, "test_creations") - bare) / BATCH
        return (run(folder, test) - bare) / creation

    return median(once() for _ in range(ROUNDS))


def main() -> None:
    """All of it."""
    with tempfile.TemporaryDirectory() as name:
        starts(Path(name))
        suites(Path(name))
