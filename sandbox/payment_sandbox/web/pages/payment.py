"""The page of an attempt: what each kind of page shows, and what its pay button does."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Final

from flask import Response, request

from payment_sandbox.methods import BY_NAME
from payment_sandbox.methods.common.banking import ISSUERS
from payment_sandbox.operations.act import act_on_attempt
from payment_sandbox.orders.actions import CUSTOMER, Action
from payment_sandbox.orders.cards import AUTHORIZATION_METHODS, CARDS, CRYPTOGRAM_3DS, FRICTIONLESS, PAN_ONLY
from payment_sandbox.orders.refusals import ActionNotPossible
from payment_sandbox.orders.statuses import TransactionStatus
from payment_sandbox.orders.transaction import Transaction
from payment_sandbox.web.after import hold_webhooks
from payment_sandbox.web.browsers import go
from payment_sandbox.web.pages.buttons import BUTTONS, PAY
from payment_sandbox.web.pages.cardform import OFFERED, read_card
from payment_sandbox.web.pages.outcomes import panel
from payment_sandbox.web.pages.payer_page import PayerPage, record_visit, show

VISIT: Final = Action(CUSTOMER, "visit")
BAD_REQUEST: Final = 400
LOOKS: Final = {"login": "bank", "sheet": "wallet", "scan": "pay"}
TRANSFER_ROWS: Final = (
    ("transfer_holder", "creditor_account_holder_name"),
    ("transfer_iban", "creditor_iban"),
    ("transfer_bic", "creditor_bic"),
    ("transfer_reference", "reference"),
)


def attempt_of(page: PayerPage) -> Transaction:
    """The attempt of a page that has one."""
    assert page.attempt is not None, "the URL names one"
    return page.attempt


def kind_of(page: PayerPage) -> str:
    """The kind of page that an attempt has; during a screening it is a waiting page."""
    attempt = attempt_of(page)
    kind = BY_NAME[attempt.method].capabilities.page
    is_screened = attempt.status == TransactionStatus.PENDING and kind == "terms"
    return "screening" if is_screened else kind


def enter(page: PayerPage) -> PayerPage:
    """The payer opens the page; the first visit changes the attempt's status (SET-36)."""
    if attempt_of(page).status != TransactionStatus.NEW or VISIT.name not in page.actions:
        record_visit(page)
        return page
    hold_webhooks()
    return perform(page, VISIT)


def perform(page: PayerPage, action: Action) -> PayerPage:
    """Act on the attempt; an action that is not possible is ignored, and the page shows the current state.

    This covers double clicks, two tabs and the back button.
    """
    with suppress(ActionNotPossible):
        act_on_attempt(page.project, page.order.id, attempt_of(page).id, action)
    return page.now()


def shown(page: PayerPage, errors: Mapping[str, str] | None = None) -> Response:
    """The page of an attempt that is still open."""
    kind = kind_of(page)
    more = SHOWN.get(kind)
    return show(
        page,
        kind,
        BAD_REQUEST if errors else 200,
        errors=errors or {},
        panel=panel(page),
        typed=_echoed() if errors else {},
        **{"look": LOOKS.get(kind, "pay"), **(more(page) if more is not None else {})},
    )


def _echoed() -> Mapping[str, str]:
    """The values to show again in a form; none with digits, which could be card data."""
    return {name: text for name, text in request.form.items() if not any(map(str.isdecimal, text))}


def paid(page: PayerPage) -> Response | Action:
    """What the pay button does: an action, or a redirect or page that comes first."""
    pay = PAYING.get(kind_of(page))
    return pay(page) if pay is not None else BUTTONS[PAY]


def _card_shown(page: PayerPage) -> dict[str, Any]:
    return {
        "cards": OFFERED,
        "picked": CARDS.get(request.form.get("card", ""), CARDS[FRICTIONLESS]),
        "descriptor": attempt_of(page).asked.get("dynamic_descriptor"),
    }


def _pay_by_card(page: PayerPage) -> Response | Action:
    card, errors = read_card(request.form, page.project.now(), is_typed="typed" in request.args)
    if card is None:
        return shown(page, errors)
    if card.asks:
        return go(page.url("get_secure", card=card.name))
    return BUTTONS[PAY]._replace(card=card.name)


def _login_shown(page: PayerPage) -> dict[str, Any]:
    attempt = attempt_of(page)
    names = {issuer.id: issuer.name for issuer in ISSUERS}
    bank = names.get(attempt.details.get("issuer_id", ""))
    labels = BY_NAME[attempt.method].capabilities.bank
    if bank is None and labels is not None:
        bank = labels[page.language.tag]
    say = page.language.say
    if bank is None:
        return {"title": say("wallet_title"), "brand": say("wallet_name"), "look": "wallet"}
    return {"title": say("bank_title", bank=bank), "brand": bank}


def _sheet_shown(page: PayerPage) -> dict[str, Any]:
    knows_how = "authorization" in BY_NAME[attempt_of(page).method].capabilities.outcomes[0]
    return {
        "card": CARDS[FRICTIONLESS],
        "authorizations": AUTHORIZATION_METHODS[::-1] if knows_how else (),
        "picked": CRYPTOGRAM_3DS,
    }


def _pay_by_sheet(page: PayerPage) -> Response | Action:
    if request.form.get("authorization") == PAN_ONLY:
        return go(page.url("get_secure", authorization=PAN_ONLY))
    return BUTTONS[PAY]


def _transfer_shown(page: PayerPage) -> dict[str, Any]:
    attempt = attempt_of(page)
    left_cents = attempt.amount_cents - attempt.credited_cents
    details = attempt.details
    return {
        "left": page.language.amount(left_cents),
        "rows": [(label, str(details[key])) for label, key in TRANSFER_ROWS],
        "can_arrive": not page.project.settings.is_test,
    }


SHOWN: Final[Mapping[str, Callable[[PayerPage], dict[str, Any]]]] = {
    "card": _card_shown,
    "login": _login_shown,
    "sheet": _sheet_shown,
    "transfer": _transfer_shown,
}
PAYING: Final[Mapping[str, Callable[[PayerPage], Response | Action]]] = {
    "card": _pay_by_card,
    "sheet": _pay_by_sheet,
}
