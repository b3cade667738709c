"""The pages that a customer's browser sees."""

from typing import Any, Final

from payment_sandbox.verification.checks import CannotTell, Checks, holds, same
from payment_sandbox.verification.probing import probe
from payment_sandbox.verification.samples import (
    CARD,
    REDIRECT_DE,
    REDIRECT_NL,
    RETURN_URL,
    WALLET_QR,
    WALLET_WEB,
    by,
)
from payment_sandbox.verification.service import Service

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
