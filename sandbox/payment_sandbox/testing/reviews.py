"""What a test is told about its project: the timeline of a failure, and the mistakes of a shop."""

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
    """The timeline; a problem with it must not hide the failure that it is for."""
    try:
        return project.timeline()
    except Exception as error:
        return f"the timeline could not be read: {error}"


def review(project: "PaymentSandbox", mode: str, test: str, expect: Collection[str] = ()) -> None:
    """Warn of the mistakes that a test showed, or fail it; those against rules in ``expect`` are meant.

    Raises:
        AssertionError: ``mode`` is ``error``, and there are mistakes.
        ValueError: there is no such mode.
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
