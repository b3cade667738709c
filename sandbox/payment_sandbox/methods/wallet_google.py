"""A wallet on a mobile device, with two authorization methods that are always enabled."""

from collections.abc import Sequence

from payment_sandbox.methods.common import (
    CARD_IN_PHONE,
    PAGE_KEYS,
    PAGE_TRIGGERS,
    Capabilities,
    Labels,
    PageMethod,
    Reveal,
    Step,
    Terms,
    success_move,
)
from payment_sandbox.orders.actions import Action
from payment_sandbox.orders.cards import (
    AUTHORIZATION_METHODS,
    CARDS,
    CRYPTOGRAM_3DS,
    FRICTIONLESS,
    NETWORKS,
    PAN_ONLY,
)
from payment_sandbox.orders.transaction import Transaction


class WalletGoogle(PageMethod):
    """A wallet: ``PAN_ONLY`` adds a 3-D Secure step; ``CRYPTOGRAM_3DS`` includes device authentication."""

    name = "wallet-google"
    capabilities = Capabilities(
        labels=Labels(
            "Wallet on your phone (G)",
            "Wallet op je telefoon (G)",
            "Wallet auf Ihrem Handy (G)",
            "Portefeuille sur votre téléphone (G)",
        ),
        triggers=PAGE_TRIGGERS,
        icon="wallet",
        hint=CARD_IN_PHONE,
        default_expiration="PT30M",
        brand="wallet-google",
        page="sheet",
        outcomes=(PAGE_KEYS | {"authorization", "card"},),
    )

    def payment_steps(self, attempt: Transaction, action: Action, terms: Terms) -> Sequence[Step]:
        """Reveal the card and its authorization method (GPAY-03, GPAY-05)."""
        authorization = action.authorization or CRYPTOGRAM_3DS
        network = action.card if action.card in NETWORKS else "visa"
        details = {
            "authorization_method": authorization,
            "allowed_authorization_methods": list(AUTHORIZATION_METHODS),
            "three_d_secure": authorization == PAN_ONLY,
            "card_network": network,
            "truncated_pan": CARDS[FRICTIONLESS].truncated_pan,
        }
        return [Reveal(details, network), success_move(attempt)]
