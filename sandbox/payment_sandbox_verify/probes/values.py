"""Probes of fields: all enumeration values, and values on both sides of each limit, each read back."""

import re
from collections.abc import Iterator, Sequence
from copy import deepcopy
from functools import partial
from typing import Any, Final, NamedTuple

from payment_sandbox.orders.lines import LINE_TYPES
from payment_sandbox.orders.order import LOCALES
from payment_sandbox_verify.answer import (
    MISSING,
    PATH_SEGMENT,
    Json,
    ServiceAnswer,
    none_if_missing,
    value_at,
)
from payment_sandbox_verify.checks import CannotTell, Check, Checks, check_refused, check_that, describe
from payment_sandbox_verify.fields import RULES_BY_FIELD, RULES_BY_QR_FIELD
from payment_sandbox_verify.probing import Probe, probe
from payment_sandbox_verify.samples import CARD, CUSTOMER, LINES, RETURN_URL, WEBHOOK_URL, transaction_with
from payment_sandbox_verify.service import CODES_PATH, IGNORED_FIELDS_HEADER, MARKER, ORDERS_PATH, Service

LONG_TEXT: Final = "Wollsocken, größer als 42, für «Zoë» 🧦 " * 12
URLS: Final = (RETURN_URL, f"https://shop.invalid/{'x' * 400}?a=1&b=%20")
ADDRESSES: Final = [{"address": "Teststraat 2", "address_type": "billing", "country": "NL"}]
NON_STRINGS: Final = (5, ["x"])


class Field(NamedTuple):
    """A field: its rules and its path, with accepted and refused values.

    The value ``...`` omits the field. ``changes`` is the rule on changes by PUT. With ``is_echoed``, answers
    include the field.
    """

    rules: str
    path: str
    valid: Sequence[object] = ()
    invalid: Sequence[object] = ()
    changes: str = ""
    is_echoed: bool = True


