"""A wallet on a mobile device."""

from collections.abc import Mapping
from typing import Any

from payment_sandbox.methods.common import (
    CARD_IN_PHONE,
    PAGE_TRIGGERS,
    Capabilities,
    Labels,
    PageMethod,
    Terms,
)
from payment_sandbox.orders.cards import CARDS, FRICTIONLESS
from payment_sandbox.orders.transaction import Transaction


class WalletApple(PageMethod):
    """A wallet, available in live mode only (WAPP-01)."""

    name = "wallet-apple"
    capabilities = Capabilities(
        labels=Labels(
            "Wallet on your phone (A)",
            "Wallet op je telefoon (A)",
            "Wallet auf Ihrem Handy (A)",
            "Portefeuille sur votre téléphone (A)",
        ),
        triggers=PAGE_TRIGGERS,
        icon="wallet",
        hint=CARD_IN_PHONE,
        default_expiration="PT30M",
        testable=False,
        brand="wallet-apple",
        page="sheet",
    )

    def revealed_details(self, attempt: Transaction, terms: Terms) -> Mapping[str, Any]:
        """Return the masked card of the wallet."""
        return {"truncated_pan": CARDS[FRICTIONLESS].truncated_pan}
