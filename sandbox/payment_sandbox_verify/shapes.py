"""The shapes of answers to any call: a row for each field, with its rules and the kind of its value."""

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple

from payment_sandbox_verify.answer import MISSING, ServiceAnswer, plain, value_at
from payment_sandbox_verify.checks import (
    BARE,
    BOOLEAN,
    IDENTIFIER,
    INTEGER,
    LIST,
    MOMENT,
    NUMERAL,
    OBJECT,
    TEXT,
    Check,
    Checks,
    ValueKind,
    holds,
    shown,
)

ORDER_STATUSES: Final = ("new", "processing", "completed", "cancelled", "accepted", "error", "expired")
STATUSES: Final = (*ORDER_STATUSES, "pending")
ORDER_PATH: Final = re.compile(r"/v1/orders(/[^/?]+)?/?(\?.*)?")
REFUNDED: Final = re.compile(r"/v1/orders/([^/?]+)/refunds/?")
TAKEN: Final = re.compile(r"/v1/orders/[^/]+/transactions/([^/]+)/(captures|voids)\b.*")
ERRORS: Final = range(400, 600)
NOT_MODIFIED: Final = 304
DETAILS: Final = "order_line_details"
AMOUNTS: Final = "amount_details"


def one_of(*values: object) -> ValueKind:
    """Return the kind of value that is one of several constants."""
    return ValueKind(
        f"one of {list(values)}" if len(values) > 1 else shown(values[0]), lambda value: value in values
    )


ABSENT: Final = ValueKind("missing", lambda value: plain(value) is None)
THERE: Final = ValueKind("there", lambda value: value is not MISSING)
PLAIN_TIME: Final = ValueKind(
    "with microseconds and +00:00", lambda value: len(str(value)) == 32 and str(value).endswith("+00:00")
)
LOWERCASE: Final = ValueKind(
    "in lowercase", lambda value: isinstance(value, str) and value == value.lower() != ""
)
MONTH_AND_YEAR: Final = ValueKind(
    "a month and a year", lambda value: len(str(value)) in (6, 7) and str(value)[-4:].isdigit()
)
MASKED: Final = ValueKind("masked", lambda value: value is not MISSING and not str(value).isdigit())
DECIMAL: Final = ValueKind(
    "euros with a decimal point",
    lambda value: isinstance(value, str) and re.fullmatch(r"\d+\.\d\d?", value) is not None,
)
DAY_AND_TIME: Final = ValueKind(
    "YYYY-MM-DD HH:MM",
    lambda value: isinstance(value, str) and re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d", value) is not None,
)
When = Callable[[object], bool]


def always(record: object) -> bool:
    """Accept any record."""
    return True


def has(place: str, *values: object) -> When:
    """Return a predicate: whether a record has one of these values at a path."""
    return lambda record: any(value_at(record, place) == value for value in values)


def lacks(place: str, *values: object) -> When:
    """Return a predicate: whether a record has none of these values at a path."""
    return lambda record: value_at(record, place) not in values


class Shape(NamedTuple):
    """A field: its rules, its paths, the kind of its value, and a predicate of the records to check."""

    rules: str
    places: str
    kind: ValueKind
    when: When = always


def is_new_page(record: object) -> bool:
    """Whether an order is waiting for its customer on the hosted page."""
    return bool(value_at(record, "status") == "new" and value_at(record, "transactions") == [])


def paid_by(method: str) -> When:
    """Return a predicate: whether a transaction of this method is completed."""
    is_mine, is_paid = has("payment_method", method), has("status", "completed")
    return lambda record: bool(is_mine(record) and is_paid(record))


