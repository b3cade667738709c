"""Attacks on a sandbox server on loopback. Each attack reports its measurements and exceeded limits.

``make attack`` runs all attacks at full size and prints a report. ``make prove`` runs a short form of each.
"""

from collections.abc import Callable
from typing import NamedTuple


class Size(NamedTuple):
    """The size of an attack; ``strict`` also limits latencies, which needs an otherwise idle machine."""

    share: float = 1.0
    strict: bool = True

    def count(self, full: int, minimum: int = 1) -> int:
        """Return this size's share of ``full``, but at least ``minimum``."""
        return max(minimum, int(full * self.share))


SHORT = Size(0.02, strict=False)


class Failed(AssertionError):
    """An attack succeeded."""


class Report:
    """The figures and the problems of one attack."""

    def __init__(self, name: str, size: Size, show: Callable[[str], object] = lambda line: None) -> None:
        self.name = name
        self.size = size
        self.problems: list[str] = []
        self._show = show

    def note(self, label: str, figure: object) -> None:
        """Report a figure without a limit."""
        self._show(f"  {label:60} {figure}")

    def limit(self, label: str, figure: float, maximum: float, unit: str = "") -> None:
        """Report a figure that must not exceed ``maximum``."""
        is_over = figure > maximum
        self._show(f"  {label:60} {figure:.6g} {unit} (at most {maximum:g}){'  TOO MUCH' if is_over else ''}")
        if is_over:
            self.problems.append(f"{label}: {figure:.6g} {unit}, but at most {maximum:g}")

    def limit_time(self, label: str, figure: float, maximum: float, unit: str = "") -> None:
        """Report a figure of real time, which has a limit if the machine is otherwise idle."""
        if self.size.strict:
            self.limit(label, figure, maximum, unit)
        else:
            self.note(label, f"{figure:.6g} {unit}")

    def expect(self, label: str, holds: bool, detail: object = "") -> None:
        """Record a problem unless the expectation holds."""
        if not holds:
            shown = str(detail).encode(errors="backslashreplace").decode()  # it may contain half a character
            self._show(f"  {label}: NO {shown}"[:500])
            self.problems.append(f"{label}: {shown}"[:2000])

    def end(self) -> None:
        """Fail if there are problems.

        Raises:
            Failed: lists the problems.
        """
        if self.problems:
            raise Failed(f"{self.name}: " + "; ".join(self.problems[:20]))
