"""Probes of customers, lines, authorizations and invoices."""

from typing import Final

from payment_sandbox.verification.answer import ServiceAnswer
from payment_sandbox.verification.checks import (
    INTEGER,
    LIST,
    MOMENT,
    NUMERAL,
    TEXT,
    CannotTell,
    Checks,
    holds,
    kind,
    one_of,
    refused,
    same,
)
from payment_sandbox.verification.probing import probe
from payment_sandbox.verification.samples import (
    CARD,
    INVOICE,
    LINES_TOTAL,
    PAY_LATER,
    REDIRECT_NL,
    RETURN_URL,
    by,
    some,
)
from payment_sandbox.verification.service import ORDERS, Service, flags_of

DETAILS: Final = "order_line_details"
AMOUNTS: Final = "amount_details"
BY_LINES: Final = {"description": "A probe", "order_lines": some(1)}
BY_AMOUNT: Final = {"description": "A probe", "amount": 250}
CAPTURABLE: Final = "transactions[0].is_capturable"


def invoice(service: Service) -> ServiceAnswer:
    """An invoice that can be captured.

    Raises:
        CannotTell: the screening does not let it pass.
    """
    order = service.with_lines(INVOICE)
    if order.at("status") not in ("accepted", "completed"):
        raise CannotTell(f"the screening of the test customer says {order.at('status')}")
    return order


def quantities(order: ServiceAnswer, line: str = "socks") -> dict[str, int]:
    """The quantity of a line in each of its statuses."""
    details = order.at(DETAILS)
    if not LIST.fits(details):
        raise CannotTell("the order has no order_line_details")
    return {
        str(each.get("status")): int(each.get("quantity", 0))
        for each in details
        if each.get("merchant_order_line_id") == line
    }


@probe("STA-17", "INV-06", "SET-40", spends=True)
def an_invoice(service: Service) -> Checks:
    """It is accepted until nothing is left to capture."""
    order = service.with_lines(INVOICE)
    yield same("STA-17", order, "status", "accepted")
    yield one_of("INV-06", order, "status", ("accepted", "completed"))
    if not service.take(order, "captures/", {}).is_success:
        raise CannotTell("the invoice cannot be captured")
    yield same("SET-40", service.read(order), "status", "completed")


@probe("INV-03", "END-11", "END-12", "SET-10", "SET-46", "SET-07", spends=True)
def captures_in_full(service: Service) -> Checks:
    """With no body, an empty one, or an empty object."""
    for body, content in (({}, None), (None, b""), (None, None)):
        order = invoice(service)
        answer = service.take(order, "captures/", body, content=content)
        words = "an empty object" if body is not None else "no body" if content is None else "an empty body"
        for rule in ("SET-10", "INV-03", "END-11", "END-12"):
            yield holds(rule, answer.is_success, f"a capture with {words} is {answer.summary}")
        if answer.is_success:
            yield holds("SET-07", answer.status == 200, f"a capture is {answer.summary}, not 200")
            yield same("SET-46", answer, "id", order.at("transactions[0].id"))
            yield same("SET-46", answer, "is_fully_captured", True)


@probe(
    "END-13",
    "STA-19",
    "LINE-04",
    "LDET-01",
    "LDET-02",
    "LDET-03",
    "LDET-04",
    "ADET-01",
    "SET-27",
    spends=True,
)
def captures_by_lines(service: Service) -> Checks:
    """The captured quantity moves, and less remains."""
    order = invoice(service)
    answer = service.take(order, "captures/orderlines/", BY_LINES)
    yield holds("END-13", answer.is_success, f"a capture by lines is {answer.summary}")
    if not answer.is_success:
        raise CannotTell(f"a capture by lines is {answer.summary}")
    read = service.read(order, DETAILS, AMOUNTS)
    now = quantities(read)
    for rule in ("STA-19", "LINE-04", "LDET-03"):
        is_so = now == {"authorized": 2, "captured": 1}
        yield holds(rule, is_so, f"after capturing one of three, the line is {now}")
    for name in ("currency", "merchant_order_line_id", "name", "type"):
        yield kind("LDET-01", read, f"{DETAILS}[0].{name}", TEXT)
    for name in ("amount", "quantity", "vat_percentage"):
        yield kind("LDET-04", read, f"{DETAILS}[0].{name}", NUMERAL)
    yield one_of("LDET-02", read, f"{DETAILS}[0].status", ("authorized", "captured", "voided"))
    for name in ("captured", "original", "remaining", "voided"):
        yield kind("ADET-01", read, f"{AMOUNTS}.{name}", INTEGER)
    yield same("ADET-01", read, f"{AMOUNTS}.captured", 250)
    yield same("ADET-01", read, f"{AMOUNTS}.remaining", 750)
    yield same("SET-27", read, CAPTURABLE, True)


