"""A project's clock: frozen, or running at a multiple of real time."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final, NamedTuple

from payment_sandbox.kernel.times import LAST_MOMENT
from payment_sandbox.orders.refusals import Invalid, Violation

FROZEN: Final = "frozen"
RUNNING: Final = "running"
RATE_MAX: Final = 1_000_000.0


class RealTime(NamedTuple):
    """The host's clocks, passed in by the server."""

    wall_now: Callable[[], datetime]
    monotonic_seconds: Callable[[], float]


Document = Mapping[str, Any]


class Start(NamedTuple):
    """What a project was started with: its clock, settings and scenario; a reset rebuilds it."""

    mode: str
    at: datetime | None = None  # None: real time
    settings: Document | None = None  # None if an earlier version created the project
    scenario: Document | None = None  # None: the default scenario
    is_named: bool = False  # whether the scenario was chosen by name

    @classmethod
    def parse(cls, text: Any) -> "Start":
        """Read ``running``, ``frozen`` or ``frozen@2027-01-01T00:00:00Z``.

        Raises:
            Invalid: the text has a different form.
        """
        expected = "must be running, frozen, or frozen@ with a time, such as frozen@2027-01-01T00:00:00Z"
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


class ProjectClock(NamedTuple):
    """The time while no advance is running: frozen at the anchor, or running from it."""

    real: RealTime
    anchor: datetime
    anchor_seconds: float
    running: bool
    rate: float = 1.0

    @classmethod
    def start(cls, real: RealTime, at: datetime, mode: str) -> "ProjectClock":
        """Start a clock at the time ``at``."""
        return cls(real, at, real.monotonic_seconds(), mode == RUNNING)

    @property
    def mode(self) -> str:
        """``running`` or ``frozen``."""
        return RUNNING if self.running else FROZEN

    def read(self) -> datetime:
        """Return the current time."""
        if not self.running:
            return self.anchor
        elapsed_seconds = (self.real.monotonic_seconds() - self.anchor_seconds) * self.rate
        try:
            return self.anchor + timedelta(seconds=elapsed_seconds)
        except OverflowError:
            return LAST_MOMENT

    def set(self, at: datetime, *, running: bool | None = None, rate: float | None = None) -> "ProjectClock":
        """Return a clock that continues from ``at``, with a new mode or rate if given."""
        return ProjectClock(
            self.real,
            at,
            self.real.monotonic_seconds(),
            self.running if running is None else running,
            self.rate if rate is None else rate,
        )

    def advanced_by(self, real_seconds: float) -> "ProjectClock":
        """Return a clock advanced by this much real time."""
        return self._replace(anchor_seconds=self.anchor_seconds - real_seconds)

    def real_seconds_until(self, moment: datetime) -> float | None:
        """Return the real seconds until the clock shows ``moment``; None if the clock is frozen before it."""
        now = self.read()
        if moment <= now:
            return 0.0
        return (moment - now).total_seconds() / self.rate if self.running else None
