"""Measurements, each a ratio to a reference taken in the same run; no tests.

``ratios.json`` holds the ratios of the last release; a line that is clearly worse says so. After a release,
``python -m tests.bench --keep`` writes what it measures there.
"""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Final

KEPT: Final = Path(__file__).with_name("ratios.json")
WORSE: Final = 1.15  # a ratio may differ by so much from run to run

measured: dict[str, float] = {}


def seconds(work: Callable[[], object]) -> float:
    """How long it takes, once."""
    begun = perf_counter()
    work()
    return perf_counter() - begun


def paired(work: Callable[[], object], reference: Callable[[], object], rounds: int) -> list[float]:
    """Reference time / work time, the two in turn: 1.0 is as fast as the reference."""
    work()
    reference()
    return [seconds(reference) / seconds(work) for _ in range(rounds)]


def inverse(ratios: Sequence[float]) -> list[float]:
    """Work / reference instead of reference / work."""
    return [1 / ratio for ratio in ratios]


def report(what: str, ratios: float | Sequence[float], aim: str) -> None:
    """Print a line: the median, from the lowest to the highest, the aim, and whether it was better before."""
    found = [ratios] if isinstance(ratios, int | float) else sorted(ratios)
    ratio = measured[what] = median(found)
    spread = f"({found[0]:.2f} to {found[-1]:.2f})" if len(found) > 1 else ""
    print(f"{what:75} {ratio:8.2f} {spread:18} aim {aim:8}{_compared(what, ratio, aim)}", flush=True)


def _compared(what: str, ratio: float, aim: str) -> str:
    before = json.loads(KEPT.read_text()).get(what) if KEPT.exists() else None
    if before is None or not aim.startswith((">=", "<=")):
        return ""
    worse = before / ratio if aim.startswith(">=") else ratio / before
    return f"  slower than last release ({before:.2f})" if worse > WORSE else ""


def keep() -> None:
    """Write what was measured as the ratios to compare with; those of other parts stay."""
    before = json.loads(KEPT.read_text()) if KEPT.exists() else {}
    kept = {**before, **{what: round(ratio, 3) for what, ratio in measured.items()}}
    KEPT.write_text(json.dumps(dict(sorted(kept.items())), indent=2) + "\n")
