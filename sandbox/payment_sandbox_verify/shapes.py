"""The shapes of answers: a row for each field, with its rules and the kind of its value."""

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple

from payment_sandbox_verify.answer import MISSING, ServiceAnswer, none_if_missing, value_at
from payment_sandbox_verify.checks import (
    BOOLEAN,
    IDENTIFIER,
    INTEGER,
    ISO_TIME,
    LIST,
    NUMERAL,
    OBJECT,
    SCHEMELESS_ADDRESS,
    TEXT,
    Check,
    Checks,
    ValueKind,
    check_that,
    describe,
)

ORDER_STATUSES: Final = ("new", "processing", "completed", "cancelled", "accepted", "error", "expired")
STATUSES: Final = (*ORDER_STATUSES, "pending")
ORDER_PATH: Final = re.compile(r"/v1/orders(/[^/?]+)?/?(\?.*)?")
REFUNDS_PATH: Final = re.compile(r"/v1/orders/([^/?]+)/refunds/?")
CAPTURES_OR_VOIDS_PATH: Final = re.compile(r"/v1/orders/[^/]+/transactions/([^/]+)/(captures|voids)\b.*")
ERROR_STATUSES: Final = range(400, 600)
NOT_MODIFIED: Final = 304
LINE_DETAILS: Final = "order_line_details"
AMOUNT_DETAILS: Final = "amount_details"


def one_of(*values: object) -> ValueKind:
    """Return the kind of value that is one of several constants."""
    return ValueKind(
        f"one of {list(values)}" if len(values) > 1 else describe(values[0]), lambda value: value in values
    )


