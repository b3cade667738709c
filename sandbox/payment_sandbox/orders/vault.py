"""Stored cards: one-click for any amount, recurring for one amount within one calendar year."""

from datetime import datetime
from typing import Any, Final, NamedTuple

from payment_sandbox.kernel.periods import Period
from payment_sandbox.orders.amounts import Cents
from payment_sandbox.orders.refusals import RecurringSeriesExpired

ONE_CLICK: Final = "one-click"
RECURRING: Final = "recurring"
SERIES_PERIOD: Final = Period.parse("P1Y")


class Credential(NamedTuple):
    """A card stored by a first payment; ``card`` holds the details that responses may show."""

    vault_token: str
    use: str  # ONE_CLICK or RECURRING
    first_transaction_id: str
    amount_cents: Cents
    stored_at: datetime
    brand: str
    card: dict[str, Any]

    def refuse_expired(self, now: datetime) -> None:
        """Refuse a recurring payment once the series is a calendar year old.

        Raises:
            RecurringSeriesExpired: the year is over (LIM-08); a new first payment starts a new series.
        """
        ends_at = SERIES_PERIOD.after(self.stored_at)
        if self.use == RECURRING and now >= ends_at:
            raise RecurringSeriesExpired(
                f"this recurring series ended at {ends_at.isoformat()}, one year after its first payment; "
                "start a new one with recurring_type first"
            )
