"""Fixtures that the tests of the plugin share."""

import logging
import threading
from collections.abc import Iterator

import pytest

from payment_sandbox.testing.project_fixture import PaymentSandbox


@pytest.fixture
def orders(payment_sandbox: PaymentSandbox) -> str:
    """The URL for new orders."""
    return f"{payment_sandbox.base_url}/v1/orders/"


class LateHandlers(logging.Handler):
    """Sets an event once the sandbox has logged the expected number of late handlers."""

    expected = 1

    def __init__(self) -> None:
        super().__init__()
        self.all_logged = threading.Event()

    def emit(self, record: logging.LogRecord) -> None:
        """Count a late handler."""
        if "no answer within 5 seconds" in record.getMessage():
            self.expected -= 1
            if not self.expected:
                self.all_logged.set()


@pytest.fixture
def late_handlers() -> Iterator[LateHandlers]:
    """The late handlers that the sandbox logs."""
    handler = LateHandlers()
    logging.root.addHandler(handler)
    yield handler
    logging.root.removeHandler(handler)


@pytest.fixture
def too_late(late_handlers: LateHandlers) -> threading.Event:
    """An event that is set once the sandbox has logged a late handler."""
    return late_handlers.all_logged
