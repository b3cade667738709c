"""Webhooks for shops in tests with and without an event loop; ``test_loops.py`` runs these tests."""

import asyncio
import sqlite3
import threading
from typing import Any

import httpx
import pytest
import trio

from payment_sandbox.testing.project_fixture import PaymentSandbox
from tests.support.in_process import ORDER, place, shop_that
from tests.testing.starlette_shop import USER, Seen, starlette


async def pay_and_expire(sandbox: PaymentSandbox) -> tuple[Seen, Seen]:
    """Create an order and let it expire; return what the shop's handler saw, and the expected values."""
    seen: Seen = []
    USER.set("jan")

    async def shop(scope: Any, receive: Any, send: Any) -> None:
        await receive()
        async with httpx.AsyncClient(transport=sandbox.httpx_transport, auth=(sandbox.api_key, "")) as client:
            seen_order = (await client.get(f"{sandbox.base_url}/v1/orders/{order['id']}/")).json()
        seen.append((threading.get_ident(), USER.get(), seen_order["status"]))
        await send({"type": "http.response.start", "status": 204, "headers": []})
        await send({"type": "http.response.body"})

    sandbox.deliver_to(shop)
    async with httpx.AsyncClient(transport=sandbox.httpx_transport, auth=(sandbox.api_key, "")) as client:
        order = (await client.post(f"{sandbox.base_url}/v1/orders/", json=ORDER)).json()
    await sandbox.aio.act(order["id"], action="visit")
    before = await sandbox.aio.clock.now
    await sandbox.aio.clock.advance("PT30M")
    assert (await sandbox.aio.clock.now - before).total_seconds() == 1800
    assert (await sandbox.aio.wait_for(order["id"], "expired"))["status"] == "expired"
    assert [webhook["state"] for webhook in await sandbox.aio.webhooks()] == ["delivered"] * 2
    assert "expired" in await sandbox.aio.timeline()
    return seen, [(threading.get_ident(), "jan", status) for status in ("processing", "expired")]


@pytest.mark.asyncio
async def test_a_test_on_asyncio(payment_sandbox: PaymentSandbox) -> None:
    """The handler runs on the test's loop, sees its context, and may await the sandbox."""
    seen, expected = await pay_and_expire(payment_sandbox)
    assert seen == expected


def test_a_test_on_trio(payment_sandbox: PaymentSandbox) -> None:
    """A test on trio works without anyio."""
    seen, expected = trio.run(pay_and_expire, payment_sandbox)
    assert seen == expected


@pytest.mark.asyncio
async def test_a_wsgi_application_in_an_async_test(payment_sandbox: PaymentSandbox) -> None:
    """A WSGI application runs on the test's thread: it can use its database connection, and run coroutines."""
    connection = sqlite3.connect(":memory:")
    connection.execute("create table sale (id text)")

    async def insert(order_id: str) -> None:
        await asyncio.sleep(0)
        connection.execute("insert into sale values (?)", (order_id,))

    def handle(order_id: str) -> None:
        payment_sandbox.session.get(f"{payment_sandbox.base_url}/v1/orders/{order_id}/")
        asyncio.run(insert(order_id))  # as Flask does, although a loop runs on this thread

    payment_sandbox.deliver_to(shop_that(handle))
    order_id = await payment_sandbox.aio.run(place, payment_sandbox)
    await payment_sandbox.aio.act(order_id)
    assert connection.execute("select count(*) from sale").fetchone() == (2,)
    assert asyncio.get_running_loop() is not None
    connection.close()


@pytest.mark.asyncio
async def test_blocking_calls_share_one_loop(payment_sandbox: PaymentSandbox) -> None:
    """All webhooks of blocking calls run on one separate loop, on one thread.

    If the shop then fails, the timeline suggests the awaited call."""
    loops: Seen = []
    threads = set()

    async def record(order_id: str) -> None:
        loops.append(asyncio.get_running_loop())
        threads.add(threading.get_ident())
        if len(loops) > 10:
            raise LookupError("attached to a different loop")

    payment_sandbox.deliver_to(starlette(record))
    for _ in range(5):
        payment_sandbox.act(place(payment_sandbox))
    assert (len(loops), len(set(loops)), len(threads)) == (10, 1, 1)
    assert asyncio.get_running_loop() not in loops
    payment_sandbox.deliver_to(starlette(record))
    payment_sandbox.act(place(payment_sandbox))
    assert len(set(loops)) == 2
    assert "use await payment_sandbox.aio.act(...)" in payment_sandbox.timeline()
