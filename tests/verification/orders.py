"""Orders on a service, for tests of the clean-up."""

from typing import Any

from payment_sandbox_verify.answer import ServiceAnswer
from payment_sandbox_verify.samples import CARD, INVOICE, sale, transaction_with
from payment_sandbox_verify.service import Service
from payment_sandbox_verify.steps import ORDERS_PATH


def new_order(service: Service, *transactions: dict[str, Any], **fields: Any) -> ServiceAnswer:
    """Create an order."""
    answer = service.call("POST", ORDERS_PATH, sale(*transactions, **fields))
    assert answer.is_success, answer
    return answer


def new_invoice(service: Service, **transaction: Any) -> ServiceAnswer:
    """Create an order with an invoice of three pairs of socks and the postage."""
    return new_order(service, transaction_with(INVOICE, **transaction))


def new_paid_order(service: Service) -> ServiceAnswer:
    """Create an order, and pay it with a card on its page."""
    order = new_order(service, transaction_with(CARD))
    service.payer.act(service.absolute_url(order.at("transactions[0].payment_url")), "pay", "", "10.00 EUR")
    return read_order(service, order)


def read_order(service: Service, order: ServiceAnswer) -> ServiceAnswer:
    """Read an order."""
    return service.call("GET", f"{ORDERS_PATH}{order.at('id')}/")


def capture(service: Service, order: ServiceAnswer, suffix: str, body: Any) -> ServiceAnswer:
    """Capture or void money; ``suffix`` is the end of the path, such as ``captures/amount/``."""
    path = f"{ORDERS_PATH}{order.at('id')}/transactions/{order.at('transactions[0].id')}/{suffix}"
    return service.call("POST", path, body)


def refund(service: Service, order: ServiceAnswer, body: Any) -> ServiceAnswer:
    """Refund an order."""
    return service.call("POST", f"{ORDERS_PATH}{order.at('id')}/refunds/", body)
