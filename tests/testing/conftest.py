"""The address where orders are made."""

import pytest

from payment_sandbox.testing.project import PaymentSandbox


@pytest.fixture
def orders(payment_sandbox: PaymentSandbox) -> str:
    """Where orders are made."""
    return f"{payment_sandbox.base_url}/v1/orders/"
