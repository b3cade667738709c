import httpx2
import pytest
import shop
from fastapi.testclient import TestClient


@pytest.fixture
def sandbox(payment_sandbox, monkeypatch):
    payment_sandbox.intercept("https://api.provider.example")
    monkeypatch.setenv("PAYMENTS_KEY", payment_sandbox.api_key)
    payment_sandbox.deliver_to(shop.app)
    shop.paid.clear()
    return payment_sandbox


def test_a_paid_order(sandbox):
    order_id = TestClient(shop.app).post("/checkout").json()["order_id"]
    sandbox.act(order_id)
    assert order_id in shop.paid


@pytest.mark.asyncio
async def test_a_paid_order_awaited(sandbox):
    transport = httpx2.ASGITransport(shop.app)
    async with httpx2.AsyncClient(transport=transport, base_url="http://testserver") as client:
        order_id = (await client.post("/checkout")).json()["order_id"]
    await sandbox.aio.act(order_id)
    assert order_id in shop.paid
    sandbox.review().assert_clean()
