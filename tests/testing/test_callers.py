"""Calls of a test are not calls of its shop."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Thread

import httpx
import pytest
from flask import Flask

from payment_sandbox.testing.project_fixture import PaymentSandbox
from payment_sandbox.testing.shops.call_origins import is_test_code
from tests.support.in_process import on_a_loop, place, shop_that

UNREAD = "HOOK-08"


def callers(sandbox: PaymentSandbox) -> list[str]:
    """The caller of each read, oldest first."""
    return [each["caller"] for each in sandbox.client.journal() if each["method"] == "GET"]


def rules(sandbox: PaymentSandbox) -> list[str]:
    """The rules that the integration broke."""
    return [each.rule for each in sandbox.review()]


def client_of(sandbox: PaymentSandbox) -> httpx.Client:
    """A client of httpx with the key of the project."""
    return httpx.Client(transport=sandbox.httpx_transport, auth=(sandbox.api_key, ""))


def look(sandbox: PaymentSandbox, order_id: str) -> str:
    """Read an order in a helper of the test."""
    with client_of(sandbox) as client:
        return str(client.get(f"{sandbox.base_url}/v1/orders/{order_id}/").json()["status"])


def test_a_read_by_the_test_does_not_hide_that_the_shop_never_read(payment_sandbox: PaymentSandbox) -> None:
    """The test reads the order in a helper, and the shop trusts its webhooks."""
    payment_sandbox.deliver_to(shop_that(lambda order_id: None))
    order_id = place(payment_sandbox)
    payment_sandbox.act(order_id)
    assert [look(payment_sandbox, order_id) for _ in range(9)] == ["completed"] * 9
    payment_sandbox.client.call("GET", f"/v1/orders/{order_id}/")
    assert callers(payment_sandbox) == ["test"] * 10
    assert rules(payment_sandbox) == [UNREAD]


def test_the_tests_own_calls_are_no_mistakes(payment_sandbox: PaymentSandbox) -> None:
    """The test creates an order twice, refunds twice and pages through orders: the shop did none of it."""
    payment_sandbox.deliver_to(shop_that(lambda order_id: reads(payment_sandbox, order_id)))
    orders = f"{payment_sandbox.base_url}/v1/orders/"
    body = {"currency": "EUR", "amount": 1000, "merchant_order_id": "A-1"}
    with client_of(payment_sandbox) as client:
        created = [client.post(orders, json=body).json()["id"] for _ in range(2)]
        payment_sandbox.act(created[0], "customer", "choose", payment_method="wallet-web")
        payment_sandbox.act(created[0])
        with ThreadPoolExecutor(2) as pool:
            refunds = pool.map(
                lambda _: client.post(f"{orders}{created[0]}/refunds/", json={"amount": 400}), range(2)
            )
        assert [each.status_code for each in refunds] == [201, 201]
        assert client.delete(f"{orders}{created[0]}/").status_code == 409
        payment_sandbox.client.call("DELETE", f"/v1/orders/{created[1]}/")
    assert rules(payment_sandbox) == []


def reads(sandbox: PaymentSandbox, order_id: str) -> None:
    """Read an order as the shop."""
    sandbox.session.get(f"{sandbox.base_url}/v1/orders/{order_id}/")


def test_a_job_and_a_page_in_the_test_are_the_shop(payment_sandbox: PaymentSandbox) -> None:
    """A job, a page, the browser's visit to it and the fixture's session read as the shop."""
    order_id = place(payment_sandbox)
    reads(payment_sandbox, order_id)
    shop = Flask(__name__)

    @shop.get("/thanks")
    def read() -> str:
        return look(payment_sandbox, order_id)

    payment_sandbox.every("PT1M", read)
    payment_sandbox.clock.advance("PT1M")
    payment_sandbox.browser(shop).get("/thanks")
    shop.test_client().get("/thanks")
    assert callers(payment_sandbox) == ["shop"] * 4


def test_a_handler_and_its_thread_are_the_shop(payment_sandbox: PaymentSandbox) -> None:
    """A webhook handler reads the order, and so does a thread that it starts, although the test contains both."""
    threads: list[Thread] = []

    def read_later(order_id: str) -> None:
        look(payment_sandbox, order_id)
        threads.append(Thread(target=look, args=(payment_sandbox, order_id)))
        threads[-1].start()

    payment_sandbox.deliver_to(shop_that(read_later))
    payment_sandbox.act(place(payment_sandbox))
    for thread in threads:
        thread.join()
    assert callers(payment_sandbox) == ["shop"] * 4
    assert rules(payment_sandbox) == []


@pytest.mark.parametrize(
    ("file", "is_tests"),
    [
        ("tests/helpers/orders.py", True),
        ("shop/test_checkout.py", True),
        ("conftest.py", True),
        ("testing/checkout.py", False),
        ("shop/latest_order.py", False),
    ],
)
def test_code_of_the_tests(file: str, is_tests: bool) -> None:
    """The name of a file and of its folders says whether it is code of the tests."""
    assert is_test_code(Path.cwd() / file) == is_tests


def test_an_async_read_by_the_test(payment_sandbox: PaymentSandbox) -> None:
    """A call that another thread answers for the test's coroutine is the test's, and so are its tasks."""
    url = f"{payment_sandbox.base_url}/v1/orders/{place(payment_sandbox)}/"
    transport, auth = payment_sandbox.httpx_transport, (payment_sandbox.api_key, "")

    async def test() -> None:
        async with httpx.AsyncClient(transport=transport, auth=auth) as client:
            await client.get(url)
            await asyncio.create_task(client.get(url))

    on_a_loop(test)
    assert callers(payment_sandbox) == ["test", "test"]
