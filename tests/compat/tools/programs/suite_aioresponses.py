import aiohttp
import pytest
from aioresponses import aioresponses
from payments import ORDER, STATUSES


@pytest.mark.asyncio
@pytest.mark.parametrize("action", STATUSES)
async def test_payment(payment_sandbox, action):
    api, headers = payment_sandbox, {"Authorization": aiohttp.encode_basic_auth(payment_sandbox.api_key, "")}
    with aioresponses(passthrough=[api.base_url]):  # its stubs fail: 0.7.9 does not know aiohttp 3.14
        async with aiohttp.ClientSession(headers=headers) as client:
            order = await (await client.post(f"{api.base_url}/v1/orders/", json=ORDER)).json()
            if action == "wait":
                await api.aio.clock.advance("PT30M")
            else:
                await api.aio.act(order["id"], "customer", action)
            answer = await client.get(f"{api.base_url}/v1/orders/{order['id']}/")
            assert (await answer.json())["status"] == STATUSES[action]
