"""QR requests."""

import re
from datetime import datetime, timedelta
from typing import Any, Final

from payment_sandbox.verification.answer import Answer
from payment_sandbox.verification.checks import (
    BOOLEAN,
    INTEGER,
    TEXT,
    CannotTell,
    Checks,
    accepted,
    echoed,
    holds,
    kind,
    refused,
    same,
)
from payment_sandbox.verification.probing import probe
from payment_sandbox.verification.samples import RETURN_URL, WEBHOOK_URL
from payment_sandbox.verification.service import MARK, Service

OPEN: Final = {"amount_changeable": True}
YEAR: Final = timedelta(days=365)
SHOWN: Final = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d")
WRONG: Final[tuple[tuple[str, str, dict[str, Any]], ...]] = (
    ("QR-02", "amount", {"amount": 0}),
    ("QR-02", "amount", {"amount": ...}),
    ("QR-03", "amount_changeable", {"amount_changeable": "yes"}),
    ("QR-06", "amount_max", {"amount_max": 2000}),
    ("QR-07", "amount_max", {**OPEN, "amount_max": 900}),
    ("QR-08", "amount_min", {"amount_min": 500}),
    ("QR-09", "amount_min", {**OPEN, "amount_min": 1100}),
    ("LIM-05", "amount_min", {**OPEN, "amount_min": 0}),
    ("QR-10", "currency", {"currency": "USD"}),
    ("QR-11", "description", {"description": 5}),
    ("QR-12", "one_off", {"one_off": "yes"}),
    ("QR-16", "expiration", {"expiration": "next year"}),
    ("QR-18", "merchant_order_id", {"merchant_order_id": 5}),
    ("QR-19", "size", {"size": "large"}),
    ("QR-20", "size", {"size": 99}),
    ("QR-20", "size", {"size": 2001}),
    ("LIM-03", "size", {"size": 2001}),
    ("QR-21", "return_url", {"return_url": "no address"}),
    ("QR-22", "webhook_url", {"webhook_url": "no address"}),
)


def code(service: Service, **fields: Any) -> Answer:
    """Try to make a QR request."""
    body = {
        "amount": 1000,
        "amount_changeable": False,
        "currency": "EUR",
        "description": MARK,
        "webhook_url": WEBHOOK_URL,
        **fields,
    }
    return service.call(
        "POST", "/v1/bankqr/", {key: value for key, value in body.items() if value is not ...}
    )


def _usable(service: Service) -> Answer:
    answer = code(service)
    if not answer.is_success:
        raise CannotTell(f"a QR request is {answer.told}: {answer.at('error.value')}")
    return answer


@probe(
    "END-18",
    "QR-01",
    "QR-03",
    "QR-05",
    "QR-23",
    "QR-24",
    "QR-25",
    "QR-26",
    "QR-11",
    "QR-18",
    "QR-21",
    "QR-22",
)
def a_request(service: Service) -> Checks:
    """Its fields."""
    sent = {"merchant_order_id": "probe-1", "return_url": RETURN_URL, "webhook_url": WEBHOOK_URL}
    answer = code(service, **sent)
    yield from accepted("END-18", answer)
    if not answer.is_success:
        raise CannotTell(f"a QR request is {answer.told}: {answer.at('error.value')}")
    amount = answer.at("amount")
    is_decimal = isinstance(amount, str) and re.fullmatch(r"10\.00?", amount) is not None
    yield holds("QR-01", is_decimal, f"1000 cents are answered as {amount!r}")
    for rule in ("QR-03", "QR-05"):
        yield same(rule, answer, "amount_changeable", False)
    yield from echoed("QR-18", answer, {"merchant_order_id": "probe-1"})
    yield from echoed("QR-21", answer, {"return_url": RETURN_URL})
    yield from echoed("QR-22", answer, {"webhook_url": WEBHOOK_URL})
    yield same("QR-11", answer, "description", MARK)
    for name in ("id", "merchant_id", "project_id"):
        yield kind("QR-23", answer, name, TEXT)
    yield kind("QR-24", answer, "merchant_sub_id", INTEGER)
    yield kind("QR-25", answer, "beneficiary", TEXT)
    yield kind("QR-26", answer, "qr_url", TEXT)


@probe("QR-12", "QR-15", "QR-16", "QR-19", "LIM-03", "LIM-04")
def defaults(service: Service) -> Checks:
    """What a request has that names nothing."""
    answer = _usable(service)
    yield kind("QR-12", answer, "one_off", BOOLEAN)
    yield same("QR-12", answer, "one_off", True)
    for rule in ("QR-19", "LIM-03"):
        yield same(rule, answer, "size", 200)
    shown = str(answer.at("expiration"))
    is_shown = SHOWN.fullmatch(shown) is not None
    yield holds("QR-16", is_shown, f"the expiration is {shown}, not as YYYY-MM-DD HH:MM")
    if not is_shown:
        return
    made = service.order().at("created")
    ahead = datetime.fromisoformat(f"{shown}+00:00") - datetime.fromisoformat(str(made))
    for rule in ("QR-15", "LIM-04"):
        is_year = abs(ahead - YEAR) < timedelta(days=2)
        yield holds(rule, is_year, f"the expiration is {ahead.days} days ahead")


@probe("QR-04", "QR-07", "QR-09", "QR-14")
def open_amounts(service: Service) -> Checks:
    """A payer may change the amount, within bounds."""
    answer = code(service, **OPEN, amount_min=500, amount_max=2000, one_off=False)
    for rule in ("QR-04", "QR-07", "QR-09", "QR-14"):
        yield from accepted(rule, answer)
    if answer.is_success:
        yield same("QR-04", answer, "amount_changeable", True)
        yield same("QR-14", answer, "one_off", False)


@probe(*dict.fromkeys(rule for rule, _, _ in WRONG))
def wrong_fields(service: Service) -> Checks:
    """Each is refused, at its place."""
    for rule, place, fields in WRONG:
        yield from refused(rule, code(service, **fields), 400, "ValidationError", place)


@probe("QR-26")
def the_image(service: Service) -> Checks:
    """Its address answers."""
    answer = _usable(service)
    address = answer.at("qr_url")
    if not isinstance(address, str):
        raise CannotTell("the request has no qr_url")
    page = service.payer.visit(service.absolute(address))
    yield holds("QR-26", page.status == 200, f"the image's address answers {page.status}")
