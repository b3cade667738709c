"""The test cards: five families, three flows, and two cards that a bank declines."""

from typing import Any, Final, NamedTuple

FRICTIONLESS: Final = "frictionless"
CHALLENGE: Final = "challenge"
CONFIGURABLE: Final = "challenge-configurable"


class Card(NamedTuple):
    """A test card; ``refusal`` is why its bank declines it, if it does."""

    name: str
    family: str
    flow: str
    truncated_pan: str
    refusal: str | None = None

    @property
    def shown(self) -> dict[str, Any]:
        """What a paid transaction shows of it (CARD-15 to CARD-18)."""
        return {
            "card_expiry": "122031",
            "cardholder_name": "J. de Vries",
            "liability_shift": True,
            "truncated_pan": self.truncated_pan,
        }


PAN_ONLY: Final = "PAN_ONLY"
CRYPTOGRAM_3DS: Final = "CRYPTOGRAM_3DS"
AUTHORIZATION_METHODS: Final = (PAN_ONLY, CRYPTOGRAM_3DS)  # GPAY-02: no setting switches one off
NETWORKS: Final = ("mastercard", "visa", "amex", "discover", "unionpay")  # GPAY-04

CREDIT_FAMILIES: Final = ("visa", "mastercard")
DEBIT_FAMILIES: Final = ("vpay", "maestro")
COMBINED_FAMILIES: Final = ("cartes-bancaires",)

CARDS: Final = {
    card.name: card
    for card in (
        Card(FRICTIONLESS, "visa", FRICTIONLESS, "411111******1111"),
        Card(CHALLENGE, "mastercard", CHALLENGE, "555555******4444"),
        Card(CONFIGURABLE, "visa", CONFIGURABLE, "401288******1881"),
        Card("visa", "visa", FRICTIONLESS, "422222******2222"),
        Card("mastercard", "mastercard", FRICTIONLESS, "510510******5100"),
        Card("vpay", "vpay", FRICTIONLESS, "482400******0016"),
        Card("maestro", "maestro", FRICTIONLESS, "679999******0018"),
        Card("cartes-bancaires", "cartes-bancaires", FRICTIONLESS, "497010******0006"),
        Card("declined", "visa", FRICTIONLESS, "400000******0002", "Do not honour"),
        Card("insufficient-funds", "mastercard", CHALLENGE, "510000******0008", "Insufficient funds"),
    )
}