ORDER_FIELDS: Final = (
    Field("ORD-02", "currency", (), (...,)),
    Field("ORD-03", "currency", ("EUR",), ("USD", "eur", 5)),
    Field("LIM-01", "currency", (), ("GBP",)),
    Field("ORD-04", "amount", (), (...,)),
    Field("SET-11", "amount", (), (0, -1, None, True, 2**53)),
    Field("ORD-05 LIM-02", "amount", (1000, 1, 1295, 2**53 - 1), ("1295", 12.95), "SET-52"),
    Field("ORD-06", "description", (LONG_TEXT, MARKER, "x" * 300, "€"), NON_STRINGS, "SET-51"),
    Field("ORD-07", "merchant_order_id", ("A-1", "probe 7/8", "ä" * 60), NON_STRINGS, "SET-51"),
    Field("ORD-08", "return_url", URLS, ("no address", 5, "/thanks"), "SET-51"),
    Field("ORD-10", "webhook_url", (WEBHOOK_URL, f"{WEBHOOK_URL}?order=7"), ("no address", 5), "SET-51"),
    Field("ORD-11", "expiration_period", ("PT45M", "P1M", "P1W", "PT60M", "P1Y2DT3H4M5S"), ("soon", 5)),
    Field("SET-21", "expiration_period", (), ("PT0S", "-PT5M", "P0D")),
    Field("ORD-13", "payment_methods", ([CARD], [CARD, "wallet-web"]), (CARD, ["cheque"], [5], [])),
    Field("ORD-15", "customer", (), (5, "Jan")),
    Field(
        "SET-14",
        "extra",
        ({"basket": [1, 2.5, None, {"gift": True}], "note": LONG_TEXT}, {"a": 1}),
        (5,),
        "SET-51",
    ),
    Field("ORD-18", "client", ({"user_agent": "probe/1", "shop": 7}, {"user_agent": "probe/2"}), (5,)),
    Field("ORD-16", "order_lines", (), (5, {})),
    Field("CUS-01", "customer.first_name", ("Zoë", "Jan"), NON_STRINGS, "SET-51"),
    Field("CUS-01", "customer.last_name", ("O'Brien-Smith", "de Vries"), NON_STRINGS),
    Field("CUS-02", "customer.gender", ("male", "female"), (5,)),
    Field(
        "CUS-03",
        "customer.birthdate",
        ("1990-01-31", "2000-02-29"),
        ("31-01-1990", "1990-13-01", "19900131", "1990-1-31", 5),
    ),
    Field("CUS-04", "customer.email_address", ("test-order@example.com", "a+b@example.com"), (5,)),
    Field("CUS-05", "customer.phone_numbers", (["+31000000000", "020 1"], []), ("+31000000000", [5])),
    Field("CUS-06", "customer.address", ("Teststraat 1\n1000 AA Amsterdam", "A\nB\nC"), (5,)),
    Field("CUS-07", "customer.address_type", ("customer", "billing"), (5,)),
    Field(
        "CUS-08",
        "customer.additional_addresses",
        (ADDRESSES, [*ADDRESSES, *ADDRESSES]),
        ("Teststraat 2", [5]),
    ),
    Field("CUS-09", "customer.country", ("NL", "BE", "de"), ("Netherlands", "N", "NLD", 5), "SET-51"),
    Field("CUS-10", "customer.ip_address", ("192.0.2.1", "2001:db8::1"), (5,)),
    Field("CUS-11", "customer.locale", LOCALES, ("xx", "NL", "en", 5)),
    Field("LINE-01", "order_lines[0].type", LINE_TYPES, ("service", "Physical", 5)),
    Field("LINE-02", "order_lines[0].amount", (250, 0, 1, 2**40), (2.5, "250", ...), "SET-52"),
    Field("LINE-03", "order_lines[0].currency", ("EUR",), ("USD", 5)),
    Field("LINE-04", "order_lines[0].merchant_order_line_id", ("socks", "a/b"), (5,)),
    Field("LINE-05", "order_lines[0].name", ("Socks", "Größe 42"), (5,)),
    Field("LINE-06", "order_lines[0].quantity", (3, 1, 1000), (1.5, 0, -1, "3", ...)),
    Field("LINE-07 SET-30", "order_lines[0].vat_percentage", (2100, 0, 10_000, 1), ("21%", 10_001, -1, 2.5)),
)
TRANSACTION: Final = "transactions[0]."
TRANSACTION_FIELDS: Final = (
    Field("TRQ-01", f"{TRANSACTION}payment_method", (), (...,)),
    Field("TRQ-02", f"{TRANSACTION}payment_method", (CARD,), ("cheque", CARD.title(), 5)),
    Field(
        "TRQ-03 SET-20",
        f"{TRANSACTION}expiration_period",
        ("PT45M", "P1M", "PT60M", "P1W"),
        ("soon", "PT0S", 5),
    ),
    Field("TRQ-06", f"{TRANSACTION}capture_mode", ("manual", "delayed"), ("later", 5)),
    Field("TRQ-07", f"{TRANSACTION}payment_method_details", (), (5, "x")),
    Field("CARD-10", f"{TRANSACTION}payment_method_details.one_click_type", (), ("second", 5)),
    Field("CARD-11", f"{TRANSACTION}payment_method_details.recurring_type", (), ("second", 5)),
    Field("SET-17", "transactions", (), ([transaction_with(CARD), transaction_with(CARD)], 5)),
)
DESCRIPTOR: Final = f"{TRANSACTION}payment_method_details.dynamic_descriptor"
DESCRIPTOR_FIELDS: Final = (Field("CARD-05", DESCRIPTOR, ("PROBE",), (5,), is_echoed=False),)
CODE_FIELDS: Final = (
    Field("QR-02 LIM-05", "amount", (1000, 1), (0, ..., "1000", 10.5, -1), is_echoed=False),
    Field("QR-03 QR-05", "amount_changeable", (False,), ("yes", 5)),
    Field("QR-06", "amount_max", (), (2000,)),
    Field("QR-08", "amount_min", (), (500,)),
    Field("QR-10", "currency", ("EUR",), ("USD",), is_echoed=False),
    Field("QR-11", "description", (LONG_TEXT, MARKER, "€"), (5,)),
    Field("QR-12 QR-14", "one_off", (True, False), ("yes", 5)),
    Field("QR-16", "expiration", (...,), ("next year", 5), is_echoed=False),
    Field("QR-18", "merchant_order_id", ("A-1", "ä b"), (5,)),
    Field("QR-19", "size", (), ("large", 200.5)),
    Field("QR-20 LIM-03", "size", (100, 101, 200, 1999, 2000), (99, 2001)),
    Field("QR-21", "return_url", URLS, ("no address", 5)),
    Field("QR-22", "webhook_url", (WEBHOOK_URL, f"{WEBHOOK_URL}?code=7"), ("no address", 5)),
)
CHANGEABLE_CODE_FIELDS: Final = (
    Field("QR-07 LIM-05", "amount_max", (1001, 2**40), (900, 1000), is_echoed=False),
    Field("QR-09 LIM-05", "amount_min", (1, 999), (1100, 1000, 0), is_echoed=False),
    Field("QR-04", "amount_changeable", (True,)),
)
MINIMAL_ORDER: Final = {"currency": "EUR", "amount": 1000, "description": MARKER}
FULL_ORDER: Final = {**MINIMAL_ORDER, "customer": CUSTOMER, "order_lines": LINES}
MINIMAL_CODE: Final = {**MINIMAL_ORDER, "amount_changeable": False, "webhook_url": WEBHOOK_URL}
FIELD_GROUPS: Final[Sequence[tuple[str, str, Json, Sequence[Field]]]] = (
    ("fields of orders", ORDERS_PATH, FULL_ORDER, ORDER_FIELDS),
    (
        "fields of transactions",
        ORDERS_PATH,
        {**MINIMAL_ORDER, "transactions": [transaction_with(CARD)]},
        TRANSACTION_FIELDS,
    ),
    (
        "descriptors",
        ORDERS_PATH,
        {**MINIMAL_ORDER, "transactions": [transaction_with(CARD)]},
        DESCRIPTOR_FIELDS,
    ),
    ("fields of codes", CODES_PATH, MINIMAL_CODE, CODE_FIELDS),
    ("bounds of codes", CODES_PATH, {**MINIMAL_CODE, "amount_changeable": True}, CHANGEABLE_CODE_FIELDS),
)


