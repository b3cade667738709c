"""A test with the stubs of pytest-httpserver, behind a socket."""

import os
from collections.abc import Iterator

import pytest
from pytest_httpserver import HTTPServer
from shop import PROVIDER, Payments, checkout, paid, send_webhook

NEW = {"id": "order-1", "status": "new"}
PAID = {"id": "order-1", "status": "completed"}


@pytest.fixture
def stub_server(httpserver: HTTPServer) -> Iterator[HTTPServer]:
    """A stub server that the shop calls."""
    Payments.base_url = httpserver.url_for("").rstrip("/")
    yield httpserver
    Payments.base_url = PROVIDER


@pytest.mark.parametrize("number", range(int(os.environ["BENCH_TESTS"])))
def test_a_payment(stub_server: HTTPServer, number: int) -> None:
    """An order is created and paid, and the shop handles its webhook."""
    paid.clear()
    stub_server.expect_request("/v1/orders/", method="POST").respond_with_json(NEW, status=201)
    stub_server.expect_request("/v1/orders/order-1/").respond_with_json(PAID)
    order_id = checkout()
    send_webhook(order_id)
    assert order_id in paid
