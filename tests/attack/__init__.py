"""Attacks on a sandbox server on loopback.

``make prove`` runs a short form of each. ``make attack`` runs them at full size, prints their figures, and limits
durations, too, which needs an otherwise idle machine.
"""

import os
from typing import Final

FULL: Final = os.environ.get("ATTACK") == "full"
SHORT_SHARE: Final = 0.02


def scaled(full: int, minimum: int = 1) -> int:
    """Return a count at full size, or its share in the short form, but at least ``minimum``."""
    return full if FULL else max(minimum, int(full * SHORT_SHARE))


def note(label: str, figure: object) -> None:
    """Print a figure without a limit."""
    print(f"  {label:60} {figure}")


def limit(label: str, figure: float, maximum: float, unit: str = "") -> None:
    """Print a figure, and assert that it does not exceed ``maximum``."""
    note(label, f"{figure:.6g} {unit} (at most {maximum:g})")
    assert figure <= maximum, f"{label}: {figure:.6g} {unit}, but at most {maximum:g}"


def limit_time(label: str, figure: float, maximum: float, unit: str = "") -> None:
    """Print a figure of real time, which has a limit at full size only."""
    limit(label, figure, maximum if FULL else float("inf"), unit)