@probe("END-14", "SET-47", "CAP-09", "CAP-08", "ERR-04", spends=True)
def styles_and_remainders(service: Service) -> Checks:
    """Partial captures add up; the two styles do not mix; there is no more than what remains."""
    order = invoice(service)
    first = service.take(order, "captures/amount/", BY_AMOUNT)
    yield holds("END-14", first.is_success, f"a capture by amount is {first.summary}")
    if not first.is_success:
        raise CannotTell(f"a capture by amount is {first.summary}")
    for rule in ("CAP-09", "ERR-04"):
        mixed = service.take(order, "captures/orderlines/", BY_LINES)
        yield from refused(rule, mixed, 409, "CaptureStyleMixed")
    over = service.take(order, "captures/amount/", {**BY_AMOUNT, "amount": LINES_TOTAL})
    yield from refused("SET-47", over, 409, "CaptureExceedsRemainder")
    second = service.take(order, "captures/amount/", BY_AMOUNT)
    yield holds("SET-47", second.is_success, f"a second capture is {second.summary}")
    yield same("SET-47", service.read(order, AMOUNTS), f"{AMOUNTS}.captured", 500)
    lines = invoice(service)
    service.take(lines, "captures/orderlines/", BY_LINES)
    by_amount = service.take(lines, "captures/amount/", BY_AMOUNT)
    yield from refused("CAP-08", by_amount, 409, "CaptureStyleMixed")


@probe("END-15", "END-16", "STA-20", "VOID-01", "VOID-02", "SET-43", spends=True)
def voids(service: Service) -> Checks:
    """They lower what is authorized, in part or as a whole."""
    order = invoice(service)
    by_lines = service.take(order, "voids/orderlines/", BY_LINES)
    yield holds("END-15", by_lines.is_success, f"a void by lines is {by_lines.summary}")
    by_amount = service.take(order, "voids/amount/", BY_AMOUNT)
    yield holds("END-16", by_amount.is_success, f"a void by amount is {by_amount.summary}")
    read = service.read(order, DETAILS, AMOUNTS)
    yield same("VOID-01", read, f"{AMOUNTS}.voided", 500)
    yield same("VOID-01", read, f"{AMOUNTS}.remaining", 500)
    voided = quantities(read).get("voided")
    yield holds("STA-20", voided is not None and voided >= 1, f"after a void the line is {quantities(read)}")
    over = service.take(order, "voids/amount/", {**BY_AMOUNT, "amount": LINES_TOTAL})
    yield from refused("VOID-02", over, 409, "VoidExceedsRemainder")
    rest = service.take(order, "voids/amount/", {**BY_AMOUNT, "amount": 500})
    yield holds("VOID-02", rest.is_success, f"a void of the rest is {rest.summary}")
    yield same("SET-43", service.read(order), "status", "cancelled")


@probe(
    "REF-01",
    "REF-02",
    "INV-04",
    "INV-05",
    "END-07",
    "END-08",
    "END-09",
    "SET-48",
    "SET-49",
    "SET-50",
    spends=True,
)
def refunds_and_cancellations(service: Service) -> Checks:
    """Before the capture an invoice is cancelled, afterwards it is refunded by lines."""
    order = invoice(service)
    early = service.refund(order, BY_LINES)
    yield from refused("REF-01", early, 409, "NothingToRefund")
    cancelled = service.call("DELETE", f"{ORDERS}{order.at('id')}/")
    for rule in ("REF-02", "INV-05", "END-07"):
        yield holds(rule, cancelled.is_success, f"a cancellation is {cancelled.summary}")
    yield same("SET-50", service.read(order), "status", "cancelled")
    order = invoice(service)
    if not service.take(order, "captures/", {}).is_success:
        raise CannotTell("the invoice cannot be captured")
    flags = flags_of(service.read(order))
    yield holds("SET-26", "has-captures" in flags, f"the flags of a captured order are {flags}")
    late = service.call("DELETE", f"{ORDERS}{order.at('id')}/")
    yield from refused("SET-50", late, 409, "OrderNotCancellable")
    yield from refused("END-09", service.refund(order, {}), 400, "ValidationError", "order_lines")
    over = service.refund(order, {"order_lines": some(4)})
    yield from refused("SET-49", over, 409, "RefundExceedsCaptured")
    refund = service.refund(order, BY_LINES)
    for rule in ("INV-04", "END-08"):
        yield holds(rule, refund.is_success, f"a refund is {refund.summary}")
    if refund.is_success:
        yield from record_of_refund(service, order, refund, 250)


