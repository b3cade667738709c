"""Probes of payment pages, QR requests and webhooks."""

from datetime import datetime, timedelta
from typing import Any, Final

from payment_sandbox.verification.answer import ServiceAnswer
from payment_sandbox.verification.checks import (
    CannotTell,
    Checks,
    holds,
    same,
)
from payment_sandbox.verification.probes.codes import SHOWN, codes
from payment_sandbox.verification.probing import probe
from payment_sandbox.verification.samples import (
    CARD,
    REDIRECT_DE,
    REDIRECT_NL,
    RETURN_URL,
    TRANSFER,
    WALLET_QR,
    WALLET_WEB,
    by,
)
from payment_sandbox.verification.service import Service
from payment_sandbox.verification.table import NO_ORDER

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


YEAR: Final = timedelta(days=365)


def _code(service: Service) -> ServiceAnswer:
    answer = codes()(service, NO_ORDER)
    if not answer.is_success:
        raise CannotTell(f"a QR request is {answer.summary}: {answer.at('error.value')}")
    return answer


@probe("QR-15", "LIM-04")
def a_year(service: Service) -> Checks:
    """A request that names no expiration expires in a year."""
    shown = str(_code(service).at("expiration"))
    if not SHOWN.fullmatch(shown):
        raise CannotTell(f"the expiration is {shown}, not as YYYY-MM-DD HH:MM")
    made = service.order().at("created")
    ahead = datetime.fromisoformat(f"{shown}+00:00") - datetime.fromisoformat(str(made))
    for rule in ("QR-15", "LIM-04"):
        is_year = abs(ahead - YEAR) < timedelta(days=2)
        yield holds(rule, is_year, f"the expiration is {ahead.days} days ahead")


@probe("QR-26")
def the_image(service: Service) -> Checks:
    """Its address answers."""
    address = _code(service).at("qr_url")
    if not isinstance(address, str):
        raise CannotTell("the request has no qr_url")
    page = service.payer.visit(service.absolute(address))
    yield holds("QR-26", page.status == 200, f"the image's address answers {page.status}")


@probe("FLOW-14", spends=True)
def a_return(service: Service) -> Checks:
    """A customer who has paid comes back with the order's id."""
    order, went = service.paid(by(CARD), return_url=RETURN_URL)
    for name, value in (("order_id", order.at("id")), ("project_id", order.at("project_id"))):
        if went is not None:
            yield holds("FLOW-14", f"{name}={value}" in went, f"the customer returned to {went}")


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
