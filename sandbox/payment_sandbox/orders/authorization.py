"""Authorizations: captured, voided and remaining amounts."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple

from payment_sandbox.orders.amounts import Cents
from payment_sandbox.orders.lines import (
    LineQuantity,
    LinesByStatus,
    OrderLine,
    Quantities,
    add_quantities,
    allocate,
    quantities_total_cents,
    refuse_unknown_lines,
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


class EntryKind(StrEnum):
    """The kind of an entry: a capture or a void."""

    CAPTURED = "captured"
    VOIDED = "voided"


class EntryStyle(StrEnum):
    """The style of a capture or void; a capture in full does not restrict the style of later captures."""

    FULL = "in full"
    AMOUNT = "by amount"
    LINES = "by order lines"


class LedgerEntry(NamedTuple):
    """One immutable line of the ledger."""

    taken: EntryKind
    style: EntryStyle
    amount_cents: Cents
    quantities: Quantities
    at: datetime
    description: str | None


class Authorization(NamedTuple):
    """A reserved amount as a ledger of entries: captured + voided + remaining = original."""

    original_cents: Cents
    lines: tuple[OrderLine, ...]
    delayed: bool
    authorized_at: datetime
    expires_at: datetime
    entries: tuple[LedgerEntry, ...] = ()
    is_over: bool = False

    @property
    def captured_cents(self) -> Cents:
        """The amount captured so far."""
        return self._sum(EntryKind.CAPTURED)

    @property
    def voided_cents(self) -> Cents:
        """The amount voided so far."""
        return self._sum(EntryKind.VOIDED)

    @property
    def remaining_cents(self) -> Cents:
        """The amount neither captured nor voided."""
        return self.original_cents - self.captured_cents - self.voided_cents

    @property
    def is_open(self) -> bool:
        """Whether money is still reserved."""
        return not self.is_over and self.remaining_cents > 0

    @property
    def is_used(self) -> bool:
        """Whether money was captured, or is still reserved."""
        return self.captured_cents > 0 or self.is_open

    @property
    def captured_beyond_lines_cents(self) -> Cents:
        """The amount captured by amount or in full."""
        return self._sum(EntryKind.CAPTURED, EntryStyle.AMOUNT, EntryStyle.FULL)

    def lines_by_status(self, refunded: Mapping[int, int]) -> LinesByStatus:
        """Return the quantities of the lines in each status (A41).

        Captures, voids and refunds by lines name their items; a refunded item counts as captured. While
        something remains, the other items are neither captured nor voided. Then the amounts decide: voids by
        amount are assigned to whole items, last lines first; the rest is captured, unless only lines were.
        """
        captured, voided = self._named_items(EntryKind.CAPTURED), self._named_items(EntryKind.VOIDED)
        captured |= {index: max(quantity, captured.get(index, 0)) for index, quantity in refunded.items()}
        remaining = {
            index: line.quantity - captured.get(index, 0) - voided.get(index, 0)
            for index, line in enumerate(self.lines)
        }
        if self.remaining_cents:
            return LinesByStatus(remaining, captured, voided)
        voided_cents = self._sum(EntryKind.VOIDED, EntryStyle.AMOUNT, EntryStyle.FULL)
        for index, line in reversed(list(enumerate(self.lines))):
            voidable = remaining[index]
            if self.captured_beyond_lines_cents:
                voidable = min(voidable, voided_cents // line.amount_cents if line.amount_cents > 0 else 0)
            voided_cents -= voidable * line.amount_cents
            voided[index] = voided.get(index, 0) + voidable
            captured[index] = line.quantity - voided[index]
        return LinesByStatus({}, captured, voided)

    @property
    def capture_style(self) -> "EntryStyle | None":
        """The required style of later captures; None for any style (CAP-08, CAP-09)."""
        binding = [
            e.style for e in self.entries if e.taken is EntryKind.CAPTURED and e.style is not EntryStyle.FULL
        ]
        return binding[0] if binding else None

    def capture_remainder(self, *, now: datetime) -> "Authorization":
        """Capture the remainder (END-11).

        Raises:
            AuthorizationExpired: ``now`` is at or past ``expires_at``.
            AuthorizationDelayed: the remainder will be captured automatically.
            CaptureExceedsRemainder: nothing remains.
        """
        self._refuse_capture(now)
        return self._append_remainder(EntryKind.CAPTURED, now)

    def capture_delayed(self, *, now: datetime) -> "Authorization":
        """Capture the remainder at the end of a delayed authorization's period (CAP-05, CAP-07)."""
        return self._append_remainder(EntryKind.CAPTURED, now)

    def capture_amount(
        self, amount_cents: Cents, description: str | None, *, now: datetime
    ) -> "Authorization":
        """Capture part of the authorization by amount (CAP-04, CAP-06, CAP-09).

        Raises:
            CaptureStyleMixed: earlier captures were by lines.
            CaptureExceedsRemainder: less than ``amount_cents`` remains.
        """
        self._refuse_capture(now)
        self._refuse_style(EntryStyle.AMOUNT)
        return self._append(EntryKind.CAPTURED, EntryStyle.AMOUNT, amount_cents, (), description, now)

    def capture_lines(
        self, requested: Sequence[LineQuantity], description: str | None, *, now: datetime
    ) -> "Authorization":
        """Capture quantities of lines (CAP-04, CAP-06, CAP-08).

        Raises:
            Invalid: a line is unknown, or the lines add up to less than 1 cent.
            CaptureStyleMixed: earlier captures were by amount.
            CaptureExceedsRemainder: more is requested than remains of a line or of the amount.
        """
        refuse_unknown_lines(self.lines, requested)
        self._refuse_capture(now)
        self._refuse_style(EntryStyle.LINES)
        return self._append_lines(EntryKind.CAPTURED, requested, {}, description, now)

    def void_amount(self, amount_cents: Cents, description: str | None, *, now: datetime) -> "Authorization":
        """Void part of the remainder (VOID-01)."""
        self._refuse_expired(now)
        return self._append(EntryKind.VOIDED, EntryStyle.AMOUNT, amount_cents, (), description, now)

    def void_lines(
        self,
        requested: Sequence[LineQuantity],
        refunded: Mapping[int, int],
        description: str | None,
        *,
        now: datetime,
    ) -> "Authorization":
        """Void quantities of lines that were not refunded (STA-20)."""
        refuse_unknown_lines(self.lines, requested)
        self._refuse_expired(now)
        return self._append_lines(EntryKind.VOIDED, requested, refunded, description, now)

    def void_remainder(self, *, now: datetime) -> "Authorization":
        """Void the remainder (VOID-02)."""
        return self._append_remainder(EntryKind.VOIDED, now)

    def close(self) -> "Authorization":
        """Return the authorization, closed to further captures and voids."""
        return self._replace(is_over=True)

    def _sum(self, kind: EntryKind, *styles: EntryStyle) -> Cents:
        kinds = (entry for entry in self.entries if entry.taken is kind)
        return sum(entry.amount_cents for entry in kinds if entry.style in (styles or EntryStyle))

    def _named_items(self, kind: EntryKind) -> dict[int, int]:
        named = (entry for entry in self.entries if entry.style is EntryStyle.LINES)
        return add_quantities(entry.quantities for entry in named if entry.taken is kind)

    def _refuse_expired(self, now: datetime) -> None:
        if self.is_over or (now >= self.expires_at and not self.delayed):
            raise AuthorizationExpired(
                f"the authorization of {self.authorized_at.isoformat()} expired at "
                f"{self.expires_at.isoformat()}; it can no longer be captured or voided"
            )

    def _refuse_capture(self, now: datetime) -> None:
        self._refuse_expired(now)
        if self.delayed:
            at = self.expires_at.isoformat()
            raise AuthorizationDelayed(
                f"capture_mode is delayed: the remainder is captured automatically at {at}; until then, "
                "you can only void"
                if self.remaining_cents
                else f"capture_mode is delayed, and nothing is left: {self.captured_cents} of "
                f"{self.original_cents} cents are captured, {self.voided_cents} voided"
            )

    def _refuse_style(self, style: EntryStyle) -> None:
        required = self.capture_style
        if required not in (None, style):
            raise CaptureStyleMixed(
                f"this transaction was captured {required} before, so it cannot be captured {style}",
                [f"capture {required}", "capture in full"],
                rule="CAP-08" if required is EntryStyle.LINES else "CAP-09",
            )

    def _append_remainder(self, kind: EntryKind, now: datetime) -> "Authorization":
        return self._append(kind, EntryStyle.FULL, self.remaining_cents, (), None, now)

    def _append_lines(
        self,
        kind: EntryKind,
        requested: Sequence[LineQuantity],
        refunded: Mapping[int, int],
        description: str | None,
        now: datetime,
    ) -> "Authorization":
        quantities, shortages = allocate(self.lines, self.lines_by_status(refunded).remaining, requested)
        if shortages:
            raise _excess_error(kind)("; ".join(shortages))
        amount_cents = quantities_total_cents(self.lines, quantities)
        if amount_cents < 1:
            raise Invalid(
                [Violation("order_lines", f"these lines add up to {amount_cents} cents, expected at least 1")]
            )
        return self._append(kind, EntryStyle.LINES, amount_cents, quantities, description, now)

    def _append(
        self,
        kind: EntryKind,
        style: EntryStyle,
        amount_cents: Cents,
        quantities: Quantities,
        description: str | None,
        now: datetime,
    ) -> "Authorization":
        remaining_cents = self.remaining_cents
        if amount_cents > remaining_cents or not remaining_cents:
            raise _excess_error(kind)(self._excess_message(kind, amount_cents))
        entry = LedgerEntry(kind, style, amount_cents, quantities, now, description)
        return self._replace(entries=(*self.entries, entry))

    def _excess_message(self, kind: EntryKind, amount_cents: Cents) -> str:
        verb = {EntryKind.CAPTURED: "capture", EntryKind.VOIDED: "void"}[kind]
        so_far = (
            f"of {self.original_cents} cents, {self.captured_cents} cents are captured "
            f"and {self.voided_cents} cents voided"
        )
        if not self.remaining_cents:
            return f"nothing is left to {verb}: {so_far}"
        return f"{amount_cents} cents is too much: {self.remaining_cents} cents are left to {verb} ({so_far})"


def _excess_error(kind: EntryKind) -> type[Refusal]:
    return CaptureExceedsRemainder if kind is EntryKind.CAPTURED else VoidExceedsRemainder
