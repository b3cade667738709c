"""Amounts of money, in whole cents of one currency."""

import re
from typing import Final, TypeAlias

from payment_sandbox.kernel.patterns import Pattern

Cents: TypeAlias = int

CURRENCY: Final = "EUR"
AMOUNT_CENTS_MAX: Final = 2**53 - 1  # every JSON parser represents it exactly (A08)

_CENTS_IN_WORDS: Final = re.compile(r"(?<!\d)(-?\d{1,16}) cents\b")
_EUROS: Final = Pattern(r"([0-9]{1,14})(?:[.,]([0-9]{1,2}))?")
_GROUPED: Final = Pattern(r"[0-9]{1,3}(?:(?:\.[0-9]{3}){1,3},|(?:,[0-9]{3}){1,3}\.)[0-9]{2}")


def parse_euros(text: str) -> Cents:
    """Parse an amount typed in euros, with a decimal point or comma: ``12,95`` is 1295 cents.

    Thousands separators are accepted if cents follow: ``1.234,50`` and ``1,234.50`` are 123450.

    Raises:
        ValueError: the text is not an amount.
    """
    if _GROUPED.fullmatch(text) is not None:
        text = f"{''.join(letter for letter in text[:-3] if letter.isdigit())}.{text[-2:]}"
    match = _EUROS.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is not an amount in euros")
    return int(match[1]) * 100 + int((match[2] or "").ljust(2, "0"))


def euros(amount_cents: Cents) -> str:
    """Format cents for display: 129500 is ``€1,295.00``."""
    return f"{'-' if amount_cents < 0 else ''}€{abs(amount_cents) // 100:,}.{abs(amount_cents) % 100:02}"


def convert_cents(text: str) -> str:
    """Convert the amounts in a text from cents to euros."""
    return _CENTS_IN_WORDS.sub(lambda match: euros(int(match[1])), text)


def decimal_text(amount_cents: Cents) -> str:
    """Format cents as euros with two decimals: 1295 is ``12.95``."""
    return f"{amount_cents // 100}.{amount_cents % 100:02d}"
