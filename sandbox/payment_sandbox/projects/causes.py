"""The cause of what a request does: the record that statuses name as theirs."""

from contextvars import ContextVar
from typing import Final

_CAUSE: Final[ContextVar[str | None]] = ContextVar("cause", default=None)


def current_cause() -> str | None:
    """The id of the record that causes what this thread or task does; None outside of requests."""
    return _CAUSE.get()


def set_cause(record_id: str | None) -> None:
    """From now on, this record is the cause."""
    _CAUSE.set(record_id)
