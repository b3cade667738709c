import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some
from payments import STATUSES, after


@pytest.mark.parametrize("action", STATUSES)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=10, deadline=None)
@given(orders=some.integers(1, 3))
def test_payment(payment_sandbox, action, orders):
    payment_sandbox.client.reset()
    assert [after(payment_sandbox, action) for _ in range(orders)] == [STATUSES[action]] * orders
