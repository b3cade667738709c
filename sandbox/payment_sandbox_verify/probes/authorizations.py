"""The table of captures, voids, refunds and cancellations."""

from collections.abc import Sequence
from typing import Any, Final

from payment_sandbox_verify.answer import ServiceAnswer
from payment_sandbox_verify.checks import INTEGER, LIST, MOMENT, NUMERAL, TEXT, CannotTell, ValueKind
from payment_sandbox_verify.samples import CARD, INVOICE, LINES_TOTAL, PAY_LATER, REDIRECT_NL, by, some
from payment_sandbox_verify.service import Service
from payment_sandbox_verify.table import (
    AMOUNTS,
    ATTEMPT,
    DETAILS,
    AnyOf,
    Ask,
    At,
    Fields,
    Prepare,
    TableRow,
    TableSection,
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


def cents(amount: int) -> Fields:
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


def guarded(what: str, body: object) -> Ask:
    """Capture with the order's entity tag."""

    def ask(service: Service, order: ServiceAnswer) -> ServiceAnswer:
        etag = service.read(order).headers.get("ETag", "")
        return service.take(order, what, body, headers={"If-Match": etag})

    return ask


def refunded(body: object) -> Ask:
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


def record_of_refund(amount: int) -> Fields:
    """The fields of a refund."""
    return {
        "SET-48 id": TEXT,
        "SET-48 amount": amount,
        "SET-48 transactions": LIST,
        "SET-48 flags": has("is-refund"),
        "SET-48 refund_of_order_id": At("id"),
        "SET-48 status": "completed",
    }


def _refund(rules: str, body: object, amount: int) -> tuple[TableRow, ...]:
    """A refund, which is read, and has left its flag at the order."""
    return (
        TableRow(rules, refunds(body), made, record_of_refund(amount)),
        TableRow("SET-48", refunded(body), succeeds, record_of_refund(amount)),
        TableRow("", reads(), succeeds, {"SET-26 flags": has("has-refunds")}),
    )


FULL_CAPTURES: Final[Sequence[tuple[str, Fields]]] = (
    ("an empty object", {"body": {}}),
    ("an empty body", {"body": None, "content": b""}),
    ("no body", {"body": None}),
)

TABLE: Final = (
    TableSection(
        "an invoice",
        lambda service: service.with_lines(INVOICE),
        {"STA-17 status": "accepted", "INV-06 status": AnyOf(AUTHORIZED)},
        [
            TableRow("INV-03", takes("captures/", {}), needed),
            TableRow("SET-40", reads(), succeeds, {"SET-40 status": "completed", **CAPTURED_FULLY}),
            TableRow("SET-47", takes(AMOUNT, cents(1)), is_refused(409)),
        ],
        spends=True,
    ),
    *(
        TableSection(
            f"captures in full, with {words}",
            an_invoice,
            {},
            [
                TableRow(
                    "SET-10 INV-03 END-11 END-12",
                    takes("captures/", **sent),
                    done,
                    {"SET-46 id": At(f"{ATTEMPT}id"), "SET-46 is_fully_captured": True},
                    f"a capture with {words}",
                ),
                TableRow("", reads(), succeeds, {"SET-26 flags": has("has-captures")}),
            ],
            spends=True,
        )
        for words, sent in FULL_CAPTURES
    ),
    TableSection(
        "captures by lines",
        an_invoice,
        {"LINE-08 order_lines": WORTH_THEIR_ORDER},
        [
            TableRow("SET-08", takes(LINES, HATS), wrong_at()),
            TableRow("END-13", takes(LINES, BY_LINES), needed),
            TableRow(
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
                    f"LDET-02 {DETAILS}[0].status": AnyOf(("authorized", "captured", "voided")),
                    f"ADET-01 {AMOUNTS}.original": INTEGER,
                    f"ADET-01 {AMOUNTS}.voided": 0,
                    f"ADET-01 {AMOUNTS}.captured": 250,
                    f"ADET-01 {AMOUNTS}.remaining": 750,
                    f"SET-27 {ATTEMPT}is_capturable": True,
                },
            ),
            TableRow("CAP-08", takes(AMOUNT, cents(250)), is_refused(409, "CaptureStyleMixed")),
        ],
        spends=True,
    ),
    TableSection(
        "captures by amount",
        an_invoice,
        {},
        [
            TableRow("END-14", takes(AMOUNT, cents(250)), needed),
            TableRow("CAP-09 ERR-04", takes(LINES, BY_LINES), is_refused(409, "CaptureStyleMixed")),
            TableRow("SET-47", takes(AMOUNT, cents(751)), is_refused(409, "CaptureExceedsRemainder")),
            TableRow("SET-47", takes(AMOUNT, cents(250)), succeeds),
            TableRow("SET-47", reads(AMOUNTS), succeeds, {f"SET-47 {AMOUNTS}.captured": 500}),
            TableRow("SET-47", takes(AMOUNT, cents(500)), succeeds),
            TableRow("SET-40", reads(), succeeds, {"SET-40 status": "completed", **CAPTURED_FULLY}),
        ],
        spends=True,
    ),
    TableSection(
        "voids",
        an_invoice,
        {},
        [
            TableRow("END-15", takes(VOID_LINES, BY_LINES), succeeds),
            TableRow("END-16", takes(VOID_AMOUNT, cents(250)), succeeds),
            TableRow(
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
            TableRow("VOID-02", takes(VOID_AMOUNT, cents(501)), is_refused(409, "VoidExceedsRemainder")),
            TableRow("VOID-02", takes(VOID_AMOUNT, cents(500)), succeeds),
            TableRow("SET-43", reads(), succeeds, {"SET-43 status": "cancelled"}),
        ],
        spends=True,
    ),
    TableSection(
        "an invoice before its capture",
        an_invoice,
        {},
        [
            TableRow("REF-01", refunds(BY_LINES), is_refused(409, "NothingToRefund")),
            TableRow("REF-02 INV-05 END-07", asks("DELETE"), succeeds, {"SET-50 status": "cancelled"}),
            TableRow("SET-50", reads(), succeeds, {"SET-50 status": "cancelled"}),
        ],
        spends=True,
    ),
    TableSection(
        "an invoice after its capture",
        after(an_invoice, takes("captures/", {})),
        {},
        [
            TableRow("", reads(), succeeds, {"SET-26 flags": has("has-captures")}),
            TableRow("SET-50", asks("DELETE"), is_refused(409, "OrderNotCancellable")),
            TableRow("END-09", refunds({}), wrong_at("order_lines")),
            TableRow("SET-49", refunds(TOO_MANY), is_refused(409, "RefundExceedsCaptured")),
            *_refund("INV-04 END-08", BY_LINES, 250),
        ],
        spends=True,
    ),
    *(
        TableSection(
            f"a guarded call of {what}",
            an_invoice,
            {},
            [
                TableRow(rule, takes(what, body, headers=STALE), is_refused(412, "PreconditionFailed")),
                TableRow(rule, guarded(what, body), succeeds),
            ],
            spends=True,
        )
        for rule, what, body in (("IFM-01", AMOUNT, cents(250)), ("IFM-02", LINES, BY_LINES))
    ),
    TableSection(
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
    TableSection(
        "a sale",
        a_sale,
        {},
        [
            TableRow("SET-49", refunds({"amount": 1001}), is_refused(409, "RefundExceedsCaptured")),
            *_refund("END-10", {"amount": 300, "description": "A probe"}, 300),
            TableRow("SET-49", refunds({"amount": 401}), is_refused(409, "RefundExceedsCaptured")),
        ],
        spends=True,
    ),
    TableSection(
        "an authorization",
        pays(by(CARD, capture_mode="manual")),
        {
            "SET-38 status": "completed",
            f"SET-38 {ATTEMPT}is_capturable": True,
            "CAP-01 status": AnyOf(AUTHORIZED),
        },
        [
            TableRow("CAP-02", takes(AMOUNT, cents(400)), needed),
            TableRow("VOID-02", takes(VOID_AMOUNT, cents(600)), succeeds),
        ],
        spends=True,
    ),
    TableSection(
        "a delayed capture",
        pays(by(CARD, capture_mode="delayed", expiration_period="P1D")),
        {},
        [
            TableRow("CAP-06 ERR-05", takes("captures/", {}), is_refused(409, "AuthorizationDelayed")),
            TableRow("END-16", takes(VOID_AMOUNT, cents(1000)), succeeds),
        ],
        spends=True,
    ),
    TableSection(
        "no authorization yet",
        orders(by(CARD, capture_mode="manual")),
        {},
        [TableRow("CAP-02", takes("captures/", {}), is_refused(409, "AuthorizationMissing"))],
    ),
    TableSection(
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
    TableSection(
        "pay-later-a, authorized",
        paid_later,
        {"PLA-05 status": AnyOf(AUTHORIZED)},
        [
            TableRow("PLA-03", takes(LINES, BY_LINES), succeeds),
            TableRow("PLA-04", takes(VOID_LINES, {**BY_LINES, "order_lines": some(2)}), succeeds),
        ],
        spends=True,
    ),
)