def with_value(body: Json, path: str, value: object) -> Json:
    """Return a copy of a body with another value at a path; ``...`` removes the field."""
    copy: Json = deepcopy(dict(body))
    parent: Any = copy
    steps = [int(index) if index else key for index, key in PATH_SEGMENT.findall(path)]
    for key in steps[:-1]:
        parent = parent.setdefault(key, {}) if isinstance(parent, dict) else parent[key]
    if value is ...:
        parent.pop(steps[-1], None)
    else:
        parent[steps[-1]] = value
    return copy


def _check_values(service: Service, path: str, base: Json, group: Sequence[Field]) -> Checks:
    """Send each valid value at least once, several fields at a time, and each invalid value on its own."""
    for number in range(max(len(field.valid) for field in group)):
        chosen = [(field, field.valid[number % len(field.valid)]) for field in group if field.valid]
        body = dict(base)
        for field, value in chosen:
            body = with_value(body, field.path, value)
        answer = service.call("POST", path, body)
        if not answer.is_success:
            yield from _report_refused_values(service, path, base, chosen)
            continue
        yield from _check_echo(answer, body, chosen)
        if path == ORDERS_PATH:
            yield from _check_echo(service.read(answer), body, chosen)
    for field in group:
        for value in field.invalid:
            yield from _check_refusal(field, service.call("POST", path, with_value(base, field.path, value)))


def _check_refusal(field: Field, answer: ServiceAnswer) -> Checks:
    for rule in field.rules.split():
        yield from check_refused(rule, answer, 400, "ValidationError", field.path)


def _report_refused_values(
    service: Service, path: str, base: Json, chosen: Sequence[tuple[Field, object]]
) -> Checks:
    """Resend, one at a time, the values that were refused together.

    Raises:
        CannotTell: each value is accepted on its own.
    """
    is_any_refused = False
    for field, value in chosen:
        answer = service.call("POST", path, with_value(base, field.path, value))
        if not answer.is_success:
            is_any_refused = True
            reason = f"{field.path} of {describe(value)} returned {answer.summary}"
            yield from (Check(rule, False, reason, answer) for rule in field.rules.split())
    if not is_any_refused:
        raise CannotTell(f"{path} refuses a combination of values, but accepts each on its own")


def _check_echo(answer: ServiceAnswer, body: Json, chosen: Sequence[tuple[Field, object]]) -> Checks:
    """Check that the answer echoes the sent values; report a missing object once."""
    missing: set[str] = set()
    for field, value in [(field, value) for field, value in chosen if field.is_echoed]:
        root = field.path.partition(".")[0].partition("[")[0]
        if answer.at(field.path if root == "customer" else root) is MISSING:
            missing.add(root)
        else:
            yield from _check_value(field.rules, answer, field.path, value)
    for root in sorted(missing - {"customer"}):
        rule = RULES_BY_FIELD.get(root, RULES_BY_QR_FIELD.get(root, "END-18"))
        yield Check(rule, False, f"{answer.method}: {root} is missing")
    yield from _check_customer(answer) if "customer" in body else ()


