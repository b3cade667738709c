"""Reads and checks a card form; what was typed is never stored."""

from collections.abc import Mapping
from datetime import datetime
from typing import Final, NamedTuple

from payment_sandbox.kernel.luhn import is_luhn
from payment_sandbox.kernel.patterns import Pattern
from payment_sandbox.orders.cards import CARDS, FRICTIONLESS, Card

BY_NUMBER: Final = {card.number: card for card in CARDS.values()}
NUMBER: Final = Pattern(r"[0-9]{12,19}")
EXPIRY: Final = Pattern(r"([0-9]{1,2}) ?/? ?(?:20)?([0-9]{2})")
CVC: Final = Pattern(r"[0-9]{3}")
CENTURY: Final = 2000
OFFERED: Final = tuple(
    CARDS[name]
    for name in (FRICTIONLESS, "challenge", "challenge-configurable", "declined", "insufficient-funds")
)


class CardForm(NamedTuple):
    """The card that pays, or the keys of the error phrases, by field."""

    card: Card | None
    errors: dict[str, str]


def read_card(form: Mapping[str, str], now: datetime, *, is_typed: bool = False) -> CardForm:
    """Read the form; if nothing was typed, nor should be, the selected test card pays."""
    typed = {field: _typed(form, field) for field in ("number", "expiry", "cvc", "holder")}
    number = typed["number"].replace(" ", "").replace("-", "")
    if not any(typed.values()) and not is_typed:
        picked = CARDS.get(form.get("card", FRICTIONLESS))
        return CardForm(picked, {} if picked is not None else {"number": "error_number"})
    found = {
        "number": _number_error(number),
        "expiry": _expiry_error(typed["expiry"], now),
        "cvc": None if CVC.fullmatch(typed["cvc"]) else "error_cvc",
        "holder": None if typed["holder"] else "error_holder",
    }
    errors = {field: error for field, error in found.items() if error is not None}
    return CardForm(None if errors else BY_NUMBER[number], errors)


def _typed(form: Mapping[str, str], field: str) -> str:
    """A field with single blanks, as its pattern expects."""
    return " ".join(form.get(field, "").split())


def _number_error(number: str) -> str | None:
    if not NUMBER.fullmatch(number) or not is_luhn(number):
        return "error_number"
    return None if number in BY_NUMBER else "error_real_card"


def _expiry_error(expiry: str, now: datetime) -> str | None:
    found = EXPIRY.fullmatch(expiry)
    if found is None or not 1 <= int(found[1]) <= 12:
        return "error_expiry"
    return "error_expired" if (CENTURY + int(found[2]), int(found[1])) < (now.year, now.month) else None
