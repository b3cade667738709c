"""Scheduled commands, as plain data; ``operations.due`` runs them."""

from dataclasses import dataclass
from typing import ClassVar, Final

from payment_sandbox.orders.actions import Action


@dataclass(frozen=True, slots=True, eq=False)
class Command:
    """A scheduled command on an order; it checks whether it still applies when it is due."""

    order_id: str
    kind: ClassVar[str] = ""

    @property
    def label(self) -> str:
        """Its label on the agenda."""
        return f"{self.kind.replace('-', ' ')} of {self.order_id}"


@dataclass(frozen=True, slots=True, eq=False)
class ExpirePage(Command):
    """The hosted payment page closes."""

    kind: ClassVar[str] = "page-expiry"


@dataclass(frozen=True, slots=True, eq=False)
class ExpireAttempt(Command):
    """The attempt's time to pay runs out."""

    transaction_id: str
    kind: ClassVar[str] = "expiry"


@dataclass(frozen=True, slots=True, eq=False)
class ExpireAuthorization(Command):
    """The authorization expires; the rest can no longer be captured."""

    transaction_id: str
    kind: ClassVar[str] = "authorization-expiry"


@dataclass(frozen=True, slots=True, eq=False)
class CaptureDelayed(Command):
    """A delayed authorization captures its remainder."""

    transaction_id: str
    kind: ClassVar[str] = "delayed-capture"


@dataclass(frozen=True, slots=True, eq=False)
class Perform(Command):
    """A customer, bank, screening or processor acts automatically, as the scenario planned."""

    transaction_id: str
    action: Action
    kind: ClassVar[str] = "action"

    @property
    def label(self) -> str:
        """Its label on the agenda."""
        return f"{self.action.name} for {self.order_id}"


@dataclass(frozen=True, slots=True, eq=False)
class AttemptDelivery(Command):
    """A webhook is retried, or sent for the first time after a delay."""

    delivery_id: str
    number: int
    kind: ClassVar[str] = "webhook"

    @property
    def label(self) -> str:
        """Its label on the agenda."""
        return f"webhook attempt {self.number} for {self.order_id}"


@dataclass(frozen=True, slots=True, eq=False)
class Resend(AttemptDelivery):
    """A webhook is resent by hand, with a URL or a body that overrides its own."""

    url: str | None = None
    body: str | None = None
    kind: ClassVar[str] = "resend"

    @property
    def label(self) -> str:
        """Its label on the agenda."""
        return f"webhook resend for {self.order_id}"


ALL: Final[tuple[type[Command], ...]] = (
    ExpirePage,
    ExpireAttempt,
    ExpireAuthorization,
    CaptureDelayed,
    Perform,
    AttemptDelivery,
    Resend,
)
