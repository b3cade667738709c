"""The exceptions of the client."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple


class Violation(NamedTuple):
    """One violation: its location, what was expected, and the allowed values."""

    path: str
    message: str
    allowed: Sequence[str] = ()
    nearest: str | None = None
    line: int | None = None  # in a document that was sent as YAML
    column: int | None = None


class SandboxError(Exception):
    """A call was refused; nothing has changed."""

    def __init__(self, status: int, error: Mapping[str, Any]) -> None:
        self.status = status
        self.type: str = error.get("type", "Unknown")
        self.value: str = error.get("value", "the server is not a payment sandbox")
        self.allowed: list[str] = list(error.get("allowed", ()))
        self.now: Mapping[str, Any] = error.get("now", {})
        """The current values, if a wait timed out."""
        self.violations = [
            Violation(
                found["path"],
                found["message"],
                tuple(found.get("allowed", ())),
                found.get("nearest"),
                found.get("line"),
                found.get("column"),
            )
            for found in error.get("violations", ())
        ]
        super().__init__(f"{status} {self.type}: {self.value}")
