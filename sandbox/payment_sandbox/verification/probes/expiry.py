"""Probes of the payment methods, stored cards and expiry."""

from typing import Final

from payment_sandbox.verification.answer import ServiceAnswer
from payment_sandbox.verification.checks import (
    CannotTell,
    Checks,
    accepted,
    holds,
    one_of,
    refused,
    same,
)
from payment_sandbox.verification.probes.authorizations import cents
from payment_sandbox.verification.probing import probe
from payment_sandbox.verification.samples import (
    CARD,
    INVOICE,
    REDIRECT_BE,
    REDIRECT_DE,
    WALLET_APPLE,
    WALLET_QR,
    WALLET_WEB,
    by,
)
from payment_sandbox.verification.service import Service, flags_of
from payment_sandbox.verification.table import AMOUNTS

DETAILS: Final = "transactions[0].payment_method_details"


@probe("BRD-01", "WQR-02", "WWEB-01", "BRB-01", "WAPP-01", "WAPP-02", "SET-61")
def test_mode(service: Service) -> Checks:
    """Which methods test mode takes."""
    for rule, method in (("BRD-01", REDIRECT_DE), ("WQR-02", WALLET_QR), ("WWEB-01", WALLET_WEB)):
        yield from accepted(rule, service.create(by(method)))
    answers = [service.create(by(method)) for method in (REDIRECT_BE, WALLET_APPLE)]
    if "is-test" not in flags_of(service.order()):
        raise CannotTell("this is not test mode")
    for rules, answer in zip((("BRB-01", "SET-61"), ("WAPP-01", "SET-61")), answers, strict=True):
        for rule in rules:
            yield from refused(rule, answer, 400, "ValidationError", METHOD)
    unknown = str(service.create(by("wallet-cheque")).at("error.value")).replace("cheque", "apple")
    is_known = answers[1].is_success or answers[1].at("error.value") != unknown
    yield holds("WAPP-02", is_known, f"it is refused like an unknown method: {unknown}")


SHORT: Final = "PT3S"
SHORT_SECONDS: Final = 3.0
METHOD: Final = "transactions[0].payment_method"
MARGIN_SECONDS: Final = 1.5
ENDED: Final = ("CAP-03", "CAP-04", "ERR-03", "TRQ-05", "SET-41", "SET-42", "ORD-12")
CAPTURED: Final = ("CAP-05", "CAP-07", "SET-44")


def _authorized(service: Service) -> tuple[ServiceAnswer, ServiceAnswer]:
    """Two invoices that expire soon; of the second a part is captured."""
    first = service.with_lines(INVOICE, expiration_period=SHORT)
    second = service.with_lines(INVOICE, expiration_period=SHORT)
    if first.at("status") not in ("accepted", "completed"):
        raise CannotTell(f"the screening of the test customer says {first.at('status')}")
    service.take(second, "captures/amount/", cents(250))
    return first, second


def _delayed(service: Service) -> ServiceAnswer | str:
    """An authorization that is captured by itself soon, less a part; or why there is none."""
    try:
        order, _ = service.paid(by(CARD, capture_mode="delayed", expiration_period=SHORT))
    except CannotTell as why:
        return str(why)
    voided = service.take(order, "voids/amount/", cents(250))
    return order if voided.is_success else f"a void of a delayed authorization is {voided.summary}"


@probe(*ENDED, *CAPTURED, spends=True)
def endings(service: Service) -> Checks:
    """An authorization ends, and so does a hosted page; a delayed capture happens."""
    hosted = service.order(expiration_period=SHORT)
    delayed = _delayed(service)
    unused, used = _authorized(service)
    service.pause(SHORT_SECONDS + MARGIN_SECONDS)
    yield same("ORD-12", service.read(hosted), "status", "expired")
    yield one_of("CAP-03", service.read(unused), "status", ("expired", "cancelled"))
    yield same("SET-41", service.read(unused), "status", "expired")
    yield same("SET-42", service.read(used), "status", "completed")
    for rule in ("CAP-04", "ERR-03", "TRQ-05", "SET-42"):
        order = used if rule == "SET-42" else unused
        yield from refused(rule, service.take(order, "captures/", {}), 409, "AuthorizationExpired")
    if isinstance(delayed, str):
        raise CannotTell(delayed)
    read = service.read(delayed, AMOUNTS)
    for rule in CAPTURED:
        yield same(rule, read, f"{AMOUNTS}.captured", 750)
    yield same("CAP-07", read, f"{AMOUNTS}.voided", 250)