ORDER: Final = (
    Shape("ORD-01", "id", TEXT),
    Shape("SET-19", "id", IDENTIFIER),
    Shape("ORD-05", "amount", INTEGER),
    Shape("ORD-17", "transactions", LIST),
    Shape("ORD-19", "created modified", MOMENT),
    Shape("SET-19", "created modified", PLAIN_TIME),
    Shape("ORD-20", "completed", ABSENT, has("status", "new", "processing")),
    Shape("ORD-20", "completed", MOMENT, has("status", "completed")),
    Shape("ORD-21", "last_transaction_added", MOMENT, lacks("transactions[0]", MISSING)),
    Shape("ORD-22", "merchant_id project_id", TEXT),
    Shape("STA-01 ORD-23 SET-35", "status", one_of(*ORDER_STATUSES)),
    Shape("SET-24 STA-03", "order_url", TEXT, is_new_page),
    Shape("ORD-24", "order_url", BARE, lacks("order_url", MISSING)),
    Shape("SET-26", "flags", LIST),
)
CARD_DETAILS: Final = "payment_method_details."
IS_CARD, IS_TRANSFER, IS_NL = (
    has("payment_method", name) for name in ("credit-card", "bank-transfer", "bank-redirect-nl")
)
CARD_PAID: Final = paid_by("credit-card")


TRANSACTION: Final = (
    Shape("TX-01", "id order_id merchant_id project_id", TEXT),
    Shape("TX-02", "amount", INTEGER),
    Shape("TX-02", "currency", one_of("EUR")),
    Shape("TX-03", "description", TEXT, lacks("description", MISSING)),
    Shape("TX-04 SET-29", "balance", one_of("internal", "test")),
    Shape("TX-05", "credit_debit", one_of("credit")),
    Shape("TX-06", "created modified", MOMENT),
    Shape("TX-07", "completed", ABSENT, has("status", "new", "processing", "pending")),
    Shape("TX-07", "completed", MOMENT, has("status", "completed")),
    Shape("TX-08", "expiration_period", TEXT),
    Shape("TX-09", "payment_method", TEXT),
    Shape("TX-10", "payment_method_brand", LOWERCASE),
    Shape("TX-10", "payment_method_brand", one_of("sepa"), IS_TRANSFER),
    Shape("TX-11", "payment_method_details", OBJECT),
    Shape("TX-12", "payment_url", BARE, lacks("payment_url", MISSING)),
    Shape("TX-14", "product_type", TEXT),
    Shape("STA-18 TX-15", "status", one_of(*STATUSES)),
    Shape("TX-16", "events", LIST),
    Shape("EVT-01", "events[0].event", one_of(*STATUSES)),
    Shape("EVT-02", "events[0].id", THERE),
    Shape("EVT-03 TEV-01", "events[0].noticed events[0].occurred", MOMENT),
    Shape("EVT-04", "events[0].source", TEXT),
    Shape("TX-17", "msc_amount", INTEGER, CARD_PAID),
    Shape("TX-17", "msc_calculation_type msc_currency", TEXT, CARD_PAID),
    Shape("SET-27", "is_capturable is_fully_captured", BOOLEAN),
    Shape("SET-28", "reason customer_message", TEXT, has("status", "error")),
    Shape("SET-29", "channel", one_of("ecom")),
    Shape("CARD-15", f"{CARD_DETAILS}card_expiry", MONTH_AND_YEAR, CARD_PAID),
    Shape("CARD-16", f"{CARD_DETAILS}cardholder_name", TEXT, CARD_PAID),
    Shape("CARD-17", f"{CARD_DETAILS}liability_shift", BOOLEAN, CARD_PAID),
    Shape("CARD-18", f"{CARD_DETAILS}truncated_pan", MASKED, CARD_PAID),
    *(
        Shape("IDR-04", f"{CARD_DETAILS}consumer_{name}", TEXT, paid_by("bank-redirect-nl"))
        for name in ("bic", "city", "iban")
    ),
    Shape("IDR-03", f"{CARD_DETAILS}issuer_id", TEXT, IS_NL),
    *(
        Shape("IDR-05", f"{CARD_DETAILS}{name}", TEXT, IS_NL)
        for name in ("issuer_authentication_url", "status", "transaction_id")
    ),
    Shape("SEPA-06", f"{CARD_DETAILS}reference", TEXT, IS_TRANSFER),
    *(
        Shape("SEPA-07", f"{CARD_DETAILS}consumer_{name}", THERE, IS_TRANSFER)
        for name in ("bic", "iban", "name")
    ),
    *(
        Shape("SEPA-08", f"{CARD_DETAILS}creditor_{name}", TEXT, IS_TRANSFER)
        for name in ("bic", "iban", "account_holder_name", "account_holder_city", "account_holder_country")
    ),
)
LINE_DETAIL: Final = (
    *(
        Shape("LDET-01", name, TEXT, lacks(name, MISSING))
        for name in ("currency", "merchant_order_line_id", "name", "type")
    ),
    Shape("LDET-02", "status", one_of("authorized", "captured", "voided")),
    Shape("LDET-04", "amount quantity", NUMERAL),
    Shape("LDET-04", "vat_percentage", NUMERAL, lacks("vat_percentage", MISSING)),
)
AMOUNT_DETAIL: Final = (Shape("ADET-01", "captured original remaining voided", INTEGER),)
REFUND: Final = (
    Shape("SET-48", "id refund_of_order_id", TEXT),
    Shape("SET-48", "amount", INTEGER),
    Shape("SET-48", "transactions flags", LIST),
    Shape("SET-48", "status", one_of("completed", "processing", "error")),
)
CODE: Final = (
    Shape("QR-01", "amount", DECIMAL, lacks("amount", MISSING)),
    Shape("QR-03", "amount_changeable", BOOLEAN),
    Shape("QR-12", "one_off", BOOLEAN),
    Shape("QR-16", "expiration", DAY_AND_TIME),
    Shape("QR-19", "size", INTEGER),
    Shape("QR-23", "id merchant_id project_id", TEXT),
    Shape("QR-24", "merchant_sub_id", INTEGER),
    Shape("QR-25", "beneficiary", TEXT),
    Shape("QR-26", "qr_url", TEXT),
)
ISSUERS: Final = (
    Shape("END-17 ISS-01", "[0].id", TEXT),
    Shape("ISS-02", "[0].list_type [0].name", TEXT),
)
CURRENCIES: Final = (
    Shape("SET-54", "payment_methods", OBJECT),
    Shape("SET-54", "payment_methods.credit-card.currencies", one_of(["EUR"])),
)


