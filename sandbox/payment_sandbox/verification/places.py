"""Which rule a call or a field of an answer belongs to, for differences that no probe asked for."""

import re
from typing import Any, Final

from payment_sandbox.verification.samples import INVOICE, TRANSFER

CALLS: Final = (  # the first that fits
    ("POST", r"/v1/orders/?", "END-02"),
    ("GET", r"/v1/orders/[^/]+/?", "END-03"),
    ("DELETE", r"/v1/orders/[^/]+/?", "END-07"),
    ("PUT", r"/v1/orders/[^/]+/?", "SET-51"),
    ("POST", r".*/refunds/?", "END-10"),
    ("POST", r".*/captures/?", "END-11"),
    ("POST", r".*/captures/orderlines/?", "END-13"),
    ("POST", r".*/captures/amount/?", "END-14"),
    ("POST", r".*/voids/orderlines/?", "END-15"),
    ("POST", r".*/voids/amount/?", "END-16"),
    ("GET", r".*/issuers/?", "END-17"),
    ("POST", r"/v1/bankqr/?", "END-18"),
    ("GET", r".*/currencies/?", "SET-54"),
)
OTHER_CALL: Final = "VER-02"
BEGINS: Final = {TRANSFER: "STA-10", INVOICE: "STA-17", None: "STA-03"}
REDIRECTED: Final = "STA-02"
FIELDS: Final = {
    "id": "ORD-01",
    "currency": "ORD-03",
    "amount": "ORD-05",
    "description": "ORD-06",
    "merchant_order_id": "ORD-07",
    "return_url": "ORD-08",
    "webhook_url": "ORD-10",
    "expiration_period": "ORD-11",
    "payment_methods": "ORD-13",
    "customer": "SET-25",
    "order_lines": "ORD-16",
    "transactions": "ORD-17",
    "client": "ORD-18",
    "created": "ORD-19",
    "modified": "ORD-19",
    "completed": "ORD-20",
    "last_transaction_added": "ORD-21",
    "merchant_id": "ORD-22",
    "project_id": "ORD-22",
    "status": "STA-01",
    "order_url": "SET-24",
    "flags": "SET-26",
    "extra": "SET-14",
    "order_line_details": "LDET-01",
    "amount_details": "ADET-01",
    "refund_of_order_id": "SET-48",
    "transactions.order_id": "TX-01",
    "transactions.id": "TX-01",
    "transactions.merchant_id": "TX-01",
    "transactions.project_id": "TX-01",
    "transactions.amount": "TX-02",
    "transactions.currency": "TX-02",
    "transactions.description": "TX-03",
    "transactions.balance": "TX-04",
    "transactions.credit_debit": "TX-05",
    "transactions.created": "TX-06",
    "transactions.modified": "TX-06",
    "transactions.completed": "TX-07",
    "transactions.expiration_period": "TX-08",
    "transactions.payment_method": "TX-09",
    "transactions.payment_method_brand": "TX-10",
    "transactions.payment_method_details": "TX-11",
    "transactions.payment_url": "TX-12",
    "transactions.product_type": "TX-14",
    "transactions.status": "STA-18",
    "transactions.events": "TX-16",
    "transactions.channel": "SET-29",
    "transactions.is_capturable": "SET-27",
    "transactions.is_fully_captured": "SET-27",
}
QR_FIELDS: Final = {
    "amount": "QR-01",
    "amount_changeable": "QR-03",
    "one_off": "QR-12",
    "expiration": "QR-16",
    "size": "QR-19",
    "merchant_sub_id": "QR-24",
    "beneficiary": "QR-25",
    "qr_url": "QR-26",
}


def rule_of_call(method: str, path: str) -> str:
    """The rule that a call belongs to."""
    plain = path.partition("?")[0]
    for known, pattern, rule in CALLS:
        if method == known and re.fullmatch(pattern, plain):
            return rule
    return OTHER_CALL


def rule_of_field(method: str, path: str, place: str) -> str:
    """The rule that a field of an answer belongs to; that of the call, if the field has none."""
    call = rule_of_call(method, path)
    name = re.sub(r"\[\d+\]", "", place)
    known = QR_FIELDS if call == "END-18" else FIELDS
    while name and name not in known:
        name = name.rpartition(".")[0]
    return known.get(name, call)


def rule_of_beginning(sent: Any) -> str:
    """The rule about the status with which an order begins."""
    transactions = sent.get("transactions") if isinstance(sent, dict) else None
    if not transactions:
        return BEGINS[None]
    first = transactions[0] if isinstance(transactions, list) else {}
    return BEGINS.get(first.get("payment_method"), REDIRECTED) if isinstance(first, dict) else REDIRECTED
