import pytest
from payments import STATUSES, after


@pytest.mark.parametrize("action", STATUSES)
def test_payment(payment_sandbox_server, action):
    with payment_sandbox_server.project() as api:
        assert after(api, action) == STATUSES[action]
