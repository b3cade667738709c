"""What verify says about money that it cannot give back, and which orders it finds to take back."""

from typing import Any

import pytest

from payment_sandbox_verify.answer import ServiceAnswer
from payment_sandbox_verify.samples import CARD, INVOICE, line_quantity, transaction_with
from payment_sandbox_verify.service import REFUNDED_OR_VOIDED, Service
from payment_sandbox_verify.verifying import reference_sandbox
from tests.verification.exchanges import DifferingSession, Exchange, Way

PART = {"description": "a part", "amount": 250}


def captured_invoice(service: Service) -> ServiceAnswer:
    """An invoice of three pairs of socks and the postage, all captured."""
    order = service.new_order_with_lines(INVOICE)
    assert service.capture_or_void(order, "captures/", {}).is_success
    return order


def test_an_expired_authorization_reserves_nothing() -> None:
    """What was not captured of it need not be voided."""
    with reference_sandbox() as own:
        order = own.service.new_order_with_lines(INVOICE, expiration_period="PT3S")
        assert own.service.capture_or_void(order, "captures/amount/", PART).is_success
        own.client.clock.advance("PT5S")
        assert own.service.clean_up() == {order.at("id"): REFUNDED_OR_VOIDED}


def test_a_refunded_payment_is_given_back() -> None:
    """Nothing is left to say of it, although it was paid."""
    with reference_sandbox() as own:
        order, _ = own.service.new_paid_order(transaction_with(CARD))
        assert own.service.refund(order, {}).is_success
        assert own.service.clean_up() == {order.at("id"): REFUNDED_OR_VOIDED}


@pytest.mark.parametrize(
    "lines", [line_quantity(1), line_quantity(2), line_quantity(3), line_quantity(1, "post")]
)
def test_the_rest_of_a_partly_refunded_invoice_is_refunded(lines: list[dict[str, Any]]) -> None:
    """Line by line, as far as each has something left."""
    with reference_sandbox() as own:
        order = captured_invoice(own.service)
        assert own.service.refund(order, {"order_lines": lines}).is_success
        assert own.service.clean_up() == {order.at("id"): REFUNDED_OR_VOIDED}
        rest = [
            own.service.refund(order, {"order_lines": line_quantity(1, line)}) for line in ("socks", "post")
        ]
        assert [answer.status for answer in rest] == [409, 409]


def _one_refund(exchange: Exchange) -> None:
    if exchange.path.endswith("/refunds/"):
        exchange.reply(409, type="Refused", value="ask the support")


def test_a_server_that_refuses_more_refunds_is_told() -> None:
    """In a sentence that is true whatever was refunded before."""
    with reference_sandbox() as own:
        order, _ = own.service.new_paid_order(transaction_with(CARD))
        assert own.service.refund(order, {"amount": 400}).is_success
        own.service._session = DifferingSession(None, _one_refund)
        assert own.service.clean_up() == {
            order.at("id"): "1000 cents were paid, and the service refuses another refund"
        }


def _accepts(order_id: str) -> Way:
    """A way to answer what should be refused with an order that was made."""

    def accept(exchange: Exchange) -> None:
        if exchange.method in ("PATCH", "PUT") and exchange.path.rstrip("/") == "/v1/orders":
            exchange.reply(201)
            exchange.data = {"id": order_id, "status": "new"}

    return accept


@pytest.mark.parametrize(("method", "path"), [("PATCH", "/v1/orders/"), ("PUT", "/v1/orders")])
def test_an_order_that_should_not_be_made_is_taken_back(method: str, path: str) -> None:
    """Whatever call a server makes one for."""
    with reference_sandbox() as own:
        order = own.service.new_order()
        own.service.created_orders.remove(order.at("id"))
        own.service._session = DifferingSession(None, _accepts(order.at("id")))
        assert own.service.call(method, path, {}).is_success
        assert own.service.clean_up() == {}
        assert own.service.read(order).at("status") == "cancelled"
