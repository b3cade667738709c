"""What a customer's payment does; needs somebody who pays."""

from typing import Final

from payment_sandbox.verification.checks import (
    INTEGER,
    MOMENT,
    TEXT,
    CannotTell,
    Checks,
    holds,
    kind,
    one_of,
    refused,
    same,
)
from payment_sandbox.verification.probes.invoices import record_of_refund
from payment_sandbox.verification.probing import probe
from payment_sandbox.verification.samples import (
    CARD,
    PAY_LATER,
    REDIRECT_NL,
    RETURN_URL,
    by,
    some,
)
from payment_sandbox.verification.service import Service

ATTEMPT: Final = "transactions[0]."
DETAILS: Final = f"{ATTEMPT}payment_method_details."


@probe("CARD-06", "GEN-05", "ORD-20", "TX-07", "TX-17", "FLOW-14", "END-10", "SET-48", spends=True)
def a_sale(service: Service) -> Checks:
    """It completes, the customer returns, and it can be refunded in part."""
    order, went = service.paid(by(CARD), return_url=RETURN_URL)
    for rule in ("CARD-06", "GEN-05"):
        yield same(rule, order, "status", "completed")
    yield kind("ORD-20", order, "completed", MOMENT)
    yield kind("TX-07", order, f"{ATTEMPT}completed", MOMENT)
    yield kind("TX-17", order, f"{ATTEMPT}msc_amount", INTEGER)
    for name in ("msc_calculation_type", "msc_currency"):
        yield kind("TX-17", order, f"{ATTEMPT}{name}", TEXT)
    if went is not None:
        for name, value in (("order_id", order.at("id")), ("project_id", order.at("project_id"))):
            yield holds("FLOW-14", f"{name}={value}" in went, f"the customer returned to {went}")
    if order.at("status") != "completed":
        raise CannotTell(f"the order is {order.at('status')} after the payment")
    over = service.refund(order, {"amount": 1001})
    yield from refused("SET-49", over, 409, "RefundExceedsCaptured")
    refund = service.refund(order, {"amount": 400, "description": "A probe"})
    yield holds("END-10", refund.is_success, f"a refund is {refund.told}")
    if refund.is_success:
        yield from record_of_refund(service, order, refund, 400)


@probe("SET-38", "CAP-02", "CAP-01", spends=True)
def an_authorization(service: Service) -> Checks:
    """Once authorized, a card can be captured in parts."""
    order, _ = service.paid(by(CARD, capture_mode="manual"))
    yield same("SET-38", order, "status", "completed")
    yield same("SET-38", order, f"{ATTEMPT}is_capturable", True)
    yield one_of("CAP-01", order, "status", ("completed", "accepted"))
    part = service.take(order, "captures/amount/", {"amount": 400, "description": "A probe"})
    yield holds("CAP-02", part.is_success, f"a capture after the authorization is {part.told}")
    if part.is_success:
        service.take(order, "voids/amount/", {"amount": 600, "description": "A probe"})


@probe("CAP-06", "ERR-05", spends=True)
def a_delayed_capture(service: Service) -> Checks:
    """Nobody captures it by hand; it can be voided."""
    order, _ = service.paid(by(CARD, capture_mode="delayed", expiration_period="P1D"))
    for rule in ("CAP-06", "ERR-05"):
        answer = service.take(order, "captures/", {})
        yield from refused(rule, answer, 409, "AuthorizationDelayed")
    service.take(order, "voids/amount/", {"amount": 1000, "description": "A probe"})


@probe("IDR-02", "IDR-04", spends=True)
def a_bank(service: Service) -> Checks:
    """A bank's customer pays, and the account is shown."""
    details = {"issuer_id": service.issuer}
    order, _ = service.paid(by(REDIRECT_NL, payment_method_details=details))
    yield same("IDR-02", order, "status", "completed")
    for name in ("consumer_bic", "consumer_city", "consumer_iban"):
        yield kind("IDR-04", order, f"{DETAILS}{name}", TEXT)


@probe("PLA-05", "PLA-03", "PLA-04", spends=True)
def pay_later(service: Service) -> Checks:
    """Authorized by the customer, then captured and voided by lines."""
    order = service.with_lines(PAY_LATER)
    service.payer.pay(service.page_of(order), "10.00 EUR later")
    yield one_of("PLA-05", service.read(order), "status", ("completed", "accepted"))
    body = {"description": "A probe", "order_lines": some(1)}
    captured = service.take(order, "captures/orderlines/", body)
    yield holds("PLA-03", captured.is_success, f"a capture is {captured.told}")
    voided = service.take(order, "voids/orderlines/", {**body, "order_lines": some(2)})
    yield holds("PLA-04", voided.is_success, f"a void is {voided.told}")
