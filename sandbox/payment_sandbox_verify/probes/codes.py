"""The table of QR requests."""

import re
from collections.abc import Sequence
from typing import Final

from payment_sandbox_verify.checks import BOOLEAN, INTEGER, TEXT, ValueKind
from payment_sandbox_verify.samples import RETURN_URL, WEBHOOK_URL
from payment_sandbox_verify.service import MARK
from payment_sandbox_verify.table import (
    SENT,
    Ask,
    Fields,
    TableRow,
    TableSection,
    asks,
    created,
    wrong_at,
)

TEN_EUROS: Final = ValueKind(
    "10.00", lambda value: isinstance(value, str) and re.fullmatch(r"10\.00?", value) is not None
)
SHOWN: Final = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d")
DAY_AND_TIME: Final = ValueKind(
    "YYYY-MM-DD HH:MM", lambda value: isinstance(value, str) and SHOWN.fullmatch(value) is not None
)
OPEN: Final = {"amount_changeable": True}
LEAST: Final = {
    "amount": 1000,
    "amount_changeable": False,
    "currency": "EUR",
    "description": MARK,
    "webhook_url": WEBHOOK_URL,
}
WRONG: Final[Sequence[tuple[str, str, Fields]]] = (
    ("QR-02", "amount", {"amount": 0}),
    ("QR-02", "amount", {"amount": ...}),
    ("QR-03", "amount_changeable", {"amount_changeable": "yes"}),
    ("QR-06", "amount_max", {"amount_max": 2000}),
    ("QR-07", "amount_max", {**OPEN, "amount_max": 900}),
    ("QR-07 LIM-05", "amount_max", {**OPEN, "amount_max": 1000}),
    ("QR-08", "amount_min", {"amount_min": 500}),
    ("QR-09", "amount_min", {**OPEN, "amount_min": 1100}),
    ("QR-09 LIM-05", "amount_min", {**OPEN, "amount_min": 1000}),
    ("LIM-05", "amount_min", {**OPEN, "amount_min": 0}),
    ("QR-10", "currency", {"currency": "USD"}),
    ("QR-11", "description", {"description": 5}),
    ("QR-12", "one_off", {"one_off": "yes"}),
    ("QR-16", "expiration", {"expiration": "next year"}),
    ("QR-18", "merchant_order_id", {"merchant_order_id": 5}),
    ("QR-19", "size", {"size": "large"}),
    ("QR-20", "size", {"size": 99}),
    ("QR-20 LIM-03", "size", {"size": 2001}),
    ("QR-21", "return_url", {"return_url": "no address"}),
    ("QR-22", "webhook_url", {"webhook_url": "no address"}),
)
TAKEN: Final[Sequence[tuple[str, Fields, Fields]]] = (
    ("QR-20 LIM-03", {"size": 100}, {"QR-19 size": SENT}),
    ("QR-20 LIM-03", {"size": 2000}, {"QR-19 size": SENT}),
    ("QR-09 LIM-05", {**OPEN, "amount_min": 999}, {}),
    ("QR-09 LIM-05", {**OPEN, "amount_min": 1}, {}),
    ("QR-07 LIM-05", {**OPEN, "amount_max": 1001}, {}),
    ("QR-05", {}, {"QR-03 QR-05 amount_changeable": False}),
    (
        "QR-04 QR-07 QR-09 QR-14",
        {**OPEN, "amount_min": 500, "amount_max": 2000, "one_off": False},
        {"QR-04 amount_changeable": True, "QR-14 one_off": False},
    ),
)


def codes(**fields: object) -> Ask:
    """Make a QR request, which may be refused."""
    body = {**LEAST, **fields}
    return asks("POST", "/v1/bankqr/", {name: value for name, value in body.items() if value is not ...})


TABLE: Final = (
    TableSection(
        "QR requests",
        None,
        rows=[
            TableRow(
                "END-18",
                codes(merchant_order_id="probe-1", return_url=RETURN_URL),
                created,
                {
                    "QR-01 amount": TEN_EUROS,
                    "QR-11 description": SENT,
                    "QR-18 merchant_order_id": SENT,
                    "QR-21 return_url": SENT,
                    "QR-22 webhook_url": SENT,
                    "QR-23 id merchant_id project_id": TEXT,
                    "QR-24 merchant_sub_id": INTEGER,
                    "QR-25 beneficiary": TEXT,
                    "QR-26 qr_url": TEXT,
                    "QR-12 one_off": BOOLEAN,
                },
            ),
            TableRow(
                "END-18",
                codes(),
                created,
                {"QR-12 one_off": True, "QR-19 LIM-03 size": 200, "QR-16 expiration": DAY_AND_TIME},
            ),
            *(TableRow(rules, codes(**sent), created, fields) for rules, sent, fields in TAKEN),
            *(TableRow(rules, codes(**sent), wrong_at(place)) for rules, place, sent in WRONG),
        ],
    ),
)
