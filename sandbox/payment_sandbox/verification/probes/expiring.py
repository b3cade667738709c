"""What ends by itself, shown with periods of seconds; they all end in one pause."""

from typing import Final

from payment_sandbox.verification.answer import Answer
from payment_sandbox.verification.checks import CannotTell, Checks, one_of, refused, same
from payment_sandbox.verification.probes.invoices import AMOUNTS, BY_AMOUNT
from payment_sandbox.verification.probing import probe
from payment_sandbox.verification.samples import CARD, INVOICE, by
from payment_sandbox.verification.service import Service

SHORT: Final = "PT3S"
SHORT_SECONDS: Final = 3.0
MARGIN_SECONDS: Final = 1.5
ENDED: Final = ("CAP-03", "CAP-04", "ERR-03", "TRQ-05", "SET-41", "SET-42", "ORD-12")
CAPTURED: Final = ("CAP-05", "CAP-07", "SET-44")


def _authorized(service: Service) -> tuple[Answer, Answer]:
    """Two invoices that expire soon; of the second a part is captured."""
    first = service.with_lines(INVOICE, expiration_period=SHORT)
    second = service.with_lines(INVOICE, expiration_period=SHORT)
    if first.at("status") not in ("accepted", "completed"):
        raise CannotTell(f"the screening of the test customer says {first.at('status')}")
    service.take(second, "captures/amount/", BY_AMOUNT)
    return first, second


def _delayed(service: Service) -> Answer | str:
    """An authorization that is captured by itself soon, less a part; or why there is none."""
    try:
        order, _ = service.paid(by(CARD, capture_mode="delayed", expiration_period=SHORT))
    except CannotTell as why:
        return str(why)
    voided = service.take(order, "voids/amount/", BY_AMOUNT)
    return order if voided.is_success else f"a void of a delayed authorization is {voided.told}"


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
