"""The page of an attempt: the content and the pay button of each kind of page."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import datetime
from typing import Any, Final, NamedTuple

from flask import Response

from payment_sandbox.kernel.patterns import Pattern, is_luhn
from payment_sandbox.methods import METHODS_BY_NAME
from payment_sandbox.operations.act import act_on_attempt, status_after
from payment_sandbox.orders.actions import BANK, CUSTOMER, SCREENING, Action
from payment_sandbox.orders.cards import (
    AUTHORIZATION_METHODS,
    CARDS,
    CONFIGURABLE,
    CRYPTOGRAM_3DS,
    FRICTIONLESS,
    PAN_ONLY,
    Card,
)
from payment_sandbox.orders.refusals import ActionNotPossible
from payment_sandbox.orders.statuses import OrderStatus, TransactionStatus
from payment_sandbox.orders.transaction import Transaction
from payment_sandbox.ui.pages.language import require_babel
from payment_sandbox.ui.pages.payer_page import PayerPage, record_visit, show
from payment_sandbox.web.browsers import redirect

CARDS_BY_NUMBER: Final = {card.number: card for card in CARDS.values()}
NUMBER_PATTERN: Final = Pattern(r"[0-9]{12,19}")
EXPIRY_PATTERN: Final = Pattern(r"([0-9]{1,2}) ?/? ?(?:20)?([0-9]{2})")
CVC_PATTERN: Final = Pattern(r"[0-9]{3}")
CENTURY: Final = 2000
OFFERED_CARDS: Final = tuple(
    CARDS[name]
    for name in (FRICTIONLESS, "challenge", "challenge-configurable", "declined", "insufficient-funds")
)


class CardForm(NamedTuple):
    """The paying card, or the keys of the error phrases by field."""

    card: Card | None
    errors: dict[str, str]


def read_card(form: Mapping[str, str], now: datetime, *, is_typed: bool = False) -> CardForm:
    """Read the form; the selected test card pays, unless card data was typed or ``is_typed`` is set."""
    typed = {field: " ".join(form.get(field, "").split()) for field in ("number", "expiry", "cvc", "holder")}
    number = typed["number"].replace(" ", "").replace("-", "")
    if not any(typed.values()) and not is_typed:
        selected = CARDS.get(form.get("card", FRICTIONLESS))
        return CardForm(selected, {} if selected is not None else {"number": "error_number"})
    problems = {
        "number": _number_error(number),
        "expiry": _expiry_error(typed["expiry"], now),
        "cvc": None if CVC_PATTERN.fullmatch(typed["cvc"]) else "error_cvc",
        "holder": None if typed["holder"] else "error_holder",
    }
    errors = {field: error for field, error in problems.items() if error is not None}
    return CardForm(None if errors else CARDS_BY_NUMBER[number], errors)


def _number_error(number: str) -> str | None:
    if not NUMBER_PATTERN.fullmatch(number) or not is_luhn(number):
        return "error_number"
    return None if number in CARDS_BY_NUMBER else "error_real_card"


def _expiry_error(expiry: str, now: datetime) -> str | None:
    match = EXPIRY_PATTERN.fullmatch(expiry)
    if match is None or not 1 <= int(match[1]) <= 12:
        return "error_expiry"
    return "error_expired" if (CENTURY + int(match[2]), int(match[1])) < (now.year, now.month) else None


PAY_BUTTON: Final = "pay"
UNAVAILABLE_BUTTON: Final = "unavailable"
BUTTONS: Final[Mapping[str, Action]] = {
    PAY_BUTTON: Action(CUSTOMER, "pay"),
    "fail": Action(CUSTOMER, "fail"),
    "cancel": Action(CUSTOMER, "cancel"),
    "credit": Action(BANK, "credit"),
    "approve": Action(SCREENING, "approve"),
    "decline": Action(SCREENING, "decline"),
    "error": Action(SCREENING, "error"),
}


def secure_action(name: str | None, card: Card | None, authorization: str | None) -> Action | None:
    """Return the action behind a button of the 3-D Secure step; None if there is no such button."""
    details: dict[str, Any] = {"card": card and card.name, "authorization": authorization}
    if name == UNAVAILABLE_BUTTON and card is not None and card.flow == CONFIGURABLE:
        return Action(CUSTOMER, "fail", reason="3-D Secure: unavailable", **details)
    if name in (PAY_BUTTON, "fail", "cancel"):
        return Action(CUSTOMER, str(name), **details)
    return None


def secure_subject(page: PayerPage, values: Mapping[str, str]) -> tuple[Card | None, str | None] | None:
    """Return the card or wallet authorization that needs a 3-D Secure step; None if none is needed."""
    assert page.attempt is not None, "the URL must name an attempt"
    capabilities = METHODS_BY_NAME[page.attempt.method].capabilities
    card = CARDS.get(values.get("card", ""))
    if capabilities.page == "card":
        return (card, None) if card is not None and card.needs_confirmation else None
    has_authorization = "authorization" in capabilities.outcomes[0]
    return (None, PAN_ONLY) if has_authorization and values.get("authorization") == PAN_ONLY else None


FAILURE_REASONS: Final = ("Do not honour", "Insufficient funds", "Suspected fraud", "Expired card")
EXPIRE_BUTTON: Final = "expire"
OTHER_BUTTONS: Final = ("credit", "approve", "decline", "error")


class Outcome(NamedTuple):
    """A button of the panel: its value, the key of its label, and the order's status afterwards."""

    name: str
    label: str
    status: str


