"""The fixtures in separate suites, run as merchants run them."""

from pathlib import Path

import pytest

from payment_sandbox.serving.server import Server
from tests.support.commands import run_python
from tests.support.suites import passed, suite

USING_ALL = """
def test_all_of_it(payment_sandbox, webhook_receiver):
    payment_sandbox.client.change_settings(webhook_url=webhook_receiver.url)
    order = requests.post(
        f"{payment_sandbox.base_url}/v1/orders/", json=ORDER, auth=(payment_sandbox.api_key, "")
    ).json()
    payment_sandbox.act(order["id"])
    assert webhook_receiver.wait_for(order["id"]).body["event"] == "status_changed"
    assert payment_sandbox.wait_for(order["id"], "completed")["status"] == "completed"
    payment_sandbox.client.wait(idle=True)
    webhook_receiver.answer_with(503)
    payment_sandbox.scenario("refund-fails-later")
    before = payment_sandbox.clock.now
    payment_sandbox.clock.advance("PT30M")
    assert (payment_sandbox.clock.now - before).total_seconds() == 1800
    assert [webhook["state"] for webhook in payment_sandbox.webhooks] == ["delivered", "delivered"]


def test_nothing_leaks(payment_sandbox):
    assert payment_sandbox.client.journal() == []
    assert payment_sandbox.client.agenda() == []
    assert payment_sandbox.client.project()["scenario"] == "default"
"""


@pytest.mark.parametrize(
    ("options", "environment"),
    [
        pytest.param((), {"SANDBOX_URL": "", "SANDBOX_CONTROL_TOKEN": ""}, id="in this process"),
        pytest.param(("-p", "randomly"), {}, id="in any order", marks=pytest.mark.prove),
        pytest.param((), {"SANDBOX_URL": "URL"}, id="with a running server"),
    ],
)
def test_the_fixtures_of_the_contract(
    tmp_path: Path, server: Server, options: tuple[str, ...], environment: dict[str, str]
) -> None:
    """The fixtures work, with a new project for each test."""
    variables = {name: value.replace("URL", server.url) for name, value in environment.items()}
    passed(suite(tmp_path, USING_ALL, *options, **variables), 2)


FAILING = """
def test_fails(payment_sandbox):
    place(payment_sandbox)
    assert False
"""


def test_parallel_workers(tmp_path: Path) -> None:
    """The fixtures work with pytest-xdist, and the report of a failure has its timeline."""
    result = suite(tmp_path, USING_ALL + FAILING, "-n", "2")
    assert "1 failed, 2 passed" in result.stdout, result.stdout
    assert result.stdout.count("POST /v1/orders/ -> 201") == 1, result.stdout


FROZEN = """
from datetime import datetime, UTC
from freezegun import freeze_time

NOW = datetime.now(UTC)


@pytest.fixture(scope="session", autouse=True)
def frozen():
    with freeze_time("2020-02-02"):
        yield


def test_frozen(payment_sandbox, shop):
    before = payment_sandbox.clock.now
    assert before >= NOW
    order = place(payment_sandbox)
    payment_sandbox.act(order["id"])
    payment_sandbox.clock.advance("PT30M")
    assert (payment_sandbox.clock.now - before).total_seconds() == 1800
    assert shop.known[-1] == "completed"
    state = payment_sandbox.client.snapshot()
    payment_sandbox.client.restore(state)
    assert payment_sandbox.client.order(order["id"])["status"] == "completed"
"""


def test_a_frozen_host_clock_stays_outside(tmp_path: Path) -> None:
    """A host clock that is frozen, even before the sandbox is imported, neither blocks it nor affects its clocks."""
    passed(suite(tmp_path, FROZEN), 1)


def test_the_plugin_costs_a_suite_without_payments_nothing() -> None:
    """The plugin imports few modules."""
    code = (
        "import sys, pytest; before = set(sys.modules); import pytest_payment_sandbox.plugin; "
        "print(*sorted(set(sys.modules) - before))"
    )
    assert run_python(code).stdout.split() == [
        "payment_sandbox",
        "payment_sandbox.interrupts",
        "payment_sandbox.loading",
        "payment_sandbox.version",
        "pytest_payment_sandbox",
        "pytest_payment_sandbox.plugin",
        "pytest_payment_sandbox.plugin_options",
    ]
