"""Fixtures that the tests of the plugin share."""

import threading
from collections.abc import Iterator

import pytest

from payment_sandbox.testing.project_fixture import PaymentSandbox
from payment_sandbox.testing.servers import PaymentSandboxServer


@pytest.fixture
def orders(payment_sandbox: PaymentSandbox) -> str:
    """The URL for new orders."""
    return f"{payment_sandbox.base_url}/v1/orders/"


class LateHandlers:
    """Collects the lines about late handlers, and sets an event once the expected number has been shown."""

    expected = 1

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.all_shown = threading.Event()

    def __call__(self, line: str) -> None:
        """Collect a line."""
        self.lines.append(line)
        if len(self.lines) == self.expected:
            self.all_shown.set()


@pytest.fixture
def late_handlers(payment_sandbox_server: PaymentSandboxServer) -> Iterator[LateHandlers]:
    """The lines about late handlers, instead of those on the terminal."""
    before, payment_sandbox_server.report = payment_sandbox_server.report, (lines := LateHandlers())
    yield lines
    payment_sandbox_server.report = before


@pytest.fixture
def too_late(late_handlers: LateHandlers) -> threading.Event:
    """An event that is set once the sandbox has reported a late handler."""
    return late_handlers.all_shown
