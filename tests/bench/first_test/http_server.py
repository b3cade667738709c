"""With stubs behind a socket, by pytest-httpserver."""

import os
from collections.abc import Iterator

import pytest
from pytest_httpserver import HTTPServer
from shop import PROVIDER, Payments, checkout, paid, tell

NEW = {"id": "order-1", "status": "new"}
PAID = {"id": "order-1", "status": "completed"}


@pytest.fixture
def served(httpserver: HTTPServer) -> Iterator[HTTPServer]:
    """A server that the shop reaches."""
    Payments.base_url = httpserver.url_for("").rstrip("/")
    yield httpserver
    Payments.base_url = PROVIDER


@pytest.mark.parametrize("number", range(int(os.environ["BENCH_TESTS"])))
def test_a_payment(served: HTTPServer, number: int) -> None:
    """Create, pay, webhook, assert."""
    paid.clear()
    served.expect_request("/v1/orders/", method="POST").respond_with_json(NEW, status=201)
    served.expect_request("/v1/orders/order-1/").respond_with_json(PAID)
    order_id = checkout()
    tell(order_id)
    assert order_id in paid
