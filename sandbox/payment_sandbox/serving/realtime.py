"""The only source of real time; the server passes it to the code that needs it."""

import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from threading import Lock
from typing import Final, NamedTuple


class HostClocks(NamedTuple):
    """The host's clocks, out of reach of freezegun, which patches module attributes."""

    monotonic: Callable[[], float]
    wall: Callable[[], float]
    moment: type[datetime]


_freezer: Final = sys.modules.get("freezegun.api")  # time may be frozen while this module is imported
HOST: Final = HostClocks(
    getattr(_freezer, "real_monotonic", time.monotonic),  # noqa: TID251
    getattr(_freezer, "real_time", time.time),  # noqa: TID251
    getattr(_freezer, "real_datetime", datetime),
)


def _escape(name: str, clock: Callable[[], float]) -> Callable[[], float]:
    """Return a clock that is out of reach of time-machine, too, which patches the functions themselves."""
    machine = sys.modules.get("time_machine")
    if machine is None or not machine.escape_hatch.is_travelling():
        return clock
    unpatched: Callable[[], float] = getattr(machine.escape_hatch.time, name, clock)
    return unpatched


TIME_MACHINE: Final = "time_machine"
SET_BACK_MIN: Final = timedelta(seconds=1)
MICROSECOND: Final = timedelta(microseconds=1)
_LOCK: Final = Lock()
_newest: Final = [HOST.moment.fromtimestamp(0, UTC)]


def monotonic_seconds() -> float:
    """Return monotonic seconds from an arbitrary start."""
    return HOST.monotonic() if TIME_MACHINE not in sys.modules else _escape("monotonic", HOST.monotonic)()


boot_seconds: Final[Callable[[], float]] = (
    partial(time.clock_gettime, time.CLOCK_BOOTTIME)  # which no library freezes
    if hasattr(time, "CLOCK_BOOTTIME")
    else monotonic_seconds
)
"""Returns monotonic seconds that include the time in which the machine was suspended, where they exist."""


def processor_seconds() -> float:
    """Return the seconds for which this process has used a processor."""
    return time.process_time()


def wall_now() -> datetime:
    """Return the host's time in UTC; each call returns a different time, so that records can be sorted.

    If the host's clock is set back, the returned times go back as well.
    """
    wall = HOST.wall() if TIME_MACHINE not in sys.modules else _escape("time", HOST.wall)()
    with _LOCK:
        now = HOST.moment.fromtimestamp(wall, UTC)
        if now <= _newest[0] < now + SET_BACK_MIN:
            now = _newest[0] + MICROSECOND
        _newest[0] = now
    return now
