"""What the tests of the fixtures share."""

import logging
import threading
from collections.abc import Iterator

import pytest

from payment_sandbox.testing.project import PaymentSandbox


@pytest.fixture
def orders(payment_sandbox: PaymentSandbox) -> str:
    """Where orders are made."""
    return f"{payment_sandbox.base_url}/v1/orders/"


@pytest.fixture
def too_late() -> Iterator[threading.Event]:
    """Is set once the sandbox has noticed that a handler is late."""
    noticed = threading.Event()

    class Noticing(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if "no answer within 5 seconds" in record.getMessage():
                noticed.set()

    handler = Noticing()
    logging.root.addHandler(handler)
    yield noticed
    logging.root.removeHandler(handler)
