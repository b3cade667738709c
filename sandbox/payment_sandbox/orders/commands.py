"""Scheduled work, as plain data that ``operations.perform`` carries out."""

from dataclasses import dataclass
from typing import ClassVar, Final

from payment_sandbox.orders.actions import Action


@dataclass(frozen=True, slots=True, eq=False)
class Command:
    """Scheduled work on an order; whether it still applies is checked when it is due."""

    order_id: str
    kind: ClassVar[str] = ""

    @property
    def label(self) -> str:
        """What the agenda shows."""
        return f"{self.kind.replace('-', ' ')} of {self.order_id}"


@dataclass(frozen=True, slots=True, eq=False)
class ExpirePage(Command):
    """The hosted payment page closes."""

    kind: ClassVar[str] = "page-expiry"


@dataclass(frozen=True, slots=True, eq=False)
class ExpireAttempt(Command):
    """The time to pay by this attempt is over."""

    transaction_id: str
    kind: ClassVar[str] = "expiry"


@dataclass(frozen=True, slots=True, eq=False)
class ExpireAuthorization(Command):
    """The authorization expires; the rest can no longer be captured."""

    transaction_id: str
    kind: ClassVar[str] = "authorization-expiry"


@dataclass(frozen=True, slots=True, eq=False)
class CaptureDelayed(Command):
    """A delayed authorization captures what is left."""

    transaction_id: str
    kind: ClassVar[str] = "delayed-capture"


@dataclass(frozen=True, slots=True, eq=False)
class Perform(Command):
    """A customer, bank, screening or processor acts automatically, as the scenario says."""

    transaction_id: str
    action: Action
    kind: ClassVar[str] = "action"

    @property
    def label(self) -> str:
        """What the agenda shows."""
        return f"{self.action.name} for {self.order_id}"


@dataclass(frozen=True, slots=True, eq=False)
class AttemptDelivery(Command):
    """A webhook is tried again, or for the first time after a delay."""

    delivery_id: str
    number: int
    kind: ClassVar[str] = "webhook"

    @property
    def label(self) -> str:
        """What the agenda shows."""
        return f"webhook attempt {self.number} for {self.order_id}"


@dataclass(frozen=True, slots=True, eq=False)
class Resend(AttemptDelivery):
    """A webhook is sent once more, to another address or with another body, because somebody wants to see."""

    url: str | None = None
    body: str | None = None
    kind: ClassVar[str] = "resend"

    @property
    def label(self) -> str:
        """What the agenda shows."""
        return f"webhook once more for {self.order_id}"


ALL: Final[tuple[type[Command], ...]] = (
    ExpirePage,
    ExpireAttempt,
    ExpireAuthorization,
    CaptureDelayed,
    Perform,
    AttemptDelivery,
    Resend,
)
