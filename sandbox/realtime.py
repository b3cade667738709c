"""The one door through which real time enters; the server hands it to those who need it."""

import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final, NamedTuple


class _Host(NamedTuple):
    """The host's clocks, out of reach: who freezes time replaces them in modules, not in here."""

    monotonic: Callable[[], float]
    wall: Callable[[], float]
    moment: type[datetime]


_HOST: Final = _Host(time.monotonic, time.time, datetime)  # noqa: TID251


def monotonic_seconds() -> float:
    """Seconds that only go on, from anywhere."""
    return _HOST.monotonic()


def wall_now() -> datetime:
    """The host's time, in UTC."""
    return _HOST.moment.fromtimestamp(_HOST.wall(), tz=UTC)
