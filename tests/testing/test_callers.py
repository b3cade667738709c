"""Calls of a test are not calls of its shop."""

import asyncio

import httpx
import pytest
from flask import Flask

from payment_sandbox.testing.project_fixture import PaymentSandbox
from tests.support.in_process import place, shop_that

UNREAD = "HOOK-08"


@pytest.fixture
def anyio_backend() -> str:
    """Run coroutines on asyncio."""
    return "asyncio"


def callers(sandbox: PaymentSandbox) -> list[str]:
    """The caller of each read, oldest first."""
    return [each["caller"] for each in sandbox.client.journal() if each["method"] == "GET"]


def rules(sandbox: PaymentSandbox) -> list[str]:
    """The rules that the integration broke."""
    return [each.rule for each in sandbox.review()]


def test_a_read_by_the_test_does_not_hide_that_the_shop_never_read(payment_sandbox: PaymentSandbox) -> None:
    """The test reads the order, and the shop trusts its webhooks."""
    payment_sandbox.deliver_to(shop_that(lambda order_id: None))
    order_id = place(payment_sandbox)
    payment_sandbox.act(order_id)
    url = f"{payment_sandbox.base_url}/v1/orders/{order_id}/"
    assert [payment_sandbox.session.get(url).json()["status"] for _ in range(9)] == ["completed"] * 9
    assert callers(payment_sandbox) == ["test"] * 9
    assert rules(payment_sandbox) == [UNREAD]


def test_a_handler_in_the_test_is_the_shop(payment_sandbox: PaymentSandbox) -> None:
    """A webhook handler reads the order, although the test contains its code."""

    def read(order_id: str) -> None:
        payment_sandbox.session.get(f"{payment_sandbox.base_url}/v1/orders/{order_id}/")

    payment_sandbox.deliver_to(shop_that(read))
    payment_sandbox.act(place(payment_sandbox))
    assert set(callers(payment_sandbox)) == {"shop"}
    assert rules(payment_sandbox) == []


def test_a_job_and_a_page_in_the_test_are_the_shop(payment_sandbox: PaymentSandbox) -> None:
    """A job, a page and the browser's visit to it read as the shop."""
    order_id = place(payment_sandbox)
    shop = Flask(__name__)

    @shop.get("/thanks")
    def read() -> str:
        return payment_sandbox.session.get(f"{payment_sandbox.base_url}/v1/orders/{order_id}/").text

    payment_sandbox.every("PT1M", read)
    payment_sandbox.clock.advance("PT1M")
    payment_sandbox.browser(shop).get("/thanks")
    shop.test_client().get("/thanks")
    assert callers(payment_sandbox) == ["shop"] * 3


@pytest.mark.anyio
async def test_an_async_read_by_the_test(payment_sandbox: PaymentSandbox) -> None:
    """A call that another thread answers for the test's coroutine is the test's; its tasks are the shop's."""
    url = f"{payment_sandbox.base_url}/v1/orders/{place(payment_sandbox)}/"
    transport, auth = payment_sandbox.httpx_transport, (payment_sandbox.api_key, "")
    async with httpx.AsyncClient(transport=transport, auth=auth) as client:

        async def task() -> None:
            await client.get(url)

        await client.get(url)
        await asyncio.create_task(task())
    assert callers(payment_sandbox) == ["test", "shop"]
