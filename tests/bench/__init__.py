"""Measurements, each a ratio to a reference taken in the same run; no tests."""

from collections.abc import Callable
from statistics import median
from time import perf_counter


def seconds(work: Callable[[], object]) -> float:
    """How long it takes, once."""
    begun = perf_counter()
    work()
    return perf_counter() - begun


def paired(work: Callable[[], object], reference: Callable[[], object], rounds: int) -> float:
    """The median of reference time / work time, the two in turn: 1.0 is as fast as the reference."""
    work()
    reference()
    return median(seconds(reference) / seconds(work) for _ in range(rounds))


def report(what: str, ratio: float, aim: str) -> None:
    """Print a line."""
    print(f"{what:75} {ratio:8.2f}   aim {aim}", flush=True)
