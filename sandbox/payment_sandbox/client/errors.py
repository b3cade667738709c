"""The exceptions of the client."""

from collections.abc import Mapping
from typing import Any, Final, Protocol

from payment_sandbox.orders.refusals import Violation
from payment_sandbox.serving.sessions import trouble

FOREIGN: Final = "Unknown"


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
                line=violation.get("line"),
                column=violation.get("column"),
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


class RaisedException(Protocol):
    """What pytest knows of an exception: its ``ExceptionInfo``."""

    @property
    def value(self) -> BaseException:
        """The exception."""
        ...


def ends_at_caller(raised: RaisedException) -> bool:
    """For ``__tracebackhide__``: whether pytest leaves a module out of a traceback, as of a refusal."""
    return isinstance(raised.value, SandboxError)


def plainly(error: OSError, url: str) -> OSError:
    """The same kind of network error, with a sentence that names the address."""
    if not any(isinstance(given, BaseException) for given in error.args):
        return error
    return type(error)(trouble(error, url))
