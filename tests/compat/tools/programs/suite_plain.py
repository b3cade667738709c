import pytest
from payments import STATUSES, after


@pytest.mark.parametrize("action", STATUSES)
def test_payment(payment_sandbox, action):
    assert after(payment_sandbox, action) == STATUSES[action]
