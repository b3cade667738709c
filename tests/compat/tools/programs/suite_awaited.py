import os

import httpx
import pytest
from payments import STATUSES, awaited_after

pytestmark = getattr(pytest.mark, os.environ["MARK"])


@pytest.mark.parametrize("action", STATUSES)
async def test_payment(payment_sandbox, action):
    async with httpx.AsyncClient(transport=payment_sandbox.httpx_transport) as client:
        assert await awaited_after(payment_sandbox, client, action) == STATUSES[action]
