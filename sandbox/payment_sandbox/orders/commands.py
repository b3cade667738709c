"""Scheduled commands as plain data; ``operations.due_commands`` runs them."""

from dataclasses import dataclass
from typing import ClassVar, Final

from payment_sandbox.orders.actions import Action


@dataclass(frozen=True, slots=True, eq=False)
class Command:
    """A scheduled command on an order; at the due time, a handler checks whether it still applies."""

    order_id: str
    kind: ClassVar[str] = ""

    @property
    def label(self) -> str:
        """The label on the agenda."""
        return f"{self.kind.replace('-', ' ')} of {self.order_id}"


@dataclass(frozen=True, slots=True, eq=False)
class ExpirePage(Command):
    """Close the hosted payment page."""

    kind: ClassVar[str] = "page-expiry"


@dataclass(frozen=True, slots=True, eq=False)
class ExpireAttempt(Command):
    """Expire an unpaid attempt."""

    transaction_id: str
    kind: ClassVar[str] = "expiry"


@dataclass(frozen=True, slots=True, eq=False)
class ExpireAuthorization(Command):
    """Expire an authorization; its remainder can no longer be captured."""

    transaction_id: str
    kind: ClassVar[str] = "authorization-expiry"


@dataclass(frozen=True, slots=True, eq=False)
class CaptureDelayed(Command):
    """Capture the remainder of a delayed authorization."""

    transaction_id: str
    kind: ClassVar[str] = "delayed-capture"


@dataclass(frozen=True, slots=True, eq=False)
class PerformAction(Command):
    """Perform a planned action by a customer, bank, screening or processor."""

    transaction_id: str
    action: Action
    kind: ClassVar[str] = "action"

    @property
    def label(self) -> str:
        """The label on the agenda."""
        return f"{self.action.name} for {self.order_id}"


@dataclass(frozen=True, slots=True, eq=False)
class AttemptDelivery(Command):
    """Retry a webhook, or make a delayed first attempt."""

    delivery_id: str
    number: int
    kind: ClassVar[str] = "webhook"

    @property
    def label(self) -> str:
        """The label on the agenda."""
        return f"webhook attempt {self.number} for {self.order_id}"


@dataclass(frozen=True, slots=True, eq=False)
class Resend(AttemptDelivery):
    """Resend a webhook by hand; ``url`` and ``body`` override the original values."""

    url: str | None = None
    body: str | None = None
    kind: ClassVar[str] = "resend"

    @property
    def label(self) -> str:
        """The label on the agenda."""
        return f"webhook resend for {self.order_id}"


COMMAND_TYPES: Final[tuple[type[Command], ...]] = (
    ExpirePage,
    ExpireAttempt,
    ExpireAuthorization,
    CaptureDelayed,
    PerformAction,
    AttemptDelivery,
    Resend,
)
