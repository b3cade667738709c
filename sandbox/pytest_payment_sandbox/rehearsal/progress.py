"""Reports the progress of a rehearsal: current work, tried variations and remaining time."""

from collections.abc import Callable
from typing import Final

from payment_sandbox.serving.realtime import monotonic_seconds

FIRST_LINE_SECONDS: Final = 5.0  # time until the first line about variations
INTERVAL_SECONDS: Final = 15.0  # the time between lines
TERMINAL_INTERVAL_SECONDS: Final = 0.5

WriteLine = Callable[[str], None]
"""Writes one line; on a terminal, replaces the previous line."""


class Progress:
    """Writes the progress lines of a rehearsal at a limited rate."""

    def __init__(self, write: WriteLine, *, is_terminal: bool = False, is_quiet: bool = False) -> None:
        self._write = write
        self._interval_seconds = TERMINAL_INTERVAL_SECONDS if is_terminal else INTERVAL_SECONDS
        self._is_quiet = is_quiet
        self._next_seconds = monotonic_seconds() + min(FIRST_LINE_SECONDS, self._interval_seconds)
        self.tried = self.findings = 0

    def write_line(self, text: str) -> None:
        """Write a line immediately."""
        if not self._is_quiet:
            self._write(text)

    def record(self, findings: int, until_seconds: float, subject: str = "") -> None:
        """Count a tried variation; write a line if one is due. ``until_seconds`` is the end of the budget."""
        self.tried += 1
        self.findings = findings
        now = monotonic_seconds()
        if now >= self._next_seconds:
            self._next_seconds = now + self._interval_seconds
            self.write_line(f"{self.describe(until_seconds - now)}{f': {subject}' if subject else ''}")

    def describe(self, remaining_seconds: float) -> str:
        """Describe the progress: tried variations, findings, and remaining time."""
        variations = "1 variation" if self.tried == 1 else f"{self.tried} variations"
        number = "1 finding" if self.findings == 1 else f"{self.findings or 'no'} findings"
        return f"{variations} tried, {number}, at most {format_duration(remaining_seconds)} left"


def format_duration(seconds: float) -> str:
    """Format a duration, such as 2 min 5 s."""
    whole = max(0, round(seconds))
    return f"{whole // 60} min {whole % 60} s" if whole >= 60 else f"{whole} s"