class Panel(NamedTuple):
    """The testers' panel; ``expires_at`` is the clock's time once the payment has expired."""

    outcomes: tuple[Outcome, ...]
    reasons: tuple[str, ...]
    expires_at: datetime | None


def panel(page: PayerPage) -> Panel | None:
    """Return the panel with the currently possible outcomes; None if there are none."""
    outcomes, attempt = [], page.attempt
    labels = {
        "pay": "outcome_authorize" if attempt is not None and attempt.capture_mode else "outcome_pay",
        "fail": "outcome_fail",
        "cancel": "outcome_cancel",
        **{name: f"sandbox_{name}" for name in OTHER_BUTTONS},
    }
    for name, label in labels.items():
        if attempt is not None and BUTTONS[name].name in page.actions:
            status = status_after(page.project, page.order.id, attempt.id, BUTTONS[name])
            if status is not None:
                outcomes.append(Outcome(name, label, status))
    expires_at = expiry(page)
    if expires_at is not None:
        outcomes.append(Outcome(EXPIRE_BUTTON, "outcome_expire", OrderStatus.EXPIRED.value))
    if not outcomes:
        return None
    can_fail = any(outcome.name == "fail" for outcome in outcomes)
    return Panel(tuple(outcomes), FAILURE_REASONS if can_fail else (), expires_at)


def expiry(page: PayerPage) -> datetime | None:
    """Return the expiry time of the order; None if it never expires."""
    order, attempt = page.order, page.attempt
    if not order.is_open:
        return None
    if order.is_hosted:
        return order.expires_at
    return attempt.expires_at if attempt is not None and attempt.is_open else None


VISIT_ACTION: Final = Action(CUSTOMER, "visit")
BAD_REQUEST: Final = 400
LOOKS_BY_KIND: Final = {"login": "bank", "sheet": "wallet", "scan": "pay"}
TRANSFER_ROWS: Final = (
    ("transfer_holder", "creditor_account_holder_name"),
    ("transfer_iban", "creditor_iban"),
    ("transfer_bic", "creditor_bic"),
    ("transfer_reference", "reference"),
)


def attempt_of(page: PayerPage) -> Transaction:
    """Return the attempt that a page shows."""
    assert page.attempt is not None, "the URL must name an attempt"
    return page.attempt


def kind_of(page: PayerPage) -> str:
    """Return the kind of page to show for the attempt; during a screening it is a waiting page."""
    attempt = attempt_of(page)
    kind = METHODS_BY_NAME[attempt.method].capabilities.page
    is_screened = attempt.status == TransactionStatus.PENDING and kind == "terms"
    return "screening" if is_screened else kind


def enter(page: PayerPage) -> PayerPage:
    """Open the page for the payer; the first visit changes the attempt's status (SET-36)."""
    require_babel()
    if attempt_of(page).status != TransactionStatus.NEW or VISIT_ACTION.name not in page.actions:
        record_visit(page)
        return page
    page.call.hold_webhooks()
    return perform(page, VISIT_ACTION)


