"""A test with the sandbox's fixtures, without sockets."""

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
import requests
from shop import PROVIDER, Payments, app, checkout, paid

if TYPE_CHECKING:
    from payment_sandbox import PaymentSandbox


@pytest.fixture
def sandbox(payment_sandbox: "PaymentSandbox") -> "Iterator[PaymentSandbox]":
    """A project that the shop calls, and that sends webhooks to the shop."""
    Payments.base_url, Payments.session = payment_sandbox.base_url, payment_sandbox.session
    payment_sandbox.deliver_to(app)
    yield payment_sandbox
    Payments.base_url, Payments.session = PROVIDER, requests


@pytest.mark.parametrize("number", range(int(os.environ["BENCH_TESTS"])))
def test_a_payment(sandbox: "PaymentSandbox", number: int) -> None:
    """An order is created and paid, and the shop handles its webhook."""
    order_id = checkout()
    sandbox.act(order_id)
    assert order_id in paid
