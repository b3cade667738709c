"""The table of captures, voids, refunds and cancellations."""

from typing import Any, Final

from payment_sandbox.verification.answer import ServiceAnswer
from payment_sandbox.verification.checks import INTEGER, LIST, MOMENT, NUMERAL, TEXT, CannotTell, ValueKind
from payment_sandbox.verification.samples import CARD, INVOICE, LINES_TOTAL, PAY_LATER, REDIRECT_NL, by, some
from payment_sandbox.verification.service import Service
from payment_sandbox.verification.table import (
    AMOUNTS,
    ATTEMPT,
    DETAILS,
    Ask,
    At,
    OneOf,
    Prepare,
    Row,
    Section,
    asks,
    done,
    is_refused,
    made,
    needed,
    orders,
    pays,
    reads,
    refunds,
    succeeds,
    takes,
    wrong_at,
)

BY_LINES: Final = {"description": "A probe", "order_lines": some(1)}
TOO_MANY: Final = {"description": "A probe", "order_lines": some(4)}
HATS: Final = {"description": "A probe", "order_lines": some(1, "hats")}
LINES: Final = "captures/orderlines/"
AMOUNT: Final = "captures/amount/"
VOID_LINES: Final = "voids/orderlines/"
VOID_AMOUNT: Final = "voids/amount/"
STALE: Final = {"If-Match": '"stale"'}
AUTHORIZED: Final = ("completed", "accepted")
CAPTURED_FULLY: Final = {f"SET-27 {ATTEMPT}is_capturable": False, f"SET-27 {ATTEMPT}is_fully_captured": True}


def cents(amount: int) -> dict[str, Any]:
    """The body of a capture or void by amount."""
    return {"description": "A probe", "amount": amount}


def an_invoice(service: Service) -> ServiceAnswer:
    """An invoice that can be captured.

    Raises:
        CannotTell: the screening does not let it pass.
    """
    order = service.with_lines(INVOICE)
    if order.at("status") not in AUTHORIZED:
        raise CannotTell(f"the screening of the test customer says {order.at('status')}")
    return order


def after(prepare: Prepare, ask: Ask) -> Prepare:
    """An order about which one more request has succeeded.

    Raises:
        CannotTell: it is refused.
    """

    def prepared(service: Service) -> ServiceAnswer:
        order = prepare(service)
        answer = ask(service, order)
        if not answer.is_success:
            raise CannotTell(f"{answer.call} is {answer.summary}")
        return order

    return prepared


def a_sale(service: Service) -> ServiceAnswer:
    """An order by card that is paid.

    Raises:
        CannotTell: the payment does not complete it.
    """
    order = pays(by(CARD))(service)
    if order.at("status") != "completed":
        raise CannotTell(f"the order is {order.at('status')} after the payment")
    return order


def paid_later(service: Service) -> ServiceAnswer:
    """An order with pay-later-a that the customer has authorized."""
    order = service.with_lines(PAY_LATER)
    service.payer.pay(service.page_of(order), "10.00 EUR later")
    return service.read(order)


def guarded(what: str, body: Any) -> Ask:
    """Capture with the order's entity tag."""

    def ask(service: Service, order: ServiceAnswer) -> ServiceAnswer:
        etag = service.read(order).headers.get("ETag", "")
        return service.take(order, what, body, headers={"If-Match": etag})

    return ask


def refunded(body: Any) -> Ask:
    """Refund the order, and read the refund."""
    return lambda service, order: service.read(service.refund(order, body))


def _socks(details: Any) -> dict[str, int]:
    """The quantity of a line in each of its statuses."""
    return {
        str(each.get("status")): int(each.get("quantity", 0))
        for each in details
        if each.get("merchant_order_line_id") == "socks"
    }


def socks(**expected: int) -> ValueKind:
    """Details in which the line has these quantities."""
    words = " and ".join(f"{count} socks {status}" for status, count in expected.items())
    return ValueKind(words, lambda details: LIST.fits(details) and _socks(details) == expected)


VOIDED: Final = ValueKind(
    "a voided sock", lambda details: LIST.fits(details) and _socks(details).get("voided", 0) >= 1
)


def has(flag: str) -> ValueKind:
    """A list with a flag."""
    return ValueKind(f"a list with {flag}", lambda flags: LIST.fits(flags) and flag in flags)


WORTH_THEIR_ORDER: Final = ValueKind(
    "worth 1000",
    lambda lines: (
        not LIST.fits(lines)
        or sum(each.get("amount", 0) * each.get("quantity", 0) for each in lines) == LINES_TOTAL
    ),
)


