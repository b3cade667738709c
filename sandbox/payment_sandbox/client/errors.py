"""The exceptions of the client."""

from collections.abc import Mapping
from typing import Any, Final

from payment_sandbox.orders.refusals import Violation
from payment_sandbox.serving.sessions import describe_failure

FOREIGN_TYPE: Final = "Unknown"


class SandboxError(Exception):
    """A call was refused; nothing has changed."""

    def __init__(self, status: int, error: Mapping[str, Any]) -> None:
        self.status = status
        self.type: str = error.get("type", FOREIGN_TYPE)
        self.is_foreign = self.type == FOREIGN_TYPE
        """Whether the error has another format, which means that the server is not a payment sandbox."""
        self.value: str = error.get("value", "the server is not a payment sandbox")
        self.allowed: list[str] = list(error.get("allowed", ()))
        self.now: Mapping[str, Any] = error.get("now", {})
        """The current values after a timed-out wait."""
        self.violations = [
            Violation(
                violation["path"],
                violation["message"],
                tuple(violation.get("allowed", ())),
                violation.get("nearest"),
                file=violation.get("file"),
                line=violation.get("line"),
                column=violation.get("column"),
            )
            for violation in error.get("violations", ())
        ]
        super().__init__(f"{status} {self.type}: {self.value}")

    def in_file(self, path: str) -> "SandboxError":
        """Add the file and the position of each violation to the message; return the error."""
        places = [violation.as_line_in(path) for violation in self.violations]
        self.violations = [violation._replace(file=path) for violation in self.violations]
        self.args = ("\n".join([f"{path}: {self.args[0]}", *places]),)
        return self


SandboxError.__module__ = "payment_sandbox"  # the module that users import, for tracebacks


def ends_at_caller(raised: Any) -> bool:
    """Return whether pytest hides a module's frames (``__tracebackhide__``): yes if the call was refused."""
    return isinstance(raised.value, SandboxError)


def make_readable(error: OSError, url: str) -> OSError:
    """Return a network error of the same type with a readable message and the address."""
    if not any(isinstance(argument, BaseException) for argument in error.args):
        return error
    return type(error)(describe_failure(error, url))