def perform(page: PayerPage, action: Action) -> PayerPage:
    """Act on the attempt; an impossible action is ignored, and the page shows the current state.

    This covers double clicks, two tabs and the back button.
    """
    with suppress(ActionNotPossible):
        act_on_attempt(page.project, page.order.id, attempt_of(page).id, action)
    return page.reload()


def show_attempt(page: PayerPage, errors: Mapping[str, str] | None = None) -> Response:
    """Show the page of an attempt that is still open."""
    kind, typed = kind_of(page), page.call.request.form if errors else {}
    more = TEMPLATE_VALUES.get(kind)
    return show(
        page,
        kind,
        BAD_REQUEST if errors else 200,
        errors=errors or {},
        panel=panel(page),
        # values with digits could be card data
        typed={name: text for name, text in typed.items() if not any(map(str.isdecimal, text))},
        **{"look": LOOKS_BY_KIND.get(kind, "pay"), **(more(page) if more is not None else {})},
    )


def press_pay(page: PayerPage) -> Response | Action:
    """Handle the pay button: return its action, or a redirect or page to show first."""
    pay = PAY_HANDLERS.get(kind_of(page))
    if pay is not None:
        return pay(page)
    issuer_id = page.call.request.form.get("issuer_id")
    known = [bank.id for bank in page.project.settings.banks]
    return BUTTONS[PAY_BUTTON]._replace(issuer_id=issuer_id if issuer_id in known else None)


def _card_values(page: PayerPage) -> dict[str, Any]:
    return {
        "cards": OFFERED_CARDS,
        "picked": CARDS.get(page.call.request.form.get("card", ""), CARDS[FRICTIONLESS]),
        "descriptor": attempt_of(page).asked.get("dynamic_descriptor"),
    }


def _pay_by_card(page: PayerPage) -> Response | Action:
    card, errors = read_card(
        page.call.request.form, page.project.now(), is_typed="typed" in page.call.request.args
    )
    if card is None:
        return show_attempt(page, errors)
    if card.needs_confirmation:
        return redirect(page.url("get_secure", card=card.name))
    return BUTTONS[PAY_BUTTON]._replace(card=card.name)


def _login_values(page: PayerPage) -> dict[str, Any]:
    attempt = attempt_of(page)
    banks = page.project.settings.banks
    bank = {bank.id: bank.name for bank in banks}.get(attempt.details.get("issuer_id", ""))
    method = METHODS_BY_NAME[attempt.method].capabilities
    labels, say = method.bank, page.language.say
    if bank is None and method.has_issuers:
        return {"title": say("choose_bank"), "brand": page.method_label, "banks": banks}
    if bank is None and labels is not None:
        return {"title": say("bank_title", bank=labels[page.language.tag]), "brand": page.method_label}
    if bank is None:
        return {"title": say("wallet_title"), "brand": say("wallet_name"), "look": "wallet"}
    return {"title": say("bank_title", bank=bank), "brand": bank}


def _sheet_values(page: PayerPage) -> dict[str, Any]:
    has_authorization = "authorization" in METHODS_BY_NAME[attempt_of(page).method].capabilities.outcomes[0]
    return {
        "card": CARDS[FRICTIONLESS],
        "authorizations": AUTHORIZATION_METHODS[::-1] if has_authorization else (),
        "picked": CRYPTOGRAM_3DS,
    }


def _pay_by_sheet(page: PayerPage) -> Response | Action:
    if page.call.request.form.get("authorization") == PAN_ONLY:
        return redirect(page.url("get_secure", authorization=PAN_ONLY))
    return BUTTONS[PAY_BUTTON]


def _transfer_values(page: PayerPage) -> dict[str, Any]:
    attempt = attempt_of(page)
    return {
        "outstanding": page.language.amount(attempt.amount_cents - attempt.credited_cents),
        "rows": [(label, str(attempt.details[key])) for label, key in TRANSFER_ROWS],
        "can_arrive": not page.project.settings.is_test,
    }


TEMPLATE_VALUES: Final[Mapping[str, Callable[[PayerPage], dict[str, Any]]]] = {
    "card": _card_values,
    "login": _login_values,
    "sheet": _sheet_values,
    "transfer": _transfer_values,
}
PAY_HANDLERS: Final[Mapping[str, Callable[[PayerPage], Response | Action]]] = {
    "card": _pay_by_card,
    "sheet": _pay_by_sheet,
}