def record_of_refund(amount: int) -> dict[str, Any]:
    """The fields of a refund."""
    return {
        "SET-48 id": TEXT,
        "SET-48 amount": amount,
        "SET-48 transactions": LIST,
        "SET-48 flags": has("is-refund"),
        "SET-48 refund_of_order_id": At("id"),
        "SET-48 status": "completed",
    }


def _refund(rules: str, body: Any, amount: int) -> tuple[Row, ...]:
    """A refund, which is read, and has left its flag at the order."""
    return (
        Row(rules, refunds(body), made, record_of_refund(amount)),
        Row("SET-48", refunded(body), succeeds, record_of_refund(amount)),
        Row("", reads(), succeeds, {"SET-26 flags": has("has-refunds")}),
    )


FULL_CAPTURES: Final[tuple[tuple[str, dict[str, Any]], ...]] = (
    ("an empty object", {"body": {}}),
    ("an empty body", {"body": None, "content": b""}),
    ("no body", {"body": None}),
)

TABLE: Final = (
    Section(
        "an invoice",
        lambda service: service.with_lines(INVOICE),
        {"STA-17 status": "accepted", "INV-06 status": OneOf(AUTHORIZED)},
        [
            Row("INV-03", takes("captures/", {}), needed),
            Row("SET-40", reads(), succeeds, {"SET-40 status": "completed", **CAPTURED_FULLY}),
            Row("SET-47", takes(AMOUNT, cents(1)), is_refused(409)),
        ],
        spends=True,
    ),
    *(
        Section(
            f"captures in full, with {words}",
            an_invoice,
            {},
            [
                Row(
                    "SET-10 INV-03 END-11 END-12",
                    takes("captures/", **sent),
                    done,
                    {"SET-46 id": At(f"{ATTEMPT}id"), "SET-46 is_fully_captured": True},
                    f"a capture with {words}",
                ),
                Row("", reads(), succeeds, {"SET-26 flags": has("has-captures")}),
            ],
            spends=True,
        )
        for words, sent in FULL_CAPTURES
    ),
    Section(
        "captures by lines",
        an_invoice,
        {"LINE-08 order_lines": WORTH_THEIR_ORDER},
        [
            Row("SET-08", takes(LINES, HATS), wrong_at()),
            Row("END-13", takes(LINES, BY_LINES), needed),
            Row(
                "END-06",
                reads(DETAILS, AMOUNTS),
                succeeds,
                {
                    f"STA-19 LINE-04 LDET-03 {DETAILS}": socks(authorized=2, captured=1),
                    **{
                        f"LDET-01 {DETAILS}[0].{name}": TEXT
                        for name in ("currency", "merchant_order_line_id", "name", "type")
                    },
                    **{
                        f"LDET-04 {DETAILS}[0].{name}": NUMERAL
                        for name in ("amount", "quantity", "vat_percentage")
                    },
                    f"LDET-02 {DETAILS}[0].status": OneOf(("authorized", "captured", "voided")),
                    f"ADET-01 {AMOUNTS}.original": INTEGER,
                    f"ADET-01 {AMOUNTS}.voided": 0,
                    f"ADET-01 {AMOUNTS}.captured": 250,
                    f"ADET-01 {AMOUNTS}.remaining": 750,
                    f"SET-27 {ATTEMPT}is_capturable": True,
                },
            ),
            Row("CAP-08", takes(AMOUNT, cents(250)), is_refused(409, "CaptureStyleMixed")),
        ],
        spends=True,
    ),
    Section(
        "captures by amount",
        an_invoice,
        {},
        [
            Row("END-14", takes(AMOUNT, cents(250)), needed),
            Row("CAP-09 ERR-04", takes(LINES, BY_LINES), is_refused(409, "CaptureStyleMixed")),
            Row("SET-47", takes(AMOUNT, cents(751)), is_refused(409, "CaptureExceedsRemainder")),
            Row("SET-47", takes(AMOUNT, cents(250)), succeeds),
            Row("SET-47", reads(AMOUNTS), succeeds, {f"SET-47 {AMOUNTS}.captured": 500}),
            Row("SET-47", takes(AMOUNT, cents(500)), succeeds),
            Row("SET-40", reads(), succeeds, {"SET-40 status": "completed", **CAPTURED_FULLY}),
        ],
        spends=True,
    ),
    Section(
        "voids",
        an_invoice,
        {},
        [
            Row("END-15", takes(VOID_LINES, BY_LINES), succeeds),
            Row("END-16", takes(VOID_AMOUNT, cents(250)), succeeds),
            Row(
                "VOID-01",
                reads(DETAILS, AMOUNTS),
                succeeds,
                {
                    f"VOID-01 {AMOUNTS}.voided": 500,
                    f"VOID-01 {AMOUNTS}.remaining": 500,
                    f"STA-20 {DETAILS}": ValueKind(
                        "a voided sock",
                        lambda details: LIST.fits(details) and _socks(details).get("voided", 0) >= 1,
                    ),
                },
            ),
            Row("VOID-02", takes(VOID_AMOUNT, cents(501)), is_refused(409, "VoidExceedsRemainder")),
            Row("VOID-02", takes(VOID_AMOUNT, cents(500)), succeeds),
            Row("SET-43", reads(), succeeds, {"SET-43 status": "cancelled"}),
        ],
        spends=True,
    ),
    Section(
        "an invoice before its capture",
        an_invoice,
        {},
        [
            Row("REF-01", refunds(BY_LINES), is_refused(409, "NothingToRefund")),
            Row("REF-02 INV-05 END-07", asks("DELETE"), succeeds),
            Row("SET-50", reads(), succeeds, {"SET-50 status": "cancelled"}),
        ],
        spends=True,
    ),
    Section(
        "an invoice after its capture",
        after(an_invoice, takes("captures/", {})),
        {},
        [
            Row("", reads(), succeeds, {"SET-26 flags": has("has-captures")}),
            Row("SET-50", asks("DELETE"), is_refused(409, "OrderNotCancellable")),
            Row("END-09", refunds({}), wrong_at("order_lines")),
            Row("SET-49", refunds(TOO_MANY), is_refused(409, "RefundExceedsCaptured")),
            *_refund("INV-04 END-08", BY_LINES, 250),
        ],
        spends=True,
    ),
    *(
        Section(
            f"a guarded call of {what}",
            an_invoice,
            {},
            [
                Row(rule, takes(what, body, headers=STALE), is_refused(412, "PreconditionFailed")),
                Row(rule, guarded(what, body), succeeds),
            ],
            spends=True,
        )
        for rule, what, body in (("IFM-01", AMOUNT, cents(250)), ("IFM-02", LINES, BY_LINES))
    ),
    Section(
        "a payment by card",
        pays(by(CARD)),
        {
            "CARD-06 GEN-05 status": "completed",
            "ORD-20 completed": MOMENT,
            f"TX-07 {ATTEMPT}completed": MOMENT,
            f"TX-17 {ATTEMPT}msc_amount": INTEGER,
            f"TX-17 {ATTEMPT}msc_calculation_type": TEXT,
            f"TX-17 {ATTEMPT}msc_currency": TEXT,
        },
        spends=True,
    ),
    Section(
        "a sale",
        a_sale,
        {},
        [
            Row("SET-49", refunds({"amount": 1001}), is_refused(409, "RefundExceedsCaptured")),
            *_refund("END-10", {"amount": 300, "description": "A probe"}, 300),
            Row("SET-49", refunds({"amount": 401}), is_refused(409, "RefundExceedsCaptured")),
        ],
        spends=True,
    ),
    Section(
        "an authorization",
        pays(by(CARD, capture_mode="manual")),
        {
            "SET-38 status": "completed",
            f"SET-38 {ATTEMPT}is_capturable": True,
            "CAP-01 status": OneOf(AUTHORIZED),
        },
        [
            Row("CAP-02", takes(AMOUNT, cents(400)), needed),
            Row("VOID-02", takes(VOID_AMOUNT, cents(600)), succeeds),
        ],
        spends=True,
    ),
    Section(
        "a delayed capture",
        pays(by(CARD, capture_mode="delayed", expiration_period="P1D")),
        {},
        [
            Row("CAP-06 ERR-05", takes("captures/", {}), is_refused(409, "AuthorizationDelayed")),
            Row("END-16", takes(VOID_AMOUNT, cents(1000)), succeeds),
        ],
        spends=True,
    ),
    Section(
        "no authorization yet",
        orders(by(CARD, capture_mode="manual")),
        {},
        [Row("CAP-02", takes("captures/", {}), is_refused(409, "AuthorizationMissing"))],
    ),
    Section(
        "a bank's customer",
        lambda service: pays(by(REDIRECT_NL, payment_method_details={"issuer_id": service.issuer}))(service),
        {
            "IDR-02 status": "completed",
            **{
                f"IDR-04 {ATTEMPT}payment_method_details.{name}": TEXT
                for name in ("consumer_bic", "consumer_city", "consumer_iban")
            },
        },
        spends=True,
    ),
    Section(
        "pay-later-a, authorized",
        paid_later,
        {"PLA-05 status": OneOf(AUTHORIZED)},
        [
            Row("PLA-03", takes(LINES, BY_LINES), succeeds),
            Row("PLA-04", takes(VOID_LINES, {**BY_LINES, "order_lines": some(2)}), succeeds),
        ],
        spends=True,
    ),
)
