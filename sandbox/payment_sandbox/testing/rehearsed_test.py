"""The run of a rehearsal that is under way, for tests that get no fixtures from pytest."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, Protocol

if TYPE_CHECKING:
    from payment_sandbox.testing.project import PaymentSandbox

Told = Callable[[str], Any]
"""What a test case says under the name of a fixture; None if it says nothing."""


class RehearsedTest(Protocol):
    """One run of a test."""

    def attach(self, project: "PaymentSandbox", report: Told | None = None) -> None:
        """Rehearse the test's project."""
        ...

    def ended(self, failure: BaseException | None) -> None:
        """The test has ended: judge what is left."""
        ...


_runs: Final[list[RehearsedTest]] = []  # the newest last


def set_current_test(run: RehearsedTest | None) -> None:
    """This run is under way from now on; None: no run."""
    _runs.clear()
    if run is not None:
        _runs.append(run)


def current_test() -> RehearsedTest | None:
    """The run that is under way, if tests are rehearsed."""
    return _runs[-1] if _runs else None
