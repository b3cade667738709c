"""The sandbox's fixtures and hooks; a suite that does not use them loads only three small modules."""

import gc
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, Literal

import pytest

import payment_sandbox as sandbox
from payment_sandbox.loading import load_validators
from pytest_payment_sandbox import plugin_options, rehearsal, reports

PROJECT_KEY: "pytest.StashKey[sandbox.PaymentSandbox]" = pytest.StashKey()
REHEARSAL_FIXTURES = ("payment_books", "payment_traces", "payment_shop_restart")


pytest_addoption = plugin_options.add_options


def pytest_configure(config: pytest.Config) -> None:
    """Register the markers, and validate the options."""
    for line in plugin_options.MARKERS:
        config.addinivalue_line("markers", line)
    plugin_options.check_options(config)
    if config.getoption("payment_rehearse_only") or config.getoption("payment_rehearse_report"):
        rehearsal.driver.check_options(config)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Create a project if a marker configures one."""
    _add_fixtures(metafunc.definition, metafunc.fixturenames)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Create a project for tests without fixture parameters, too, if a marker configures one."""
    for item in items:
        fixtures = getattr(item, "fixturenames", None)
        if fixtures is not None and not _uses_mixin(item):
            _add_fixtures(item, fixtures)


def _add_fixtures(item: pytest.Item, fixtures: list[str]) -> None:
    if plugin_options.needs_project(item, fixtures):
        fixtures.append("payment_sandbox")
    if plugin_options.is_rehearsed(item) and "payment_sandbox" in fixtures:
        fixtures += [name for name in REHEARSAL_FIXTURES if name not in fixtures]


def _uses_mixin(item: pytest.Item) -> bool:
    """Whether a test is in a class with ``PaymentSandboxMixin``, which creates its own projects."""
    return hasattr(getattr(item, "cls", None), "_close_payment_sandbox")


@pytest.fixture(scope="session")
def payment_sandbox_server(pytestconfig: pytest.Config) -> "Iterator[sandbox.PaymentSandboxServer]":
    """A sandbox in this process on a free port, or the running sandbox at ``SANDBOX_URL``.

    Garbage collections skip what is loaded by now, which saves a twentieth of the time of payment tests.
    """
    load_validators()
    address, token = os.environ.get("SANDBOX_URL"), os.environ.get("SANDBOX_CONTROL_TOKEN")
    with reports.start_server(pytestconfig, address or None, token or None) as server:
        if plugin_options.must_freeze(pytestconfig):
            gc.freeze()
        yield server


@contextmanager
def _create_project(server: "sandbox.PaymentSandboxServer", node: Any) -> "Iterator[sandbox.PaymentSandbox]":
    settings = plugin_options.settings_of_test(node)
    if plugin_options.is_rehearsed(node):  # the clock starts at the same time in each run
        settings = {"clock": rehearsal.driver.clock_of(node.session), **settings}
    with reports.create_project(server, settings, plugin_options.scenario_of_test(node)) as project:
        for url, key in plugin_options.urls_of_test(node):
            project.intercept(url, key=key)
        yield project


@pytest.fixture
def payment_sandbox(
    request: pytest.FixtureRequest, payment_sandbox_server: "sandbox.PaymentSandboxServer"
) -> "Iterator[sandbox.PaymentSandbox]":
    """A new project with a frozen clock, deleted after the test."""
    with _create_project(payment_sandbox_server, request.node) as project:
        request.node.stash[PROJECT_KEY] = project
        if plugin_options.is_rehearsed(request.node):
            request.node.stash[rehearsal.driver.RUN_KEY].attach(project)
        yield project


@pytest.fixture
def payment_books() -> None:
    """Override this fixture to return a function that lists the shop's books, for rehearsals."""


@pytest.fixture
def payment_traces() -> None:
    """Override this fixture to return a function that lists the shop's stored data, for rehearsals."""


@pytest.fixture
def payment_shop_restart() -> None:
    """Override this fixture to return a function that restarts the shop, for rehearsals."""


def _shared_fixture(scope: Literal["class", "module", "session"]) -> Any:
    def project_of_scope(
        request: pytest.FixtureRequest, payment_sandbox_server: "sandbox.PaymentSandboxServer"
    ) -> "Iterator[sandbox.PaymentSandbox]":
        with _create_project(payment_sandbox_server, request.node) as project:
            yield project

    project_of_scope.__doc__ = f"A project for all tests of a {scope}."
    return pytest.fixture(scope=scope, name=f"{scope}_payment_sandbox")(project_of_scope)


class_payment_sandbox = _shared_fixture("class")
module_payment_sandbox = _shared_fixture("module")
session_payment_sandbox = _shared_fixture("session")


@pytest.fixture
def webhook_receiver() -> "Iterator[sandbox.WebhookReceiver]":
    """A real HTTP server that records received webhooks."""
    started = sandbox.WebhookReceiver()
    yield started
    started.close()


def _project_of(item: pytest.Item) -> "sandbox.PaymentSandbox | None":
    """Return the project of a test, which may be shared with other tests."""
    project = item.stash.get(PROJECT_KEY, None)
    if project is not None:
        return project
    used = getattr(item, "funcargs", {})
    shared_project = next((used[name] for name in plugin_options.PROJECT_FIXTURES if name in used), None)
    mixin_project: sandbox.PaymentSandbox | None = getattr(
        getattr(item, "instance", None), "_payment_sandbox", None
    )
    return shared_project or mixin_project


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """Rehearse a test if an option or a marker selects it."""
    has_project = _uses_mixin(item) or "payment_sandbox" in getattr(item, "fixturenames", ())
    if not plugin_options.is_rehearsed(item) or not has_project:
        return None
    rehearsal.driver.rehearse(item, nextitem)
    return True


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Any:
    """Review the shop's calls in a test that passed."""
    instance: Any = getattr(item, "instance", None)
    if hasattr(instance, "_close_payment_sandbox"):  # the mixin runs the review in its clean-up
        is_marked = item.get_closest_marker("payment_review") is not None
        if is_marked or instance.payment_review is None:
            instance.payment_review = plugin_options.review_mode(item)
            instance.payment_review_expect = reports.expected_rules(item) or instance.payment_review_expect
        options = reports.marker_options(item)
        instance._marker_options = options._replace(report=partial(reports.show_line, item.config))
        return (yield)
    if plugin_options.is_rehearsed(item):
        return (yield from rehearsal.driver.run_and_judge(item))
    outcome = yield
    project = _project_of(item)
    if project is not None and (mode := plugin_options.review_mode(item)) != plugin_options.OFF:
        reports.review_test(item, project, mode, reports.expected_rules(item))
    return outcome


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: "pytest.CallInfo[None]") -> Any:
    """Add the project's timeline to the report on a failed test."""
    report = yield
    if not report.failed or report.when == "teardown":  # teardown deletes the project
        return report
    project = _project_of(item)
    run = item.stash.get(rehearsal.driver.RUN_KEY, None) if plugin_options.is_rehearsed(item) else None
    if project is None or (run is not None and run.change is not None):  # nobody reads the report of a change
        return report
    reports.add_timeline(report, project, call)
    if item.config.getoption("payment_open"):
        reports.open_project(item, project)
    return report


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Print a summary of the rehearsals."""
    if "pytest_payment_sandbox.rehearsal.driver" in sys.modules or config.getoption("payment_rehearse"):
        rehearsal.driver.summarize(config, terminalreporter)
