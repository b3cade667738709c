"""The one timestamp format, used everywhere."""

from datetime import datetime
from functools import lru_cache


@lru_cache(maxsize=256)  # one answer shows the same few moments many times
def timestamp(moment: datetime) -> str:
    """ISO 8601 with microseconds and +00:00 (SET-19)."""
    return moment.isoformat(timespec="microseconds")
