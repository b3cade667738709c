"""The one door through which real time enters; the server hands it to those who need it."""

import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final, NamedTuple


class _Host(NamedTuple):
    """The host's clocks, out of reach: who freezes time replaces them in modules, not in here."""

    monotonic: Callable[[], float]
    wall: Callable[[], float]
    moment: type[datetime]


def _host() -> _Host:
    """The real ones, also when all this is imported while somebody has frozen time."""
    freezer = sys.modules.get("freezegun.api")
    return _Host(
        getattr(freezer, "real_monotonic", time.monotonic),  # noqa: TID251
        getattr(freezer, "real_time", time.time),  # noqa: TID251
        getattr(freezer, "real_datetime", datetime),
    )


_HOST: Final = _host()


def monotonic_seconds() -> float:
    """Seconds that only go on, from anywhere."""
    return _HOST.monotonic()


def wall_now() -> datetime:
    """The host's time, in UTC."""
    return _HOST.moment.fromtimestamp(_HOST.wall(), tz=UTC)
