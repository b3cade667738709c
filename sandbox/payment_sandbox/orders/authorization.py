"""What is left of an authorization, and who may still take it."""

from collections.abc import Sequence
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple

from payment_sandbox.orders.amounts import Cents
from payment_sandbox.orders.lines import (
    LineQuantity,
    OrderLine,
    Quantities,
    allocate,
    merged,
    quantities_total_cents,
    require_known,
)
from payment_sandbox.orders.refusals import (
    AuthorizationDelayed,
    AuthorizationExpired,
    CaptureExceedsRemainder,
    CaptureStyleMixed,
    Invalid,
    Refusal,
    Violation,
    VoidExceedsRemainder,
)


class Taken(StrEnum):
    """Where an entry's money went."""

    CAPTURED = "captured"
    VOIDED = "voided"


class Style(StrEnum):
    """How an entry was asked for; a capture in full fixes no style."""

    FULL = "in full"
    AMOUNT = "by amount"
    LINES = "by order lines"


class Entry(NamedTuple):
    """One line of the ledger, for good."""

    taken: Taken
    style: Style
    amount_cents: Cents
    quantities: Quantities
    at: datetime
    description: str | None


class Authorization(NamedTuple):
    """A reserved sum as a ledger of immutable entries: captured + voided + remaining = original."""

    original_cents: Cents
    lines: tuple[OrderLine, ...]
    delayed: bool
    authorized_at: datetime
    expires_at: datetime
    entries: tuple[Entry, ...] = ()
    is_over: bool = False

    @property
    def captured_cents(self) -> Cents:
        """What was captured so far."""
        return self._sum(Taken.CAPTURED)

    @property
    def voided_cents(self) -> Cents:
        """What was voided so far."""
        return self._sum(Taken.VOIDED)

    @property
    def remaining_cents(self) -> Cents:
        """What is neither captured nor voided."""
        return self.original_cents - self.captured_cents - self.voided_cents

    def quantities(self, taken: Taken) -> dict[int, int]:
        """Captured or voided quantities by line index."""
        return merged(entry.quantities for entry in self.entries if entry.taken is taken)

    def remaining_quantities(self) -> dict[int, int]:
        """What is left of each line, by its index."""
        gone = merged(entry.quantities for entry in self.entries)
        return {index: line.quantity - gone.get(index, 0) for index, line in enumerate(self.lines)}

    def settled_quantities(self) -> tuple[dict[int, int], dict[int, int]]:
        """What was captured and what voided of each line, once nothing remains (A41).

        Items that nobody has addressed were taken by amount: voided are those whose whole price voids by
        amount cover, the last lines first; without any capture all of them.
        """
        addressed = merged(
            entry.quantities
            for entry in self.entries
            if entry.style is Style.LINES and entry.taken is Taken.CAPTURED
        )
        voided = self.quantities(Taken.VOIDED)
        left_cents = sum(
            entry.amount_cents
            for entry in self.entries
            if entry.style is Style.AMOUNT and entry.taken is Taken.VOIDED
        )
        captured: dict[int, int] = {}
        for index, line in reversed(list(enumerate(self.lines))):
            gone = voided.get(index, 0)
            free = line.quantity - addressed.get(index, 0) - gone
            if not self.captured_cents:
                fitting = free
            else:
                fitting = min(free, left_cents // line.amount_cents) if line.amount_cents > 0 else 0
            left_cents -= fitting * line.amount_cents
            voided[index], captured[index] = gone + fitting, line.quantity - gone - fitting
        return dict(sorted(captured.items())), dict(sorted(voided.items()))

    @property
    def capture_style(self) -> "Style | None":
        """How it was captured so far, where that binds what follows (CAP-08, CAP-09)."""
        binding = [e.style for e in self.entries if e.taken is Taken.CAPTURED and e.style is not Style.FULL]
        return binding[0] if binding else None

    def capture_rest(self, *, now: datetime) -> "Authorization":
        """Take all that is left (END-11).

        Raises:
            AuthorizationExpired: ``now`` is at or past ``expires_at``.
            AuthorizationDelayed: it captures itself.
            CaptureExceedsRemainder: nothing is left.
        """
        self._refuse_capture(now)
        return self._take_rest(Taken.CAPTURED, now)

    def capture_delayed(self, *, now: datetime) -> "Authorization":
        """Take all that is left when a delayed authorization's period has passed (CAP-05, CAP-07)."""
        return self._take_rest(Taken.CAPTURED, now)

    def capture_amount(
        self, amount_cents: Cents, description: str | None, *, now: datetime
    ) -> "Authorization":
        """Take part of the authorization by amount (CAP-04, CAP-06, CAP-09).

        Raises:
            CaptureStyleMixed: lines were captured before, so amounts cannot be.
            CaptureExceedsRemainder: less than ``amount_cents`` is left.
        """
        self._refuse_capture(now)
        self._refuse_style(Style.AMOUNT)
        return self._take(Taken.CAPTURED, Style.AMOUNT, amount_cents, (), description, now)

    def capture_lines(
        self, asked: Sequence[LineQuantity], description: str | None, *, now: datetime
    ) -> "Authorization":
        """Take quantities of lines (CAP-04, CAP-06, CAP-08).

        Raises:
            Invalid: a line that the order does not have, or lines that add up to nothing.
            CaptureStyleMixed: amounts were captured before, so lines cannot be.
            CaptureExceedsRemainder: less is left of a line, or of the sum.
        """
        require_known(self.lines, asked)
        self._refuse_capture(now)
        self._refuse_style(Style.LINES)
        return self._take_lines(Taken.CAPTURED, asked, description, now)

    def void_amount(self, amount_cents: Cents, description: str | None, *, now: datetime) -> "Authorization":
        """Give back part of what is left (VOID-01)."""
        self._refuse_over(now)
        return self._take(Taken.VOIDED, Style.AMOUNT, amount_cents, (), description, now)

    def void_lines(
        self, asked: Sequence[LineQuantity], description: str | None, *, now: datetime
    ) -> "Authorization":
        """Give back quantities of lines (STA-20)."""
        require_known(self.lines, asked)
        self._refuse_over(now)
        return self._take_lines(Taken.VOIDED, asked, description, now)

    def void_rest(self, *, now: datetime) -> "Authorization":
        """Give back all that is left (VOID-02)."""
        return self._take_rest(Taken.VOIDED, now)

    def ended(self) -> "Authorization":
        """The same ledger, never to be captured or voided again."""
        return self._replace(is_over=True)

    def _sum(self, taken: Taken) -> Cents:
        return sum(entry.amount_cents for entry in self.entries if entry.taken is taken)

    def _refuse_over(self, now: datetime) -> None:
        if self.is_over or (now >= self.expires_at and not self.delayed):
            raise AuthorizationExpired(
                f"the authorization of {self.authorized_at.isoformat()} ran out at "
                f"{self.expires_at.isoformat()}; nothing can be captured or voided any more"
            )

    def _refuse_capture(self, now: datetime) -> None:
        self._refuse_over(now)
        if self.delayed:
            at = self.expires_at.isoformat()
            raise AuthorizationDelayed(
                f"capture_mode is delayed: what is left is captured by itself at {at}; void what must not be "
                "captured before that"
                if self.remaining_cents
                else f"capture_mode is delayed, and nothing is left: {self.captured_cents} of "
                f"{self.original_cents} cents are captured, {self.voided_cents} voided"
            )

    def _refuse_style(self, style: Style) -> None:
        bound = self.capture_style
        if bound not in (None, style):
            raise CaptureStyleMixed(
                f"this transaction was captured {bound} before, so it cannot be captured {style}",
                [f"capture {bound}", "capture in full"],
                rule="CAP-08" if bound is Style.LINES else "CAP-09",
            )

    def _take_rest(self, taken: Taken, now: datetime) -> "Authorization":
        quantities = tuple((index, left) for index, left in self.remaining_quantities().items() if left)
        return self._take(taken, Style.FULL, self.remaining_cents, quantities, None, now)

    def _take_lines(
        self, taken: Taken, asked: Sequence[LineQuantity], description: str | None, now: datetime
    ) -> "Authorization":
        quantities, short = allocate(self.lines, self.remaining_quantities(), asked)
        if short:
            raise _exceeds(taken)("; ".join(short))
        amount_cents = quantities_total_cents(self.lines, quantities)
        if amount_cents < 1:
            raise Invalid(
                [Violation("order_lines", f"these lines add up to {amount_cents} cents, expected at least 1")]
            )
        return self._take(taken, Style.LINES, amount_cents, quantities, description, now)

    def _take(
        self,
        taken: Taken,
        style: Style,
        amount_cents: Cents,
        quantities: Quantities,
        description: str | None,
        now: datetime,
    ) -> "Authorization":
        remaining_cents = self.remaining_cents
        if amount_cents > remaining_cents or not remaining_cents:
            raise _exceeds(taken)(
                f"{amount_cents or 'a share'} of {remaining_cents} remaining cents cannot be {taken}: "
                f"{self.captured_cents} of {self.original_cents} are captured, {self.voided_cents} voided"
            )
        entry = Entry(taken, style, amount_cents, quantities, now, description)
        return self._replace(entries=(*self.entries, entry))


def _exceeds(taken: Taken) -> type[Refusal]:
    return CaptureExceedsRemainder if taken is Taken.CAPTURED else VoidExceedsRemainder
