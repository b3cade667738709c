"""A project's clock: frozen where it is, or running at a rate from real time."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, Final, NamedTuple

from payment_sandbox.kernel.periods import LAST_MOMENT
from payment_sandbox.orders.refusals import Invalid, Violation

FROZEN: Final = "frozen"
RUNNING: Final = "running"
RATE_MAX: Final = 1_000_000.0


class RealTime(NamedTuple):
    """The host's clocks, handed in by the server."""

    wall_now: Callable[[], datetime]
    monotonic_seconds: Callable[[], float]


class ClockStart(NamedTuple):
    """How a project's clock starts, at creation and again at each reset."""

    mode: str
    at: datetime | None = None  # None: real time

    @classmethod
    def parse(cls, text: Any) -> "ClockStart":
        """Read ``running``, ``frozen`` or ``frozen@2027-01-01T00:00:00Z``.

        Raises:
            Invalid: anything else.
        """
        expected = "must be running, frozen or frozen@ and a time, such as frozen@2027-01-01T00:00:00Z"
        if text in (RUNNING, FROZEN):
            return cls(text)
        mode, _, moment = text.partition("@") if isinstance(text, str) else ("", "", "")
        if mode == FROZEN:
            try:
                at = datetime.fromisoformat(moment)
                return cls(FROZEN, at.astimezone(UTC) if at.tzinfo else at.replace(tzinfo=UTC))
            except (ValueError, OverflowError):
                pass
        raise Invalid([Violation("clock", expected, [RUNNING, FROZEN, "frozen@<time>"])])


class Clock:
    """Reads sandbox time when no advance holds it."""

    __slots__ = ("_anchor", "_anchor_seconds", "_real", "rate", "running")

    def __init__(self, real: RealTime, at: datetime, mode: str) -> None:
        self._real = real
        self._anchor = at
        self._anchor_seconds = real.monotonic_seconds()
        self.rate = 1.0
        self.running = mode == RUNNING

    @property
    def mode(self) -> str:
        """``running`` or ``frozen``."""
        return RUNNING if self.running else FROZEN

    def read(self) -> datetime:
        """What the clock shows when nothing holds it."""
        if not self.running:
            return self._anchor
        passed_seconds = (self._real.monotonic_seconds() - self._anchor_seconds) * self.rate
        try:
            return self._anchor + timedelta(seconds=passed_seconds)
        except OverflowError:
            return LAST_MOMENT

    def set(self, at: datetime, *, running: bool | None = None, rate: float | None = None) -> None:
        """Go on from ``at``, in another mode or at another rate if given."""
        self._anchor = at
        self._anchor_seconds = self._real.monotonic_seconds()
        self.running = self.running if running is None else running
        self.rate = self.rate if rate is None else rate

    def go_on(self, real_seconds: float) -> None:
        """Be ahead by what a running clock shows after so much real time."""
        self._anchor_seconds -= real_seconds

    def real_seconds_until(self, moment: datetime) -> float | None:
        """How long until the clock shows ``moment``; None when it never will by itself."""
        now = self.read()
        if moment <= now:
            return 0.0
        return (moment - now).total_seconds() / self.rate if self.running else None
