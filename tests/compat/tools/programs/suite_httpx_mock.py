import httpx
import pytest
from payments import STATUSES, awaited_after


@pytest.mark.asyncio
@pytest.mark.parametrize("action", STATUSES)
async def test_payment(payment_sandbox, httpx_mock, action):
    httpx_mock.add_response(url="https://rates.example/EUR", json={"USD": 1.25})
    async with httpx.AsyncClient() as rates:
        assert (await rates.get("https://rates.example/EUR")).json() == {"USD": 1.25}
    async with httpx.AsyncClient(transport=payment_sandbox.httpx_transport) as client:
        assert await awaited_after(payment_sandbox, client, action) == STATUSES[action]
