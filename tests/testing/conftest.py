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


@pytest.fixture
def too_late() -> Iterator[threading.Event]:
    """An event that is set once the sandbox has logged a late handler."""
    is_late = threading.Event()

    class LatenessHandler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if "no answer within 5 seconds" in record.getMessage():
                is_late.set()

    handler = LatenessHandler()
    logging.root.addHandler(handler)
    yield is_late
    logging.root.removeHandler(handler)
