"""The one timestamp format, used everywhere."""

from datetime import datetime


def timestamp(moment: datetime) -> str:
    """ISO 8601 with microseconds and +00:00 (SET-19)."""
    return moment.isoformat(timespec="microseconds")
