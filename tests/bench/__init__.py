"""Benchmarks: each measures a ratio to a reference in the same run."""

from collections.abc import Callable, Sequence
from statistics import median
from time import perf_counter


def seconds(work: Callable[[], object]) -> float:
    """Return the seconds of one run."""
    started = perf_counter()
    work()
    return perf_counter() - started


def report(label: str, ratios: float | Sequence[float], aim: str) -> None:
    """Print the median, the lowest and highest ratio, and the aim."""
    values = [ratios] if isinstance(ratios, int | float) else sorted(ratios)
    spread = f"({values[0]:.2f} to {values[-1]:.2f})" if len(values) > 1 else ""
    print(f"{label:75} {median(values):8.2f} {spread:18} aim {aim}", flush=True)
