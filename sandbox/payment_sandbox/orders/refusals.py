"""Why not: one name per refused rule, and the sentence that explains it."""

from collections.abc import Sequence
from typing import NamedTuple


class Violation(NamedTuple):
    """One thing wrong with a request: where, what was expected, and what would have been allowed.

    In a file it has a place, too: ``line`` and ``column`` count from 1. ``rule`` is the id of the rule
    that it breaks, where its path alone does not say so.
    """

    path: str
    message: str
    allowed: Sequence[str] | None = None
    nearest: str | None = None
    file: str | None = None
    line: int | None = None
    column: int | None = None
    rule: str | None = None


class Invalid(Exception):
    """A request breaks rules of form or of the merchant's contract; all of them are listed."""

    def __init__(self, violations: Sequence[Violation]) -> None:
        super().__init__("; ".join(f"{violation.path}: {violation.message}" for violation in violations))
        self.violations = list(violations)


class Refusal(Exception):
    """A well-formed request that a rule refuses now; nothing has changed.

    ``rule`` is the rule's id in the fidelity ledger, ``allowed`` what is possible instead.
    """

    rule: str = ""

    def __init__(
        self, message: str, allowed: Sequence[str] | None = None, *, rule: str | None = None
    ) -> None:
        super().__init__(message)
        self.allowed = allowed
        self.rule = rule or self.rule


class Unknown(Refusal):
    """Nothing here has this identifier."""

    rule = "SET-08"


class Stale(Refusal):
    """The order changed since the merchant read it."""

    rule = "SET-33"


class AuthorizationMissing(Refusal):
    """There is no authorization to capture or void: the customer has not authorized."""

    rule = "CAP-02"


class AuthorizationExpired(Refusal):
    """The authorization ran out."""

    rule = "CAP-04"


class AuthorizationDelayed(Refusal):
    """A delayed authorization is captured by itself, never by hand."""

    rule = "CAP-06"


class CaptureStyleMixed(Refusal):
    """Captures by lines and captures by amount exclude each other."""

    rule = "CAP-08"


class CaptureExceedsRemainder(Refusal):
    """More was asked than is left to capture."""

    rule = "SET-47"


class VoidExceedsRemainder(Refusal):
    """More was asked than is left to void."""

    rule = "VOID-02"


class NothingToRefund(Refusal):
    """No money was captured yet, or all of it went back."""

    rule = "SET-49"


class RefundExceedsCaptured(Refusal):
    """More was asked than was captured and not yet refunded."""

    rule = "SET-49"


class OrderNotCancellable(Refusal):
    """Money moved, or the order is over."""

    rule = "SET-50"


class OrderNotUpdatable(Refusal):
    """A customer has acted, so the sum stands."""

    rule = "SET-52"


class RecurringSeriesExpired(Refusal):
    """A year has passed since the first payment of the series."""

    rule = "LIM-08"


class ActionNotPossible(Refusal):
    """The state refuses what a customer, bank, screening or processor was asked to do."""

    rule = "CTL-20"


class NotCompletableInTestMode(ActionNotPossible):
    """Test mode never completes a bank transfer."""

    rule = "SEPA-04"


class QrExpired(Refusal):
    """The QR request's time is over."""

    rule = "QR-17"


class QrUsed(Refusal):
    """A one-off QR request was scanned before."""

    rule = "QR-13"


class QrAmountRefused(Refusal):
    """The payer's amount is out of the request's bounds."""

    rule = "QR-04"


class ClockBusy(Refusal):
    """Another advance moves this project's clock."""

    rule = "CTL-15"
