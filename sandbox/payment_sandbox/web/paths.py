"""What paths mean to those who serve them before the application sees the request."""

from typing import Final

STATE_PATH: Final = "/control/state/"
EVENTS_PATH: Final = "/control/events/"
DASHBOARD_PATH: Final = "/dashboard/"


def same_path(one: str, other: str) -> bool:
    """Whether two paths lead to the same route: a trailing slash makes no difference (SET-01)."""
    return one.rstrip("/") == other.rstrip("/")


def is_stream(path: str) -> bool:
    """Whether a path leads to a stream of events, which never ends."""
    return same_path(path, EVENTS_PATH) or _is_of_dashboard(path, "events")


def takes_snapshot(path: str) -> bool:
    """Whether a snapshot is sent to a path, which may be large."""
    return same_path(path, STATE_PATH) or _is_of_dashboard(path, "state")


def _is_of_dashboard(path: str, name: str) -> bool:
    return path.startswith(DASHBOARD_PATH) and path.rstrip("/").endswith(f"/{name}")