def record_of_refund(service: Service, order: ServiceAnswer, refund: ServiceAnswer, amount: int) -> Checks:
    """The fields of a refund."""
    yield holds("SET-07", refund.status == 201, f"a refund is {refund.summary}, not 201")
    yield kind("SET-48", refund, "id", TEXT)
    yield same("SET-48", refund, "amount", amount)
    yield kind("SET-48", refund, "transactions", LIST)
    yield holds("SET-48", "is-refund" in flags_of(refund), f"the flags of a refund are {refund.at('flags')}")
    yield same("SET-48", refund, "refund_of_order_id", order.at("id"))
    yield same("SET-48", refund, "status", "completed")
    yield holds("SET-48", service.read(refund).is_success, "a refund cannot be read")
    flags = flags_of(service.read(order))
    yield holds("SET-26", "has-refunds" in flags, f"the flags of a refunded order are {flags}")


@probe("IFM-01", "IFM-02", "SET-33", spends=True)
def guarded_captures(service: Service) -> Checks:
    """A capture honours If-Match."""
    for rule, what, body in (
        ("IFM-01", "captures/amount/", BY_AMOUNT),
        ("IFM-02", "captures/orderlines/", BY_LINES),
    ):
        order = invoice(service)
        stale = service.take(order, what, body, headers={"If-Match": '"stale"'})
        yield from refused(rule, stale, 412, "PreconditionFailed")
        etag = service.read(order).headers.get("ETag", "")
        fresh = service.take(order, what, body, headers={"If-Match": etag})
        yield holds(rule, fresh.is_success, f"a capture with the order's entity tag is {fresh.summary}")


@probe("LINE-08", "SET-08", spends=True)
def unknown_lines(service: Service) -> Checks:
    """A line that the order has not is refused; the lines of an order make its amount."""
    order = invoice(service)
    lines = order.at("order_lines")
    if LIST.fits(lines):
        total = sum(each.get("amount", 0) * each.get("quantity", 0) for each in lines)
        yield holds("LINE-08", total == order.at("amount"), f"the lines make {total}")
    wrong = service.take(order, "captures/orderlines/", {**BY_LINES, "order_lines": some(1, "hats")})
    yield from refused("SET-08", wrong, 400, "ValidationError")


ATTEMPT: Final = "transactions[0]."
ATTEMPT_DETAILS: Final = f"{ATTEMPT}payment_method_details."


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
    yield holds("END-10", refund.is_success, f"a refund is {refund.summary}")
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
    yield holds("CAP-02", part.is_success, f"a capture after the authorization is {part.summary}")
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
        yield kind("IDR-04", order, f"{ATTEMPT_DETAILS}{name}", TEXT)


@probe("PLA-05", "PLA-03", "PLA-04", spends=True)
def pay_later(service: Service) -> Checks:
    """Authorized by the customer, then captured and voided by lines."""
    order = service.with_lines(PAY_LATER)
    service.payer.pay(service.page_of(order), "10.00 EUR later")
    yield one_of("PLA-05", service.read(order), "status", ("completed", "accepted"))
    body = {"description": "A probe", "order_lines": some(1)}
    captured = service.take(order, "captures/orderlines/", body)
    yield holds("PLA-03", captured.is_success, f"a capture is {captured.summary}")
    voided = service.take(order, "voids/orderlines/", {**body, "order_lines": some(2)})
    yield holds("PLA-04", voided.is_success, f"a void is {voided.summary}")