BLOCKS: Final = ((DETAILS, LIST, "END-04", "ORD-28"), (AMOUNTS, OBJECT, "END-05", "ORD-29"))


def passive(answers: Sequence[ServiceAnswer]) -> Checks:
    """Check the shapes of all answers; each difference is reported once, with the first call."""
    seen: set[tuple[str, str]] = set()
    for answer in answers:
        for check in _of(answer):
            known = check.rule, check.how.partition(" is ")[0]
            if known not in seen:
                seen.add(known)
                yield check if check.holds else check._replace(how=f"{answer.call}: {check.how}")


def shaped(rows: Sequence[Shape], record: object, below: str = "") -> Iterator[Check]:
    """Check a record against the shapes of its fields."""
    for row in rows:
        for place in row.places.split() if row.when(record) else ():
            value = value_at(record, place)
            how = f"{below}{place} is {shown(value)}, not {row.kind.words}"
            yield from (holds(rule, row.kind.fits(value), how) for rule in row.rules.split())


def _of(answer: ServiceAnswer) -> Iterator[Check]:
    if answer.status == NOT_MODIFIED or not answer.path.startswith("/v1/"):
        return
    mimetype = answer.headers.get("Content-Type", "").partition(";")[0]
    yield holds("END-01", mimetype == "application/json", f"its Content-Type is {mimetype or 'missing'}")
    if answer.status in ERRORS:
        yield from shaped((Shape("SET-03", "error.type error.value", TEXT),), answer.data)
        yield holds("SET-03", answer.at("error.status") == answer.status, "error.status is not the status")
    elif answer.is_success:
        is_error = isinstance(answer.data, dict) and "error" in answer.data
        how = f"{answer.summary} with an error or null"
        yield holds("SET-06", not is_error and answer.data is not None, how)
        yield from _of_success(answer)


