"""The timeline of a run as text: repeated reads are folded, and the change is marked."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Final

from payment_sandbox.judge.history import TimelineEntry, fold, history
from pytest_payment_sandbox.rehearsal.run import RehearsedRun

MARK: Final = ">>>"
ID_LENGTH: Final = 8  # characters of an order's id


def describe_timeline(run: RehearsedRun) -> str:
    """Describe the timeline of a run."""
    return "\n".join(_mark_changes(fold(history(run.project.epoch)), run.marks))


def _mark_changes(entries: Iterable[TimelineEntry], marks: Sequence[tuple[datetime, str]]) -> Iterator[str]:
    """Yield a line for each entry, and a line for each change before its first effect."""
    upcoming = list(marks)
    for entry in entries:
        while upcoming and upcoming[0][0] <= entry.real_at:
            yield f"{MARK} {upcoming.pop(0)[1]}"
        yield f"{entry.at:%Y-%m-%d %H:%M:%S}  {_describe(entry)}"
        if entry.kind == "webhook-response" and entry.failed:  # the traceback of the handler
            yield from (f"    {line}" for line in (entry.detail or "").splitlines())
    yield from (f"{MARK} {sentence}" for _, sentence in upcoming)


def _describe(entry: TimelineEntry) -> str:
    """Describe an entry, such as ``service to shop: webhook, attempt 1: completed (order 4aa4f3d6)``."""
    order = f" (order {entry.order_id[:ID_LENGTH]})" if entry.order_id else ""
    if entry.kind == "status":
        return f"the order is {entry.label}{order}"
    if entry.kind == "failure":
        return f"{entry.label}: {entry.detail}{order}"
    parties = "" if entry.sender == entry.receiver else f"{entry.sender} to {entry.receiver}: "
    return f"{parties}{entry.label}{order}"
