"""The sandbox's fixtures and markers; a suite that does not use them loads only this small module."""

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from payment_sandbox.testing.project import PaymentSandbox, PaymentSandboxServer
    from payment_sandbox.testing.receiver import WebhookReceiver

ORDERS_FIXTURE = "payment_webhook_order"
PROJECT: "pytest.StashKey[PaymentSandbox]" = pytest.StashKey()
WEBHOOK_ORDERS: dict[str, dict[str, Any]] = {
    # from the simplest to the most complex
    "after the response": {},
    "before the response": {"settings": {"webhook_timing": "before_response"}},
    "twice": {"webhooks": [{"then": {"duplicate": 2}}]},
    "swapped": {"webhooks": [{"then": {"swap": True}}]},
    "twice, before the response": {
        "settings": {"webhook_timing": "before_response"},
        "webhooks": [{"then": {"duplicate": 2}}],
    },
}


def pytest_configure(config: pytest.Config) -> None:
    """Register the markers."""
    for line in (
        "payment_scenario(name): the scenario that the test's project starts with",
        "payment_settings(**settings): the settings of the test's project",
        "payment_webhook_orders: run the test once per order in which webhooks can arrive",
    ):
        config.addinivalue_line("markers", line)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a marked test once per webhook order."""
    if metafunc.definition.get_closest_marker("payment_webhook_orders") is not None:
        if ORDERS_FIXTURE not in metafunc.fixturenames:
            metafunc.fixturenames.append(ORDERS_FIXTURE)
        metafunc.parametrize(ORDERS_FIXTURE, list(WEBHOOK_ORDERS), ids=_webhook_id)


def _webhook_id(order: str) -> str:
    return f"webhooks {order}"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Refuse the marker on tests that cannot be parametrized."""
    for item in items:
        marked = item.get_closest_marker("payment_webhook_orders") is not None
        if marked and ORDERS_FIXTURE not in getattr(getattr(item, "callspec", None), "params", {}):
            raise pytest.UsageError(
                f"{item.nodeid}: payment_webhook_orders needs a test function; "
                "methods of a unittest.TestCase cannot be run once per order"
            )


@pytest.fixture(scope="session")
def payment_sandbox_server() -> "Iterator[PaymentSandboxServer]":
    """A sandbox in this process on any free port, or the running one at ``SANDBOX_URL``."""
    from payment_sandbox.testing.project import PaymentSandboxServer

    url, token = os.environ.get("SANDBOX_URL"), os.environ.get("SANDBOX_CONTROL_TOKEN")
    server = PaymentSandboxServer(url or None, token or None)
    yield server
    server.stop()


@pytest.fixture
def payment_sandbox(
    request: pytest.FixtureRequest, payment_sandbox_server: "PaymentSandboxServer"
) -> "Iterator[PaymentSandbox]":
    """A fresh project with a frozen clock; it is deleted after the test."""
    settings: dict[str, Any] = {}
    for marker in reversed(list(request.node.iter_markers("payment_settings"))):
        if marker.args:
            raise pytest.UsageError("payment_settings takes settings by name: payment_settings(mode='live')")
        settings.update(marker.kwargs)
    project = payment_sandbox_server.project(settings)
    request.node.stash[PROJECT] = project
    try:
        scenario = request.node.get_closest_marker("payment_scenario")
        if scenario is not None:
            project.scenario(_scenario_of(scenario))
        _order_webhooks(project, getattr(request.node, "callspec", None))
        yield project
    finally:
        project.close()


def _scenario_of(marker: pytest.Mark) -> Any:
    named = [*marker.args, *marker.kwargs.values()]
    if len(named) != 1 or marker.kwargs.keys() - {"name"}:
        raise pytest.UsageError("payment_scenario takes one scenario: payment_scenario('webhook-lost')")
    return named[0]


def _order_webhooks(project: "PaymentSandbox", callspec: Any) -> None:
    order = WEBHOOK_ORDERS.get(callspec.params.get(ORDERS_FIXTURE, "")) if callspec is not None else None
    if order:
        if "webhooks" in order:
            project.client.faults(webhooks=order["webhooks"])
        if "settings" in order:
            project.client.change_settings(**order["settings"])


@pytest.fixture
def webhook_receiver() -> "Iterator[WebhookReceiver]":
    """A real HTTP server that records the webhooks it receives."""
    from payment_sandbox.testing.receiver import WebhookReceiver

    receiver = WebhookReceiver()
    yield receiver
    receiver.close()


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    """Add the project's timeline to the report of a failed test."""
    outcome: Any = yield
    report = outcome.get_result()
    project = item.stash.get(PROJECT, None)
    if report.failed and project is not None and call_is_over(report):
        try:
            told = project.timeline()
        except Exception as error:  # a report must not hide the failure itself
            told = f"the timeline could not be read: {error}"
        if hasattr(report.longrepr, "addsection"):
            report.longrepr.addsection("payment sandbox", told)  # shown whatever --show-capture says
        else:
            report.sections.append(("payment sandbox", told))


def call_is_over(report: pytest.TestReport) -> bool:
    """Whether the project still exists: teardown deletes it."""
    return report.when != "teardown"


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """For each test that failed under some webhook order, name the simplest such order."""
    smallest: dict[str, int] = {}
    orders = list(WEBHOOK_ORDERS)
    for report in terminalreporter.stats.get("failed", ()):
        test, _, rest = report.nodeid.partition("[")
        for rank, order in enumerate(orders):
            if _webhook_id(order) in rest.rstrip("]").split("-"):
                smallest[test] = min(rank, smallest.get(test, rank))
    for test, rank in smallest.items():
        terminalreporter.write_line(f"{test}: the simplest webhook order that fails is: {orders[rank]}")
