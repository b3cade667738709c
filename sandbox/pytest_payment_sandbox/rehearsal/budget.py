"""The time budget of a rehearsal, which everything below inherits."""

import math
from typing import Final

from payment_sandbox.serving.realtime import monotonic_seconds

DURATION_UNITS: Final = {"s": 1, "m": 60, "h": 3600}
RUN_SECONDS_MAX: Final = 12.0  # longer than two webhooks without an answer
BASELINE_FACTOR: Final = 4  # multiplies the duration of the unchanged test


def parse_seconds(text: str) -> float:
    """Parse a duration such as ``60s`` or ``10m``; return seconds.

    Raises:
        ValueError: the text is not a finite duration above zero.
    """
    number, unit = (text[:-1], text[-1:]) if text[-1:] in DURATION_UNITS else (text, "s")
    try:
        seconds = float(number) * DURATION_UNITS[unit]
    except ValueError:
        seconds = math.nan
    if not 0 < seconds < math.inf:
        raise ValueError(f"takes a duration above zero such as 60s or 10m, not {text!r}")
    return seconds


def format_duration(seconds: float) -> str:
    """Format a duration, such as 2 min 5 s."""
    whole = max(0, round(seconds))
    return f"{whole // 60} min {whole % 60} s" if whole >= 60 else f"{whole} s"


class Budget:
    """A period of real time, from now on."""

    def __init__(self, seconds: float, whole: "Budget | None" = None, *, missing_seconds: float = 0) -> None:
        """Start a period; ``whole`` is the budget of which it is a share.

        A run may take ``missing_seconds`` longer than its budget, which the end of the whole budget shortens.
        """
        self.missing_seconds = missing_seconds
        self._seconds = seconds
        self._whole = whole or self
        self._until_seconds = monotonic_seconds() + seconds

    @property
    def is_short(self) -> bool:
        """Whether a run gets less time than it may take."""
        return self.missing_seconds > 0

    @property
    def remaining_seconds(self) -> float:
        """The remaining time, at least 0."""
        return max(0.0, self._until_seconds - monotonic_seconds())

    @property
    def wait_seconds(self) -> float:
        """The limit of one of several waits: half of the remaining time, so that the run ends in time."""
        return self.remaining_seconds / 2

    def has_time(self) -> bool:
        """Whether time remains."""
        return self.remaining_seconds > 0

    def share(self, count: int) -> "Budget":
        """Return the budget of one of ``count`` parts of the remaining work."""
        return Budget(self.remaining_seconds / max(1, count), self._whole)

    def for_run(self, baseline_seconds: float, *, must_end: bool) -> "Budget":
        """Return the budget of one run, given the duration of the unchanged test.

        With ``must_end``, the run must be judged, and gets its time even at the end of the budget.
        """
        usual_seconds = BASELINE_FACTOR * baseline_seconds
        if must_end:
            return Budget(min(self._whole._seconds, RUN_SECONDS_MAX) + usual_seconds)
        most_seconds, remaining_seconds = RUN_SECONDS_MAX + usual_seconds, self._whole.remaining_seconds
        seconds = min(most_seconds, remaining_seconds)
        return Budget(seconds, missing_seconds=most_seconds - seconds)
