"""A bank QR request: payers scan its code, and each scan creates an order."""

from datetime import datetime
from typing import NamedTuple

from payment_sandbox.orders.amounts import Cents
from payment_sandbox.orders.refusals import QrAmountRefused, QrExpired, QrUsed


class QrRequest(NamedTuple):
    """A QR code and its payment terms."""

    id: str
    created: datetime
    expires_at: datetime
    currency: str
    size_pixels: int
    one_off: bool
    amount_changeable: bool
    amount_cents: Cents | None = None
    amount_min_cents: Cents | None = None
    amount_max_cents: Cents | None = None
    description: str | None = None
    merchant_order_id: str | None = None
    return_url: str | None = None
    webhook_url: str | None = None
    scans: int = 0

    def count_scan(self, amount_cents: Cents | None, *, now: datetime) -> tuple["QrRequest", Cents]:
        """Count a scan and determine the amount to pay.

        Raises:
            QrExpired: ``now`` is at or past ``expires_at`` (QR-17).
            QrUsed: the request is one-off and was already scanned (QR-13).
            QrAmountRefused: the amount is fixed, missing or out of bounds (QR-04, QR-05).
        """
        if now >= self.expires_at:
            raise QrExpired(f"QR request {self.id} expired at {self.expires_at.isoformat()}")
        if self.one_off and self.scans:
            raise QrUsed(f"QR request {self.id} is one-off and was already scanned")
        return self._replace(scans=self.scans + 1), self._amount_to_pay(amount_cents)

    def _amount_to_pay(self, amount_cents: Cents | None) -> Cents:
        if amount_cents is None or amount_cents == self.amount_cents:
            if self.amount_cents is None:
                raise QrAmountRefused(f"QR request {self.id} has no amount: the payer must enter one")
            return self.amount_cents
        if not self.amount_changeable:
            raise QrAmountRefused(f"the amount of QR request {self.id} is fixed at {self.amount_cents} cents")
        low, high = self.amount_min_cents or 1, self.amount_max_cents
        if amount_cents < low or (high is not None and amount_cents > high):
            bounds = f"{low} to {high}" if high is not None else f"at least {low}"
            raise QrAmountRefused(f"{amount_cents} cents is out of range: expected {bounds}")
        return amount_cents
