"""The buttons of a page, and the actions that they trigger."""

from collections.abc import Mapping
from typing import Any, Final

from payment_sandbox.methods import BY_NAME
from payment_sandbox.orders.actions import BANK, CUSTOMER, SCREENING, Action
from payment_sandbox.orders.cards import CARDS, CONFIGURABLE, PAN_ONLY, Card
from payment_sandbox.web.pages.payer_page import PayerPage

PAY: Final = "pay"
UNAVAILABLE: Final = "unavailable"
BUTTONS: Final[Mapping[str, Action]] = {
    PAY: Action(CUSTOMER, "pay"),
    "fail": Action(CUSTOMER, "fail"),
    "cancel": Action(CUSTOMER, "cancel"),
    "credit": Action(BANK, "credit"),
    "approve": Action(SCREENING, "approve"),
    "decline": Action(SCREENING, "decline"),
    "error": Action(SCREENING, "error"),
}


def secured(name: str | None, card: Card | None, authorization: str | None) -> Action | None:
    """The action of a button of the 3-D Secure step; None if there is no such button."""
    how: dict[str, Any] = {"card": card.name if card is not None else None, "authorization": authorization}
    if name == UNAVAILABLE and card is not None and card.flow == CONFIGURABLE:
        return Action(CUSTOMER, "fail", reason="3-D Secure: unavailable", **how)
    if name in (PAY, "fail", "cancel"):
        return Action(CUSTOMER, str(name), **how)
    return None


def to_be_secured(page: PayerPage, values: Mapping[str, str]) -> tuple[Card | None, str | None] | None:
    """The card, or the wallet's authorization, that needs a 3-D Secure step; None if none is needed."""
    assert page.attempt is not None, "the URL names one"
    able = BY_NAME[page.attempt.method].capabilities
    card = CARDS.get(values.get("card", ""))
    if able.page == "card":
        return (card, None) if card is not None and card.asks else None
    knows_how = "authorization" in able.outcomes[0]
    return (None, PAN_ONLY) if knows_how and values.get("authorization") == PAN_ONLY else None
