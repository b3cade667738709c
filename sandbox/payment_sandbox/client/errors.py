"""The exceptions of the client."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from payment_sandbox.serving.sessions import trouble

FOREIGN: Final = "Unknown"


class Violation(NamedTuple):
    """One violation: its location, what was expected, and the allowed values."""

    path: str
    message: str
    allowed: Sequence[str] = ()
    nearest: str | None = None
    line: int | None = None  # in a document that was sent as YAML
    column: int | None = None

    def in_file(self, file: object) -> str:
        """The violation in a line, with its place in the file that was sent."""
        place = f"{file}:{self.line or 1}:{self.column or 1}:"
        return " ".join(filter(None, [place, self.path, self.message]))


class SandboxError(Exception):
    """A call was refused; nothing has changed."""

    def __init__(self, status: int, error: Mapping[str, Any]) -> None:
        self.status = status
        self.type: str = error.get("type", FOREIGN)
        self.is_foreign = self.type == FOREIGN
        """Whether the server is no payment sandbox: its error has another shape."""
        self.value: str = error.get("value", "the server is not a payment sandbox")
        self.allowed: list[str] = list(error.get("allowed", ()))
        self.now: Mapping[str, Any] = error.get("now", {})
        """The current values, if a wait timed out."""
        self.violations = [
            Violation(
                violation["path"],
                violation["message"],
                tuple(violation.get("allowed", ())),
                violation.get("nearest"),
                violation.get("line"),
                violation.get("column"),
            )
            for violation in error.get("violations", ())
        ]
        super().__init__(f"{status} {self.type}: {self.value}")

    def in_file(self, path: str) -> "SandboxError":
        """The same refusal, whose message names the file and each place in it."""
        places = [violation.in_file(path) for violation in self.violations]
        self.args = ("\n".join([f"{path}: {self.args[0]}", *places]),)
        return self


SandboxError.__module__ = "payment_sandbox"  # where users import it from, as tracebacks then say


def plainly(error: OSError, url: str) -> OSError:
    """The same kind of network error, with a sentence that names the address."""
    if not any(isinstance(given, BaseException) for given in error.args):
        return error
    return type(error)(trouble(error, url))