def _of_success(answer: ServiceAnswer) -> Iterator[Check]:
    path = answer.path
    if is_order(answer):
        yield from _of_order(answer)
    elif isinstance(answer.at("refund_of_order_id"), str):
        yield from shaped(REFUND, answer.data)
        paid = REFUNDED.fullmatch(path)
        same = paid is None or paid[1] == answer.at("refund_of_order_id")
        yield holds("SET-48", same, "refund_of_order_id is another order")
    elif (taken := TAKEN.fullmatch(path)) is not None:
        yield holds(
            "SET-46", answer.at("id") == taken[1], f"{taken[2]} are not answered with the transaction"
        )
        yield from shaped(TRANSACTION, answer.data)
    elif path.startswith("/v1/bankqr"):
        yield from shaped(CODE, answer.data)
    elif path.rstrip("/").endswith("/issuers"):
        yield from shaped(ISSUERS, answer.data)
    elif path.rstrip("/").endswith("/currencies"):
        yield from shaped(CURRENCIES, answer.data)


def is_order(answer: ServiceAnswer) -> bool:
    """Whether the answer is an order, and not a refund."""
    path = ORDER_PATH.fullmatch(answer.path)
    return path is not None and isinstance(answer.data, dict) and "refund_of_order_id" not in answer.data


def _of_order(answer: ServiceAnswer) -> Iterator[Check]:
    etag = answer.headers.get("ETag", "")
    yield holds("SET-32", etag.startswith('"'), f"the ETag of an order is {etag or 'missing'}")
    yield from shaped(ORDER, answer.data)
    for index, attempt in enumerate(answer.listed("transactions")):
        below = f"transactions[{index}]."
        yield from shaped(TRANSACTION, attempt, below)
        for name, place in (("order_id", "id"), ("merchant_id", "merchant_id"), ("project_id", "project_id")):
            is_same = value_at(attempt, name) == answer.at(place)
            yield holds("TX-01", is_same, f"{below}{name} differs from the order's")
        details = value_at(answer.sent, f"{below}payment_method_details")
        for name in ("one_click_type", "recurring_type"):
            if isinstance(details, dict) and name in details:
                shape = Shape("CARD-19", f"payment_method_details.{name}", one_of(details[name]))
                yield from shaped((shape,), attempt, below)
    if answer.method == "DELETE":
        is_cancelled = answer.at("status") == "cancelled"
        yield holds(
            "SET-50", is_cancelled, f"the status is {shown(answer.at('status'))} after a cancellation"
        )
    yield from _of_blocks(answer)


def _of_blocks(answer: ServiceAnswer) -> Iterator[Check]:
    """Check that the answer has exactly the requested blocks."""
    asked = [name for name in (DETAILS, AMOUNTS) if name in answer.path]
    repeated = "END-06" if len(asked) > 1 else None
    for name, kind, rule, other in BLOCKS:
        if name in asked:
            yield from shaped((Shape(repeated or rule, name, kind),), answer.data)
        elif answer.method == "GET":
            yield from shaped((Shape(other, name, ABSENT),), answer.data)
    if OBJECT.fits(answer.at(AMOUNTS)):
        yield from shaped(AMOUNT_DETAIL, answer.at(AMOUNTS), f"{AMOUNTS}.")
    for index, entry in enumerate(answer.listed(DETAILS)):
        yield from shaped(LINE_DETAIL, entry, f"{DETAILS}[{index}].")
