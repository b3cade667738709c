"""Benchmarks: each measures a ratio to a reference in the same run.

``ratios.json`` holds the ratios of the last release; the report marks clearly worse ratios. After a release,
``python -m tests.bench --keep`` saves its ratios there.
"""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Final

RATIOS_FILE: Final = Path(__file__).with_name("ratios.json")
TOLERANCE: Final = 1.15  # a ratio may vary by this factor from run to run

measured: dict[str, float] = {}


def seconds(work: Callable[[], object]) -> float:
    """Return the seconds of one run."""
    started = perf_counter()
    work()
    return perf_counter() - started


def paired(work: Callable[[], object], reference: Callable[[], object], rounds: int) -> list[float]:
    """Return the ratios reference time / work time, measured in turn: 1.0 is as fast as the reference."""
    work()
    reference()
    return [seconds(reference) / seconds(work) for _ in range(rounds)]


def report(label: str, ratios: float | Sequence[float], aim: str) -> None:
    """Print the median, the lowest and highest ratio, the aim, and a comparison with the last release."""
    values = [ratios] if isinstance(ratios, int | float) else sorted(ratios)
    ratio = measured[label] = median(values)
    spread = f"({values[0]:.2f} to {values[-1]:.2f})" if len(values) > 1 else ""
    print(f"{label:75} {ratio:8.2f} {spread:18} aim {aim:8}{_compared(label, ratio, aim)}", flush=True)


def _compared(label: str, ratio: float, aim: str) -> str:
    before = json.loads(RATIOS_FILE.read_text()).get(label) if RATIOS_FILE.exists() else None
    if before is None or not aim.startswith((">=", "<=")):
        return ""
    slowdown = before / ratio if aim.startswith(">=") else ratio / before
    return f"  slower than last release ({before:.2f})" if slowdown > TOLERANCE else ""


def save_ratios() -> None:
    """Save the measured ratios for later comparisons; the ratios of other benchmarks stay."""
    before = json.loads(RATIOS_FILE.read_text()) if RATIOS_FILE.exists() else {}
    ratios = {**before, **{label: round(ratio, 3) for label, ratio in measured.items()}}
    RATIOS_FILE.write_text(json.dumps(dict(sorted(ratios.items())), indent=2) + "\n")