def _check_customer(answer: ServiceAnswer) -> Checks:
    missing = sorted(key for key in CUSTOMER if answer.at(f"customer.{key}") is MISSING)
    reason = f"{answer.method}: the customer in the response lacks {', '.join(missing)}"
    yield check_that("SET-25", not missing, reason)
    yield Check("CUS-13", True)


def _check_value(rules: str, answer: ServiceAnswer, path: str, sent: object) -> Iterator[Check]:
    value = answer.at(path)
    reason = f"{path} is {describe(value)}, not {describe(sent)}"
    if isinstance(value, str) and isinstance(sent, str) and sent.startswith(value):
        reason = f"{path} is truncated to {len(value)} of {len(sent)} characters"
    for rule in rules.split():
        yield check_that(rule, value == sent, f"{answer.method}: {reason}")


@probe("SET-51", "SET-52")
def order_changes(service: Service) -> Checks:
    """Reads return the values changed by PUT, and PUT also refuses invalid values."""
    fields = [field for field in ORDER_FIELDS if field.changes]
    order = service.new_order(**_full_order(fields, 0))
    order_path = f"{ORDERS_PATH}{order.at('id')}/"
    read = service.read(order)
    chosen = [(field, field.valid[-1]) for field in fields if _is_returned(field, read, order.request_body)]
    answer = service.call("PUT", order_path, _full_order(fields, -1))
    checks = list(
        _check_changes(service, answer, chosen)
        if answer.is_success
        else _change_separately(service, order_path, chosen)
    )
    yield from checks
    failures = " ".join(each.reason for each in checks if not each.is_met)
    yield from _check_put_refusals(
        service, order_path, [field for field in fields if field.path not in failures]
    )


def _check_put_refusals(service: Service, order_path: str, fields: Sequence[Field]) -> Checks:
    for field in fields:
        if "." not in field.path:
            yield from _check_refusal(field, service.call("PUT", order_path, {field.path: field.invalid[0]}))


def _is_returned(field: Field, read: ServiceAnswer, sent: object) -> bool:
    """Whether a read returns the sent value of a field."""
    return bool(none_if_missing(read.at(field.path)) == none_if_missing(value_at(sent, field.path)))


@probe("SET-53")
def unchanged_orders(service: Service) -> Checks:
    """PUT accepts the result of a read, and leaves read-only fields unchanged."""
    fields = [field for field in ORDER_FIELDS if field.changes]
    read = service.read(service.new_order(**_full_order(fields, 0)))
    whole = {**read.data, "description": "Whole", "status": "completed", "merchant_id": "x"}
    answer = service.call("PUT", f"{ORDERS_PATH}{read.at('id')}/", whole)
    yield check_that("SET-53", answer.status == 200, f"PUT with an unchanged order returned {answer.summary}")
    ignored = answer.headers.get(IGNORED_FIELDS_HEADER, "")
    is_named = not ignored or {"status", "merchant_id"} <= set(re.findall(r"[\w.]+", ignored))
    yield check_that(
        "SET-53", is_named, f"of status and merchant_id, {IGNORED_FIELDS_HEADER} names {ignored!r}"
    )
    for name in ("status", "merchant_id", "description") if answer.is_success else ():
        yield from _check_value("SET-53", answer, name, "Whole" if name == "description" else read.at(name))


def _full_order(fields: Sequence[Field], number: int) -> Json:
    """Return an order with the nth valid value of each field."""
    body: Json = dict(FULL_ORDER)
    for field in fields:
        body = with_value(body, field.path, field.valid[number])
    return body


def _change_separately(service: Service, order_path: str, chosen: Sequence[tuple[Field, object]]) -> Checks:
    """Change, one at a time, the fields that were refused together."""
    for field, value in chosen:
        if "." not in field.path:
            answer = service.call("PUT", order_path, {field.path: value})
            yield check_that(
                field.changes, answer.is_success, f"PUT with {field.path} returned {answer.summary}"
            )


def _check_changes(service: Service, answer: ServiceAnswer, chosen: Sequence[tuple[Field, object]]) -> Checks:
    """Check that the answer to a change and a later read show the new values."""
    for response in (answer, service.call("GET", answer.path)):
        for field, value in chosen:
            yield from _check_value(field.changes, response, field.path, value)


def value_probes() -> Iterator[Probe]:
    """Yield a probe for each group of fields."""
    for name, path, base, group in FIELD_GROUPS:
        rules = dict.fromkeys(rule for field in group for rule in field.rules.split())
        run = partial(_check_values, path=path, base=base, group=group)
        yield Probe(run, tuple(rules), is_costly=False, name=name)
