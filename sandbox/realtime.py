"""The one door through which real time enters; the server hands it to those who need it."""

import time
from collections.abc import Callable
from datetime import UTC, datetime

# Bound once: a test that freezes the host's clock must not freeze the sandbox's.
monotonic_seconds: Callable[[], float] = time.monotonic  # noqa: TID251
_wall_seconds: Callable[[], float] = time.time  # noqa: TID251


def wall_now() -> datetime:
    """The host's time, in UTC."""
    return datetime.fromtimestamp(_wall_seconds(), tz=UTC)