ABSENT: Final = ValueKind("missing", lambda value: none_if_missing(value) is None)
PRESENT: Final = ValueKind("present", lambda value: value is not MISSING)
UTC_MICROSECONDS: Final = ValueKind(
    "in UTC with microseconds", lambda value: len(str(value)) == 32 and str(value).endswith("+00:00")
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
Predicate = Callable[[object], bool]


def always(record: object) -> bool:
    """Accept any record."""
    return True


def has_value(path: str, *values: object) -> Predicate:
    """Return a predicate that tests whether a record has one of these values at a path."""
    return lambda record: any(value_at(record, path) == value for value in values)


def has_none_of(path: str, *values: object) -> Predicate:
    """Return a predicate that tests whether a record has none of these values at a path."""
    return lambda record: value_at(record, path) not in values


class Shape(NamedTuple):
    """A field: its rules, paths and kind of value, and a predicate that selects the records to check."""

    rules: str
    paths: str
    kind: ValueKind
    when: Predicate = always


def is_new_page(record: object) -> bool:
    """Whether an order is waiting for its customer on the hosted page."""
    return bool(value_at(record, "status") == "new" and value_at(record, "transactions") == [])


def paid_by(method: str) -> Predicate:
    """Return a predicate that tests whether a transaction has this method and is completed."""
    is_mine, is_paid = has_value("payment_method", method), has_value("status", "completed")
    return lambda record: bool(is_mine(record) and is_paid(record))


ORDER: Final = (
    Shape("ORD-01", "id", TEXT),
    Shape("SET-19", "id", IDENTIFIER),
    Shape("ORD-05", "amount", INTEGER),
    Shape("ORD-17", "transactions", LIST),
    Shape("ORD-19", "created modified", ISO_TIME),
    Shape("SET-19", "created modified", UTC_MICROSECONDS),
    Shape("ORD-20", "completed", ABSENT, has_value("status", "new", "processing")),
    Shape("ORD-20", "completed", ISO_TIME, has_value("status", "completed")),
    Shape("ORD-21", "last_transaction_added", ISO_TIME, has_none_of("transactions[0]", MISSING)),
    Shape("ORD-22", "merchant_id project_id", TEXT),
    Shape("STA-01 ORD-23 SET-35", "status", one_of(*ORDER_STATUSES)),
    Shape("SET-24 STA-03", "order_url", TEXT, is_new_page),
    Shape("ORD-24", "order_url", SCHEMELESS_ADDRESS, has_none_of("order_url", MISSING)),
    Shape("SET-26", "flags", LIST),
)
CARD_DETAILS: Final = "payment_method_details."
IS_CARD, IS_TRANSFER, IS_REDIRECT_NL = (
    has_value("payment_method", name) for name in ("credit-card", "bank-transfer", "bank-redirect-nl")
)
IS_PAID_CARD: Final = paid_by("credit-card")


TRANSACTION: Final = (
    Shape("TX-01", "id order_id merchant_id project_id", TEXT),
    Shape("TX-02", "amount", INTEGER),
    Shape("TX-02", "currency", one_of("EUR")),
    Shape("TX-03", "description", TEXT, has_none_of("description", MISSING)),
    Shape("TX-04 SET-29", "balance", one_of("internal", "test")),
    Shape("TX-05", "credit_debit", one_of("credit")),
    Shape("TX-06", "created modified", ISO_TIME),
    Shape("TX-07", "completed", ABSENT, has_value("status", "new", "processing", "pending")),
    Shape("TX-07", "completed", ISO_TIME, has_value("status", "completed")),
    Shape("TX-08", "expiration_period", TEXT),
    Shape("TX-09", "payment_method", TEXT),
    Shape("TX-10", "payment_method_brand", LOWERCASE),
    Shape("TX-10", "payment_method_brand", one_of("sepa"), IS_TRANSFER),
    Shape("TX-11", "payment_method_details", OBJECT),
    Shape("TX-12", "payment_url", SCHEMELESS_ADDRESS, has_none_of("payment_url", MISSING)),
    Shape("TX-14", "product_type", TEXT),
    Shape("STA-18 TX-15", "status", one_of(*STATUSES)),
    Shape("TX-16", "events", LIST),
    Shape("EVT-01", "events[0].event", one_of(*STATUSES)),
    Shape("EVT-02", "events[0].id", PRESENT),
    Shape("EVT-03 TEV-01", "events[0].noticed events[0].occurred", ISO_TIME),
    Shape("EVT-04", "events[0].source", TEXT),
    Shape("TX-17", "msc_amount", INTEGER, IS_PAID_CARD),
    Shape("TX-17", "msc_calculation_type msc_currency", TEXT, IS_PAID_CARD),
    Shape("SET-27", "is_capturable is_fully_captured", BOOLEAN),
    Shape("SET-28", "reason customer_message", TEXT, has_value("status", "error")),
    Shape("SET-29", "channel", one_of("ecom")),
    Shape("CARD-15", f"{CARD_DETAILS}card_expiry", MONTH_AND_YEAR, IS_PAID_CARD),
    Shape("CARD-16", f"{CARD_DETAILS}cardholder_name", TEXT, IS_PAID_CARD),
    Shape("CARD-17", f"{CARD_DETAILS}liability_shift", BOOLEAN, IS_PAID_CARD),
    Shape("CARD-18", f"{CARD_DETAILS}truncated_pan", MASKED, IS_PAID_CARD),
    *(
        Shape("IDR-04", f"{CARD_DETAILS}consumer_{name}", TEXT, paid_by("bank-redirect-nl"))
        for name in ("bic", "city", "iban")
    ),
    Shape("IDR-03", f"{CARD_DETAILS}issuer_id", TEXT, IS_REDIRECT_NL),
    *(
        Shape("IDR-05", f"{CARD_DETAILS}{name}", TEXT, IS_REDIRECT_NL)
        for name in ("issuer_authentication_url", "status", "transaction_id")
    ),
    Shape("SEPA-06", f"{CARD_DETAILS}reference", TEXT, IS_TRANSFER),
    *(
        Shape("SEPA-07", f"{CARD_DETAILS}consumer_{name}", PRESENT, IS_TRANSFER)
        for name in ("bic", "iban", "name")
    ),
    *(
        Shape("SEPA-08", f"{CARD_DETAILS}creditor_{name}", TEXT, IS_TRANSFER)
        for name in ("bic", "iban", "account_holder_name", "account_holder_city", "account_holder_country")
    ),
)
LINE_DETAIL: Final = (
    *(
        Shape("LDET-01", name, TEXT, has_none_of(name, MISSING))
        for name in ("currency", "merchant_order_line_id", "name", "type")
    ),
    Shape("LDET-02", "status", one_of("authorized", "captured", "voided")),
    Shape("LDET-04", "amount quantity", NUMERAL),
    Shape("LDET-04", "vat_percentage", NUMERAL, has_none_of("vat_percentage", MISSING)),
)
AMOUNT_DETAIL: Final = (Shape("ADET-01", "captured original remaining voided", INTEGER),)
REFUND: Final = (
    Shape("SET-48", "id refund_of_order_id", TEXT),
    Shape("SET-48", "amount", INTEGER),
    Shape("SET-48", "transactions flags", LIST),
    Shape("SET-48", "status", one_of("completed", "processing", "error")),
)
CODE: Final = (
    Shape("QR-01", "amount", DECIMAL, has_none_of("amount", MISSING)),
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


DETAIL_BLOCKS: Final = (
    (LINE_DETAILS, LIST, "END-04", "ORD-28"),
    (AMOUNT_DETAILS, OBJECT, "END-05", "ORD-29"),
)


def check_all_shapes(answers: Sequence[ServiceAnswer]) -> Checks:
    """Check the shapes of all answers; each difference is reported once, with the first call."""
    seen: set[tuple[str, str]] = set()
    for answer in answers:
        for check in _check_answer(answer):
            known = check.rule, check.reason.partition(" is ")[0]
            if known not in seen:
                seen.add(known)
                yield (check if check.is_met else check._replace(reason=f"{answer.call}: {check.reason}"))


def check_shapes(rows: Sequence[Shape], record: object, prefix: str = "") -> Iterator[Check]:
    """Check a record against the shapes of its fields."""
    for row in rows:
        for path in row.paths.split() if row.when(record) else ():
            value = value_at(record, path)
            reason = f"{prefix}{path} is {describe(value)}, not {row.kind.description}"
            yield from (check_that(rule, row.kind.matches(value), reason) for rule in row.rules.split())


def _check_answer(answer: ServiceAnswer) -> Iterator[Check]:
    if answer.status == NOT_MODIFIED or not answer.path.startswith("/v1/"):
        return
    mimetype = answer.headers.get("Content-Type", "").partition(";")[0]
    yield check_that("END-01", mimetype == "application/json", f"its Content-Type is {mimetype or 'missing'}")
    if answer.status in ERROR_STATUSES:
        yield from check_shapes((Shape("SET-03", "error.type error.value", TEXT),), answer.data)
        yield check_that(
            "SET-03", answer.at("error.status") == answer.status, "error.status is not the status"
        )
    elif answer.is_success:
        is_error = isinstance(answer.data, dict) and "error" in answer.data
        reason = f"{answer.summary} with an error or null"
        yield check_that("SET-06", not is_error and answer.data is not None, reason)
        yield from _check_success(answer)


def _check_success(answer: ServiceAnswer) -> Iterator[Check]:
    path = answer.path
    if is_order(answer):
        yield from _check_order(answer)
    elif isinstance(answer.at("refund_of_order_id"), str):
        yield from check_shapes(REFUND, answer.data)
        refunds = REFUNDS_PATH.fullmatch(path)
        is_same_order = refunds is None or refunds[1] == answer.at("refund_of_order_id")
        yield check_that("SET-48", is_same_order, "refund_of_order_id is another order")
    elif (portion := CAPTURES_OR_VOIDS_PATH.fullmatch(path)) is not None:
        yield check_that(
            "SET-46", answer.at("id") == portion[1], f"the response to {portion[2]} is not the transaction"
        )
        yield from check_shapes(TRANSACTION, answer.data)
    elif path.startswith("/v1/bankqr"):
        yield from check_shapes(CODE, answer.data)
    elif path.rstrip("/").endswith("/issuers"):
        yield from check_shapes(ISSUERS, answer.data)
    elif path.rstrip("/").endswith("/currencies"):
        yield from check_shapes(CURRENCIES, answer.data)


def is_order(answer: ServiceAnswer) -> bool:
    """Whether the answer is an order, and not a refund."""
    path = ORDER_PATH.fullmatch(answer.path)
    return path is not None and isinstance(answer.data, dict) and "refund_of_order_id" not in answer.data


def _check_order(answer: ServiceAnswer) -> Iterator[Check]:
    etag = answer.headers.get("ETag", "")
    yield check_that("SET-32", etag.startswith('"'), f"the ETag of an order is {etag or 'missing'}")
    yield from check_shapes(ORDER, answer.data)
    for index, attempt in enumerate(answer.list_at("transactions")):
        prefix = f"transactions[{index}]."
        yield from check_shapes(TRANSACTION, attempt, prefix)
        for name, path in (("order_id", "id"), ("merchant_id", "merchant_id"), ("project_id", "project_id")):
            is_same = value_at(attempt, name) == answer.at(path)
            yield check_that("TX-01", is_same, f"{prefix}{name} differs from the order's")
        details = value_at(answer.request_body, f"{prefix}payment_method_details")
        for name in ("one_click_type", "recurring_type"):
            if isinstance(details, dict) and name in details:
                shape = Shape("CARD-19", f"payment_method_details.{name}", one_of(details[name]))
                yield from check_shapes((shape,), attempt, prefix)
    if answer.method == "DELETE":
        is_cancelled = answer.at("status") == "cancelled"
        yield check_that(
            "SET-50", is_cancelled, f"the status is {describe(answer.at('status'))} after a cancellation"
        )
    yield from _check_blocks(answer)


def _check_blocks(answer: ServiceAnswer) -> Iterator[Check]:
    """Check that the answer has exactly the requested blocks."""
    requested = [name for name in (LINE_DETAILS, AMOUNT_DETAILS) if name in answer.path]
    repeated = "END-06" if len(requested) > 1 else None
    for name, kind, rule, other in DETAIL_BLOCKS:
        if name in requested:
            yield from check_shapes((Shape(repeated or rule, name, kind),), answer.data)
        elif answer.method == "GET":
            yield from check_shapes((Shape(other, name, ABSENT),), answer.data)
    if OBJECT.matches(answer.at(AMOUNT_DETAILS)):
        yield from check_shapes(AMOUNT_DETAIL, answer.at(AMOUNT_DETAILS), f"{AMOUNT_DETAILS}.")
    for index, entry in enumerate(answer.list_at(LINE_DETAILS)):
        yield from check_shapes(LINE_DETAIL, entry, f"{LINE_DETAILS}[{index}].")
