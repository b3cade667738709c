"""Concurrent copies of a webhook in the test's process."""

import asyncio
from threading import Barrier, get_ident
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from payment_sandbox.testing.project_fixture import PaymentSandbox
from tests.support.in_process import on_a_loop, place, shop_that

TWICE: list[dict[str, Any]] = [{"then": {"together": 2}}]


def test_both_handlers_run_at_the_same_moment(payment_sandbox: PaymentSandbox) -> None:
    """Concurrent copies run on separate threads."""
    barrier, threads = Barrier(2, timeout=4), set()

    def handle(order_id: str) -> None:
        barrier.wait()
        threads.add(get_ident())

    payment_sandbox.client.faults(webhooks=TWICE)
    payment_sandbox.deliver_to(shop_that(handle))
    payment_sandbox.act(place(payment_sandbox), action="visit")
    (webhook,) = payment_sandbox.webhooks
    assert [attempt["error"] for attempt in webhook["attempts"]] == [None, None]
    assert len(threads) == 2


def test_on_an_event_loop_both_run_on_it(payment_sandbox: PaymentSandbox) -> None:
    """Concurrent copies run on the test's event loop."""

    async def test() -> None:
        barrier, loops = asyncio.Barrier(2), set()

        async def webhook(request: Request) -> Response:
            await barrier.wait()
            loops.add(asyncio.get_running_loop())
            return Response("")

        payment_sandbox.client.faults(webhooks=TWICE)
        payment_sandbox.deliver_to(Starlette(routes=[Route("/webhook", webhook, methods=["POST"])]))
        order_id = await payment_sandbox.aio.run(place, payment_sandbox)
        await payment_sandbox.aio.act(order_id, action="visit")
        assert loops == {asyncio.get_running_loop()}

    on_a_loop(test)
