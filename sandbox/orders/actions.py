"""What customers, banks, screenings and processors can do to an attempt."""

from dataclasses import dataclass
from typing import Any, Final

from sandbox.orders.amounts import Cents

CUSTOMER: Final = "customer"
BANK: Final = "bank"
SCREENING: Final = "screening"
PROCESSOR: Final = "processor"

ACTIONS: Final = {
    CUSTOMER: ("visit", "pay", "cancel", "fail", "choose"),
    BANK: ("credit",),
    SCREENING: ("approve", "decline", "error"),
    PROCESSOR: ("settle", "fail"),
}


@dataclass(frozen=True, slots=True)
class Action:
    """One thing that somebody does; the other fields say how, where it matters."""

    actor: str
    action: str
    reason: str | None = None
    card: str | None = None
    amount_cents: Cents | None = None
    issuer_id: str | None = None
    authorization: str | None = None
    payment_method: str | None = None

    @property
    def name(self) -> str:
        """Who does what, such as ``customer pay``."""
        return f"{self.actor} {self.action}"

    def as_mapping(self) -> dict[str, Any]:
        """The fields that are set."""
        return {name: value for name in self.__slots__ if (value := getattr(self, name)) is not None}
