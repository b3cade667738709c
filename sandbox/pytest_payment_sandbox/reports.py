"""The plugin's reports: timelines of failed tests, reviews, and problems with the server."""

import os
import webbrowser
from collections.abc import Collection, Mapping
from contextlib import nullcontext
from functools import partial
from typing import Any

import pytest

from payment_sandbox.client.errors import SandboxError
from payment_sandbox.fidelity.ledger import rule_texts
from payment_sandbox.operations.review_scenario import check_file
from payment_sandbox.orders.refusals import Invalid
from payment_sandbox.scenarios.catalogue import scenario_files
from payment_sandbox.testing.access import SandboxNotFound, print_to_stderr
from payment_sandbox.testing.project_fixture import PaymentSandbox
from payment_sandbox.testing.reviews import review, timeline_text
from payment_sandbox.testing.servers import PaymentSandboxServer
from payment_sandbox.testing.unittesting import MarkerOptions
from pytest_payment_sandbox import plugin_options


def start_server(
    config: pytest.Config, base_url: str | None, control_token: str | None
) -> PaymentSandboxServer:
    """Create a session's server from the session's options; report problems without a traceback."""
    try:
        server = PaymentSandboxServer(
            base_url,
            control_token,
            scenario_folders=plugin_options.scenario_folders(config),
            settings=plugin_options.suite_settings(config),
        )
        server.report = partial(show_line, config)
        return server
    except SandboxNotFound as missing:
        problem = str(missing)
    except Invalid as invalid:
        problem = "\n".join(_file_mistakes(config)) or str(invalid)
    pytest.fail(problem, pytrace=False)


def create_project(
    server: PaymentSandboxServer, settings: Mapping[str, Any], scenario: Any
) -> PaymentSandbox:
    """Create the project of a test; report a refusal of its settings or its scenario without a traceback."""
    try:
        return server.project(settings, scenario=scenario)
    except SandboxError as refused:
        problem = f"the settings or the scenario of this test: {refused}"
    pytest.fail(problem, pytrace=False)


def show_line(config: pytest.Config, line: str) -> None:
    """Show a line on the terminal at once, although pytest captures the output of the test."""
    capture = config.pluginmanager.getplugin("capturemanager")
    reporter = config.pluginmanager.getplugin("terminalreporter")
    with capture.global_and_fixture_disabled() if capture is not None else nullcontext():
        if reporter is None:  # a worker of pytest-xdist has no terminal
            print_to_stderr(line)
            return
        reporter.ensure_newline()
        reporter.write_line(line)
        reporter.flush()


def _file_mistakes(config: pytest.Config) -> list[str]:
    """Return the mistakes in the scenario files of the suite's folders, with their positions."""
    lines: list[str] = []
    for folder in plugin_options.scenario_folders(config):
        for file in scenario_files(folder):
            try:
                check_file(file)
            except Invalid as invalid:
                lines += [violation.as_line() for violation in invalid.violations]
    return lines


def review_test(item: pytest.Item, project: PaymentSandbox, mode: str, expect: Collection[str]) -> None:
    """Warn about the shop's mistakes in a test, or fail the test, depending on the mode."""
    try:
        review(project, mode, item.nodeid, expect)
        return
    except AssertionError as error:
        problem = str(error)
    pytest.fail(problem, pytrace=False)


def open_project(item: pytest.Item, project: PaymentSandbox) -> None:
    """Open the page of a failed test's project; a server in this process lives until Enter is pressed."""
    page = f"{project.base_url}/dashboard/{project.project_id}/orders/"
    capture = item.config.pluginmanager.getplugin("capturemanager")
    show = item.config.get_terminal_writer().line
    if capture is not None:
        capture.suspend(in_=True)
    try:
        is_interactive = os.isatty(0)
        if project.server.in_process is None:
            project.is_kept = True
            show(f"\nThe project of {item.name}, kept for a day: {page}")
        elif is_interactive:
            show(f"\nThe project of {item.name}: {page}\nPress Enter to delete it and continue.")
        else:
            rerun = f'SANDBOX_URL=http://127.0.0.1:8080 pytest --payment-open "{item.nodeid}"'
            show(f"\nTo keep the project of {item.name}: run payment-sandbox serve, and then {rerun}")
        if is_interactive:
            webbrowser.open(page)
        if is_interactive and project.server.in_process is not None:
            os.read(0, 1024)
    finally:
        if capture is not None:
            capture.resume()


def add_timeline(report: pytest.TestReport, project: PaymentSandbox, call: "pytest.CallInfo[None]") -> None:
    """Add the project's timeline to the report on a failure."""
    failure = call.excinfo.value if call.excinfo is not None else None
    text = timeline_text(project, failure)
    if not text:
        return
    add_section = getattr(report.longrepr, "addsection", None)
    if add_section is not None:
        add_section("payment sandbox", text)  # shown regardless of --show-capture
    else:
        report.sections.append(("payment sandbox", text))


def expected_rules(item: pytest.Item) -> tuple[str, ...]:
    """Return the rules that a test violates on purpose.

    Raises:
        pytest.UsageError: the marker's value is not a list of rules in the ledger.
    """
    marker = item.get_closest_marker("payment_review")
    expected = marker.kwargs.get(plugin_options.EXPECT_ARGUMENT, ()) if marker is not None else ()
    if not expected:
        return ()
    unknown = (
        [rule for rule in expected if rule not in rule_texts()]
        if isinstance(expected, list | tuple)
        else [expected]
    )
    if unknown:
        raise pytest.UsageError(f"payment_review: expect takes rules such as ['CAP-04'], not {unknown[0]!r}")
    return tuple(expected)


def marker_options(item: pytest.Item) -> MarkerOptions:
    """Return the options in a test's markers, and the suite's intercepted addresses.

    Raises:
        pytest.UsageError: a marker has an invalid argument.
    """
    is_marked = item.get_closest_marker("payment_scenario") is not None
    scenario = plugin_options.scenario_of_test(item) if is_marked else None
    return MarkerOptions(
        plugin_options.settings_of_markers(item), scenario, plugin_options.urls_of_test(item)
    )
