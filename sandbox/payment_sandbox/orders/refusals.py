"""Refusals: one exception class per reason."""

from collections.abc import Sequence
from typing import Annotated, Final, NamedTuple

from payment_sandbox.kernel.descriptions import INTERNAL

READ_ONLY: Final = "read-only: the service sets it"
OWN_NUMBER: Final = "; your own number belongs in merchant_order_id"
VIOLATIONS_MAX: Final = 100  # keeps answers short and fast, even for a body with a million errors
ALLOWED_MAX: Final = 100
QUOTED_WORD_LENGTH_MAX: Final = 100  # characters of a quoted word in a message


class Violation(NamedTuple):
    """One problem with a request."""

    path: str
    message: str
    allowed: Sequence[str] | None = None
    nearest: Annotated[str | None, "The closest known name, if the name looks misspelled."] = None
    file: str | None = None
    line: int | None = None  # counted from 1
    column: int | None = None
    rule: Annotated[str | None, INTERNAL] = None  # the broken rule, unless the path implies it

    def as_line(self) -> str:
        """Format the violation as one line, with its position in a file if known."""
        place = ":".join(str(part) for part in (self.file, self.line, self.column) if part)
        return " ".join(filter(None, [f"{place}:" if place else "", self.path, self.message]))

    def as_line_in(self, file: str) -> str:
        """Format the violation as one line, with its position in the submitted file."""
        return self._replace(file=file, line=self.line or 1, column=self.column or 1).as_line()


class Invalid(Exception):
    """The request is malformed or not covered by the merchant's contract; carries all violations."""

    def __init__(self, violations: Sequence[Violation]) -> None:
        super().__init__("; ".join(f"{violation.path}: {violation.message}" for violation in violations))
        self.violations = list(violations)


class Refusal(Exception):
    """A rule refuses a well-formed request in the current state; nothing has changed.

    ``rule`` is the rule's id in the fidelity ledger; ``allowed`` lists the alternatives.
    """

    rule: str = ""

    def __init__(
        self, message: str, allowed: Sequence[str] | None = None, *, rule: str | None = None
    ) -> None:
        super().__init__(message)
        self.allowed = allowed
        self.rule = rule or self.rule


class Unknown(Refusal):
    """The project has no record with this identifier."""

    rule = "SET-08"


class OrderChanged(Refusal):
    """The order has changed since the merchant read it."""

    rule = "SET-33"


class AuthorizationMissing(Refusal):
    """There is no authorization to capture or void: the customer has not authorized the payment."""

    rule = "CAP-02"


class AuthorizationExpired(Refusal):
    """The authorization has expired."""

    rule = "CAP-04"


class AuthorizationDelayed(Refusal):
    """A delayed authorization is captured automatically, never by hand."""

    rule = "CAP-06"


class CaptureStyleMixed(Refusal):
    """Captures by lines and captures by amount cannot be mixed."""

    rule = "CAP-08"


class CaptureExceedsRemainder(Refusal):
    """The request exceeds the amount or quantity left to capture."""

    rule = "SET-47"


class VoidExceedsRemainder(Refusal):
    """The request exceeds the amount or quantity left to void."""

    rule = "VOID-02"


class NothingToRefund(Refusal):
    """No money was captured yet, or all of it was refunded."""

    rule = "SET-49"


class RefundExceedsCaptured(Refusal):
    """The request exceeds the amount or quantity left to refund."""

    rule = "SET-49"


class OrderNotCancellable(Refusal):
    """Money has moved, or the order has ended."""

    rule = "SET-50"


class OrderNotUpdatable(Refusal):
    """The amount is final, because the customer has acted."""

    rule = "SET-52"


class RecurringSeriesExpired(Refusal):
    """A year has passed since the first payment of the series."""

    rule = "LIM-08"


class ActionNotPossible(Refusal):
    """The action by a customer, bank, screening or processor is not possible in the current state."""

    rule = "CTL-20"


class NotCompletableInTestMode(ActionNotPossible):
    """Test mode never completes a bank transfer."""

    rule = "SEPA-04"


class QrExpired(Refusal):
    """The QR request has expired."""

    rule = "QR-17"


class QrUsed(Refusal):
    """A one-off QR request was already scanned."""

    rule = "QR-13"


class QrAmountRefused(Refusal):
    """The payer's amount is missing or outside the limits of the QR request."""

    rule = "QR-04"


class KeyReused(Refusal):
    """Another request already used this Idempotency-Key."""

    rule = "SET-71"


class KeyInUse(Refusal):
    """Another request with this Idempotency-Key has not finished."""

    rule = "SET-71"


class ClockBusy(Refusal):
    """Another advance is moving this project's clock."""

    rule = "CTL-15"
