"""Actions by customers, banks, screenings and processors on an attempt."""

from typing import Any, Final, Literal, NamedTuple

from payment_sandbox.orders.amounts import Cents

Actor = Literal["customer", "bank", "screening", "processor"]
ActionName = Literal[
    "visit", "pay", "cancel", "fail", "choose", "credit", "approve", "decline", "error", "settle"
]

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


class Action(NamedTuple):
    """An action by an actor, with optional details."""

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
        """The actor and the action, such as ``customer pay``."""
        return f"{self.actor} {self.action}"

    @property
    def pays_rest(self) -> bool:
        """Whether this is a credit of whatever amount is missing."""
        return self.actor == BANK and self.amount_cents is None

    def as_mapping(self) -> dict[str, Any]:
        """Return the fields that are set."""
        return {name: value for name, value in self._asdict().items() if value is not None}
