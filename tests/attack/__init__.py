"""Attacks on a server of our own, on loopback: each says what it did and measured, and what is too much.

``make attack`` runs them all at full size and prints a report. ``make prove`` runs a short form of each.
"""

import os
from collections.abc import Callable
from typing import NamedTuple


class Size(NamedTuple):
    """How much an attack does; ``strict`` also limits latencies, which needs a machine without other work."""

    share: float = 1.0
    strict: bool = True

    def count(self, full: int, least: int = 1) -> int:
        """This size's share of a number."""
        return max(least, int(full * self.share))


SEED = 7  # of the short form: it always does the same
SHORT = Size(0.02, strict=False)


class Failed(AssertionError):
    """An attack has succeeded."""


class Report:
    """What one attack did and measured."""

    def __init__(self, name: str, size: Size, show: Callable[[str], object] = lambda line: None) -> None:
        self.name = name
        self.size = size
        self.problems: list[str] = []
        self._show = show

    def seed(self) -> int:
        """The seed of what is drawn: another one in each run at full size, unless ``ATTACK_SEED`` is set."""
        drawn = int.from_bytes(os.urandom(4)) if self.size.strict else SEED
        seed = int(os.environ.get("ATTACK_SEED", drawn))
        self.note("seed; ATTACK_SEED replays it", seed)
        return seed

    def note(self, what: str, figure: object) -> None:
        """A figure without a limit."""
        self._show(f"  {what:60} {figure}")

    def limit(self, what: str, figure: float, most: float, unit: str = "") -> None:
        """A figure that must not be above ``most``."""
        is_over = figure > most
        self._show(f"  {what:60} {figure:.6g} {unit} (at most {most:g}){'  TOO MUCH' if is_over else ''}")
        if is_over:
            self.problems.append(f"{what}: {figure:.6g} {unit}, but at most {most:g}")

    def expect(self, what: str, holds: bool, found: object = "") -> None:
        """Something that must be so."""
        if not holds:
            self._show(f"  {what}: NO {found}"[:500])
            self.problems.append(f"{what}: {found}"[:2000])

    def end(self) -> None:
        """Fail if anything was too much.

        Raises:
            Failed: says what.
        """
        if self.problems:
            raise Failed(f"{self.name}: " + "; ".join(self.problems[:20]))
