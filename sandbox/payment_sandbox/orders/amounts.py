"""Amounts of money, in whole cents of one currency."""

from typing import Final, TypeAlias

Cents: TypeAlias = int

CURRENCY: Final = "EUR"
AMOUNT_CENTS_MAX: Final = 2**53 - 1  # every JSON parser represents it exactly (A08)


def decimal_text(amount_cents: Cents) -> str:
    """Format cents as euros with two decimals: 1295 is ``12.95``."""
    return f"{amount_cents // 100}.{amount_cents % 100:02d}"
