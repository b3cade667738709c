"""The test cards: five families, three flows, and two declined cards."""

from datetime import datetime
from typing import Annotated, Any, Final, NamedTuple

from payment_sandbox.kernel.descriptions import Key, OneOf
from payment_sandbox.kernel.times import Period
from payment_sandbox.orders.amounts import Cents
from payment_sandbox.orders.refusals import RecurringSeriesExpired

FRICTIONLESS: Final = "frictionless"
CHALLENGE: Final = "challenge"
CONFIGURABLE: Final = "challenge-configurable"


class Card(NamedTuple):
    """A test card; ``refusal`` is the reason for a decline by its bank, if any."""

    name: str
    family: str
    flow: str
    number: str  # for manual tests; responses never show it
    refusal: str | None = None

    @property
    def truncated_pan(self) -> str:
        """The masked number for responses and pages."""
        return f"{self.number[:6]}******{self.number[-4:]}"

    @property
    def needs_confirmation(self) -> bool:
        """Whether the bank asks the customer for confirmation."""
        return self.flow != FRICTIONLESS

    @property
    def details(self) -> dict[str, Any]:
        """The card details of a paid transaction (CARD-15 to CARD-18)."""
        return {
            "card_expiry": "122031",
            "cardholder_name": "J. de Vries",
            "liability_shift": True,
            "truncated_pan": self.truncated_pan,
        }


PAN_ONLY: Final = "PAN_ONLY"
CRYPTOGRAM_3DS: Final = "CRYPTOGRAM_3DS"
AUTHORIZATION_METHODS: Final = (PAN_ONLY, CRYPTOGRAM_3DS)  # GPAY-02: no setting can disable them
NETWORKS: Final = ("mastercard", "visa", "amex", "discover", "unionpay")  # GPAY-04

CREDIT_FAMILIES: Final = ("visa", "mastercard")
DEBIT_FAMILIES: Final = ("vpay", "maestro")
COMBINED_FAMILIES: Final = ("cartes-bancaires",)

CARDS: Final = {
    card.name: card
    for card in (
        Card(FRICTIONLESS, "visa", FRICTIONLESS, "4111111111111111"),
        Card(CHALLENGE, "mastercard", CHALLENGE, "5555555555554444"),
        Card(CONFIGURABLE, "visa", CONFIGURABLE, "4012888888881881"),
        Card("visa", "visa", FRICTIONLESS, "4222220000062222"),
        Card("mastercard", "mastercard", FRICTIONLESS, "5105105105105100"),
        Card("vpay", "vpay", FRICTIONLESS, "4824000000080016"),
        Card("maestro", "maestro", FRICTIONLESS, "6799990000040018"),
        Card("cartes-bancaires", "cartes-bancaires", FRICTIONLESS, "4970100000000006"),
        Card("declined", "visa", FRICTIONLESS, "4000000000000002", "Do not honour"),
        Card("insufficient-funds", "mastercard", CHALLENGE, "5100000000000008", "Insufficient funds"),
    )
}


ONE_CLICK: Final = "one-click"
RECURRING: Final = "recurring"
SERIES_PERIOD: Final = Period.parse("P1Y")


class Credential(NamedTuple):
    """A stored card; ``card`` holds the details for responses."""

    vault_token: str
    use: Annotated[str, OneOf(lambda: (ONE_CLICK, RECURRING))]
    first_transaction_id: str
    amount_cents: Annotated[
        Cents, Key("amount"), "Cents of the first payment; a recurring series keeps this amount."
    ]
    stored_at: datetime
    brand: str
    card: dict[str, Any]

    def refuse_expired(self, now: datetime) -> None:
        """Refuse a recurring payment once the series is a calendar year old (LIM-08).

        Raises:
            RecurringSeriesExpired: the year is over; the merchant must start a new series.
        """
        ends_at = SERIES_PERIOD.after(self.stored_at)
        if self.use == RECURRING and now >= ends_at:
            raise RecurringSeriesExpired(
                f"this recurring series ended at {ends_at.isoformat()}, one year after its first payment; "
                "start a new one with recurring_type first"
            )
