"""The orders that verify cleans up, and its message about money that it cannot refund."""

from collections.abc import Callable
from typing import Any

import pytest
import requests

from payment_sandbox_verify.answer import ServiceAnswer
from payment_sandbox_verify.cleaning import REFUNDED_OR_VOIDED, clean_up
from payment_sandbox_verify.samples import line_quantity
from payment_sandbox_verify.service import Service
from payment_sandbox_verify.verifying import reference_sandbox
from tests.verification.exchanges import Alteration, AlteringSession, Exchange
from tests.verification.orders import capture, new_invoice, new_order, new_paid_order, read_order, refund

PARTIAL_CAPTURE = {"description": "a part", "amount": 250}


def captured_invoice(service: Service) -> ServiceAnswer:
    """Return a fully captured invoice of three pairs of socks and the postage."""
    order = new_invoice(service)
    assert capture(service, order, "captures/", {}).is_success
    return order


def test_an_expired_authorization_needs_no_void() -> None:
    """The uncaptured part of an expired authorization needs no void."""
    with reference_sandbox() as reference:
        order = new_invoice(reference.service, expiration_period="PT3S")
        assert capture(reference.service, order, "captures/amount/", PARTIAL_CAPTURE).is_success
        reference.control.clock.advance("PT5S")
        assert clean_up(reference.service) == {order.at("id"): REFUNDED_OR_VOIDED}


def test_a_payment_refunded_before_counts_as_refunded() -> None:
    """A payment that was refunded before counts as refunded."""
    with reference_sandbox() as reference:
        order = new_paid_order(reference.service)
        assert refund(reference.service, order, {}).is_success
        assert clean_up(reference.service) == {order.at("id"): REFUNDED_OR_VOIDED}


@pytest.mark.parametrize(
    "lines", [line_quantity(1), line_quantity(2), line_quantity(3), line_quantity(1, "post")]
)
def test_the_rest_of_a_partly_refunded_invoice_is_refunded(lines: list[dict[str, Any]]) -> None:
    """The clean-up refunds each line up to its remaining amount."""
    with reference_sandbox() as reference:
        order = captured_invoice(reference.service)
        assert refund(reference.service, order, {"order_lines": lines}).is_success
        assert clean_up(reference.service) == {order.at("id"): REFUNDED_OR_VOIDED}
        further_refunds = [
            refund(reference.service, order, {"order_lines": line_quantity(1, line)})
            for line in ("socks", "post")
        ]
        assert [response.status for response in further_refunds] == [409, 409]


def _refuse_refund(exchange: Exchange) -> None:
    if exchange.path.endswith("/refunds/"):
        exchange.reply(409, type="Refused", value="ask the support")


def test_a_refusal_of_another_refund_is_reported() -> None:
    """If the service refuses another refund, the clean-up reports the paid amount."""
    with reference_sandbox() as reference:
        order = new_paid_order(reference.service)
        assert refund(reference.service, order, {"amount": 400}).is_success
        reference.service._session = AlteringSession(None, _refuse_refund)
        assert clean_up(reference.service) == {
            order.at("id"): "1000 cents were paid, and not all of it is refunded"
        }


def _accept_with_order(order_id: str) -> Alteration:
    """Return an alteration that answers a refused call with this order."""

    def accept(exchange: Exchange) -> None:
        if exchange.method in ("PATCH", "PUT") and exchange.path.rstrip("/") == "/v1/orders":
            exchange.reply(201)
            exchange.data = {"id": order_id, "status": "new"}

    return accept


@pytest.mark.parametrize(("method", "path"), [("PATCH", "/v1/orders/"), ("PUT", "/v1/orders")])
def test_an_order_created_by_an_invalid_call_is_cancelled(method: str, path: str) -> None:
    """An order that the server creates for an invalid call is cancelled, too."""
    with reference_sandbox() as reference:
        order = new_order(reference.service)
        reference.service.created_orders.remove(order.at("id"))
        reference.service._session = AlteringSession(None, _accept_with_order(order.at("id")))
        assert reference.service.call(method, path, {}).is_success
        assert clean_up(reference.service) == {}
        assert read_order(reference.service, order).at("status") == "cancelled"


class ForgetfulSession(requests.Session):
    """A session whose voids, refunds and cancellations do nothing, although they succeed or ``refuses`` the last."""

    def __init__(self, refuses: bool) -> None:
        super().__init__()
        self._refuses = refuses

    def request(self, method: str, url: str, **options: Any) -> requests.Response:  # type: ignore[override]
        if url.endswith(("/voids/amount/", "/refunds/")):
            banks = f"{url.partition('/v1/')[0]}/v1/bank-redirect-nl/issuers/"
            return super().request("GET", banks, auth=options["auth"])
        response = super().request("GET" if method == "DELETE" else method, url, **options)
        if method == "DELETE" and self._refuses:
            response.status_code = 409
        return response


@pytest.mark.parametrize(
    ("prepare", "refuses", "problem"),
    [
        (new_order, False, "its status is 'new' after a DELETE"),
        (new_invoice, True, "1000 cents are reserved"),
        (
            new_paid_order,
            True,
            "1000 cents were paid, and not all of it is refunded",
        ),
    ],
)
def test_an_order_that_a_service_only_claims_to_end_remains_listed(
    prepare: Callable[[Service], ServiceAnswer], refuses: bool, problem: str
) -> None:
    """What the order shows after a cancellation, a void or a refund counts, not the answer."""
    with reference_sandbox() as reference:
        order = prepare(reference.service)
        reference.service._session = ForgetfulSession(refuses)
        assert clean_up(reference.service) == {order.at("id"): problem}
        assert list(reference.service.created_orders.orders) == [order.at("id")]
