import asyncio
import json

import aiohttp
import httpx
import pytest
import uvicorn

ORDER = {"currency": "EUR", "amount": 1295, "transactions": [{"payment_method": "credit-card"}]}


class Shop:
    """Your own application: ASGI, with httpx."""

    def __init__(self, payments):
        self.payments = payments
        self.paid = set()

    async def checkout(self):
        return (await self.payments.post("/v1/orders/", json=ORDER)).json()["id"]

    async def __call__(self, scope, receive, send):
        if scope["type"] != "http":
            return
        order_id = json.loads((await receive())["body"])["order_id"]
        order = (await self.payments.get(f"/v1/orders/{order_id}/")).json()
        if order["status"] == "completed":
            self.paid.add(order_id)
        await send({"type": "http.response.start", "status": 204, "headers": []})
        await send({"type": "http.response.body"})


@pytest.fixture
async def shop(payment_sandbox):
    auth = (payment_sandbox.api_key, "")
    async with httpx.AsyncClient(
        transport=payment_sandbox.httpx_transport, base_url=payment_sandbox.base_url, auth=auth
    ) as payments:
        yield Shop(payments)


async def test_without_sockets(payment_sandbox, shop):
    payment_sandbox.deliver_to(shop)
    order_id = await shop.checkout()
    await payment_sandbox.aio.act(order_id)
    assert order_id in shop.paid
    await payment_sandbox.aio.clock.advance("PT1H")


async def test_served_on_the_same_loop(payment_sandbox, shop):
    server = uvicorn.Server(uvicorn.Config(shop, port=0, lifespan="off", log_config=None))
    serving = asyncio.create_task(server.serve())
    while not server.started:
        await asyncio.sleep(0)
    port = server.servers[0].sockets[0].getsockname()[1]
    payment_sandbox.client.change_settings(webhook_url=f"http://127.0.0.1:{port}/webhook")
    order_id = await shop.checkout()
    await payment_sandbox.aio.act(order_id)
    await payment_sandbox.aio.wait(idle=True)
    assert order_id in shop.paid
    server.should_exit = True
    await serving


@pytest.mark.payment_review("off")  # no shop gets a webhook
async def test_with_aiohttp(payment_sandbox):
    headers = {"Authorization": aiohttp.encode_basic_auth(payment_sandbox.api_key, "")}
    async with aiohttp.ClientSession(payment_sandbox.base_url, headers=headers) as payments:
        async with payments.post("/v1/orders/", json=ORDER) as answer:
            order_id = (await answer.json())["id"]
    await payment_sandbox.aio.act(order_id)
    assert (await payment_sandbox.aio.order(order_id))["status"] == "completed"
