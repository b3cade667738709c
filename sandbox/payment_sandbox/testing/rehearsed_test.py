"""The current run of a rehearsal, for tests without pytest fixtures."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, Protocol

if TYPE_CHECKING:
    from payment_sandbox.testing.project_fixture import PaymentSandbox

FixtureLookup = Callable[[str], Any]
"""Looks up the attribute of a test case that corresponds to a fixture; returns None if there is none."""


class RehearsedTest(Protocol):
    """One run of a test."""

    def attach(self, project: "PaymentSandbox", lookup: FixtureLookup | None = None) -> None:
        """Rehearse the test's project."""
        ...

    def end(self, failure: BaseException | None) -> None:
        """Judge the run at the end of its test."""
        ...


_runs: Final[list[RehearsedTest]] = []  # newest last


def set_current_test(run: RehearsedTest | None) -> None:
    """Set the current run, or end it with None."""
    _runs.clear()
    if run is not None:
        _runs.append(run)


def current_test() -> RehearsedTest | None:
    """Return the current run; None outside a rehearsal."""
    return _runs[-1] if _runs else None
