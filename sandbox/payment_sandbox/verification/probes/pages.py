"""Probes of payment pages, QR requests and webhooks."""

import re
from datetime import datetime, timedelta
from typing import Any, Final

from payment_sandbox.verification.answer import ServiceAnswer
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
from payment_sandbox.verification.samples import (
    CARD,
    REDIRECT_DE,
    REDIRECT_NL,
    RETURN_URL,
    TRANSFER,
    WALLET_QR,
    WALLET_WEB,
    WEBHOOK_URL,
    by,
)
from payment_sandbox.verification.service import MARK, Service

PAGE: Final = range(200, 400)
VISITED: Final = (
    ("STA-04", CARD),
    ("STA-06", WALLET_QR),
    ("STA-07", WALLET_WEB),
    ("SET-36", REDIRECT_DE),
)
LOCALES: Final = ("nl", "de", "nl-BE", "fr-BE", "en-GB")


def _known(buttons: Any) -> set[str]:
    return {name for name in buttons if name in (CARD, REDIRECT_NL, REDIRECT_DE, WALLET_QR, WALLET_WEB)}


def _visited(service: Service, rule: str, transaction: Any) -> Checks:
    order = service.order(transaction)
    page = service.visit(order)
    yield holds("GEN-06", page.status in PAGE, f"payment_url answers {page.status}")
    yield same(rule, service.read(order), "status", "processing")


@probe("STA-05")
def a_visit_with_a_bank(service: Service) -> Checks:
    """A visit of the payment page makes an order processing."""
    details = {"payment_method_details": {"issuer_id": service.issuer}}
    yield from _visited(service, "STA-05", by(REDIRECT_NL, **details))


def _visits(rule: str, method: str) -> None:
    """The same with another method; a probe of its own, because it may not be enabled."""

    @probe("GEN-06", rule)
    def a_visit(service: Service) -> Checks:
        """A visit of the payment page makes an order processing."""
        yield from _visited(service, rule, by(method))


for _rule, _method in VISITED:
    _visits(_rule, _method)


@probe("CUS-12")
def languages(service: Service) -> Checks:
    """The customer's locale is that of the page."""
    for locale in LOCALES:
        language = service.visit(service.order(customer={"locale": locale})).language
        yield holds(
            "CUS-12", language[:2] == locale[:2], f"with {locale} the page is in {language or 'none'}"
        )


@probe("GEN-03", "GEN-04", "ORD-13", "ORD-14")
def choices(service: Service) -> Checks:
    """The hosted page offers the enabled methods, or those of the allow list."""
    offered = _known(service.visit(service.order()).buttons)
    if not offered:
        raise CannotTell("a program cannot see which methods the hosted page offers")
    for rule in ("GEN-03", "ORD-14"):
        yield holds(rule, len(offered) > 1, f"the page offers {sorted(offered)} only")
    narrowed = _known(service.visit(service.order(payment_methods=[CARD])).buttons)
    for rule in ("GEN-04", "ORD-13"):
        yield holds(rule, narrowed <= {CARD}, f"with an allow list the page offers {sorted(narrowed)}")


@probe("FLOW-02", "ORD-09", spends=True)
def a_hosted_payment(service: Service) -> Checks:
    """From the hosted page the customer comes back to the shop."""
    order, went = service.paid(return_url=RETURN_URL, payment_methods=[CARD])
    if went is None:
        raise CannotTell("nobody saw where the customer went")
    yield same("FLOW-02", order, "status", "completed")
    for rule in ("FLOW-02", "ORD-09"):
        yield holds(rule, went.startswith(RETURN_URL.partition("?")[0]), f"the customer returned to {went}")


@probe("FLOW-15", "FLOW-16")
def cancellations(service: Service) -> Checks:
    """A customer who gives up comes back with the order's id, too."""
    order = service.order(by(CARD), return_url=RETURN_URL)
    went = service.payer.cancel(service.page_of(order), "10.00 EUR with a card")
    if went is None:
        raise CannotTell("nobody saw where the customer went")
    yield holds("FLOW-15", f"order_id={order.at('id')}" in went, f"the customer went to {went}")
    yield holds("FLOW-15", f"project_id={order.at('project_id')}" in went, f"the customer went to {went}")
    order = service.order(by(CARD))
    went = service.payer.cancel(service.page_of(order), "10.00 EUR with a card")
    yield holds("FLOW-16", went is None, f"without return_url the customer went to {went}")


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


def code(service: Service, **fields: Any) -> ServiceAnswer:
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


def _usable(service: Service) -> ServiceAnswer:
    answer = code(service)
    if not answer.is_success:
        raise CannotTell(f"a QR request is {answer.summary}: {answer.at('error.value')}")
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
        raise CannotTell(f"a QR request is {answer.summary}: {answer.at('error.value')}")
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


@probe("HOOK-01", "HOOK-04", "HOOK-05", "HOOK-06", "HOOK-07", "HOOK-08", "SET-55", "AUTH-03", spends=True)
def of_a_transfer(service: Service) -> Checks:
    """A transfer is processing from the beginning, which its webhook tells."""
    order = service.order(by(TRANSFER), webhook_url=service.webhook_url)
    webhook = service.webhook_of(order)
    for rule in ("SET-55", "HOOK-04"):
        yield holds(rule, webhook is not None, f"no webhook came to {service.webhook_url}")
    if webhook is None:
        return
    mimetype = webhook.headers.get("Content-Type", "").partition(";")[0]
    yield holds("HOOK-01", mimetype == "application/json", f"the webhook is {mimetype or 'untyped'}")
    body = webhook.body if isinstance(webhook.body, dict) else {}
    for rule, name, value in (
        ("HOOK-05", "event", "status_changed"),
        ("HOOK-06", "order_id", order.at("id")),
        ("HOOK-07", "project_id", order.at("project_id")),
    ):
        yield holds(rule, body.get(name) == value, f"{name} in the webhook is {body.get(name)!r}")
    yield holds("HOOK-08", "status" not in body, "the webhook carries a status")
    yield holds("AUTH-03", "Authorization" not in webhook.headers, "the webhook has an Authorization header")


@probe("HOOK-02")
def of_a_visit(service: Service) -> Checks:
    """A visit changes the status, which a webhook tells."""
    order = service.order(by(CARD), webhook_url=service.webhook_url)
    service.visit(order)
    if service.read(order).at("status") == order.at("status"):
        raise CannotTell("the visit of a payment page changes no status")
    webhook = service.webhook_of(order)
    yield holds("HOOK-02", webhook is not None, "the status changed, and no webhook came")
