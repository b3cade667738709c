"""Reports for a test: the timeline of a failure, and the mistakes of a shop."""

import warnings
from collections.abc import Collection
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from payment_sandbox.testing.project import PaymentSandbox

OFF, WARN, ERROR = "off", "warn", "error"
MODES = (OFF, WARN, ERROR)


class PaymentReviewWarning(UserWarning):
    """The review found mistakes in the integration under test."""


def review_text(project: "PaymentSandbox") -> str:
    """Return the timeline; a read error must not hide the failure of the test."""
    try:
        return project.timeline()
    except Exception as error:
        return f"reading the timeline failed: {error}"


def review(project: "PaymentSandbox", mode: str, test: str, expect: Collection[str] = ()) -> None:
    """Warn of the mistakes in a test, or fail the test; ignore the rules in ``expect``, broken on purpose.

    Raises:
        AssertionError: ``mode`` is ``error``, and the review found mistakes.
        ValueError: the mode is unknown.
    """
    if mode not in MODES:
        raise ValueError(f"payment_review is {OFF}, {WARN} or {ERROR}, not {mode!r}")
    if mode == OFF:
        return
    reviewed = project.review()
    if mode == ERROR:
        reviewed.assert_clean(expect)
    problems = reviewed.problems(expect)
    if problems:
        warnings.warn(PaymentReviewWarning(f"{test}: {problems}"), stacklevel=2)
