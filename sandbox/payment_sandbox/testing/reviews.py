"""Reports for a test: its timeline if it fails, and the shop's mistakes."""

import os
import warnings
from collections.abc import Collection
from traceback import walk_tb
from typing import Final

from payment_sandbox.client.errors import SandboxError
from payment_sandbox.serving.sessions import causes
from payment_sandbox.testing.project_fixture import PaymentSandbox

OFF, WARN, ERROR = "off", "warn", "error"
REVIEW_MODES = (OFF, WARN, ERROR)


MODE_VARIABLE: Final = "PAYMENT_SANDBOX_REVIEW"


def default_mode() -> str:
    """Return the mode of suites that do not set one; the variable is the same in all languages.

    Raises:
        ValueError: the variable is set to an unknown mode.
    """
    mode = os.environ.get(MODE_VARIABLE) or WARN
    if mode not in REVIEW_MODES:
        raise ValueError(f"{MODE_VARIABLE} must be {OFF}, {WARN} or {ERROR}, not {mode!r}")
    return mode


class PaymentReviewWarning(UserWarning):
    """The review found mistakes in the integration under test."""


NOT_FOUND: Final = 404
UNAUTHORIZED: Final = 401
OWN_MODULES_PREFIX: Final = "payment_sandbox."
NETWORK_BLOCKERS: Final = {
    "pytest_socket": "pytest-socket",
    "pytest_recording": "pytest-recording (--block-network)",
    "mocket": "mocket",
}
SOCKET_FREE: Final = (
    "payment_sandbox.session, payment_sandbox.httpx_transport and payment_sandbox.intercept need no sockets"
)


def timeline_text(project: PaymentSandbox, failure: BaseException | None = None) -> str:
    """Return the timeline for a failure's report; a read error must not hide the failure.

    The timeline is empty if the test misused the sandbox and the shop made no call: a timeline would only say
    that no call has arrived.
    """
    try:
        if failure is not None and _is_misuse(failure) and not project.client.journal():
            return ""
        return f"{_blocked_call(failure)}{project.timeline()}"
    except Exception as error:
        return f"reading the timeline failed: {error}"


def _blocked_call(failure: BaseException | None) -> str:
    """Return a line that names the library that blocked a call over the network; empty if none did."""
    for error in causes(failure) if failure is not None else ():
        frames = list(walk_tb(error.__traceback__))
        package = frames[-1][0].f_globals.get("__name__", "").partition(".")[0] if frames else ""
        if package in NETWORK_BLOCKERS:
            return f"{NETWORK_BLOCKERS[package]} blocked a call over the network; {SOCKET_FREE}\n"
    return ""


def _is_misuse(failure: BaseException) -> bool:
    """Return whether the sandbox refused a call by the test, such as a call with a wrong argument.

    An unknown order is not misuse: the shop may have created the order elsewhere.
    """
    frames = list(walk_tb(failure.__traceback__))
    is_own = bool(frames) and frames[-1][0].f_globals.get("__name__", "").startswith(OWN_MODULES_PREFIX)
    return is_own and not (isinstance(failure, SandboxError) and failure.status == NOT_FOUND)


def review(project: PaymentSandbox, mode: str, test: str, expect: Collection[str] = ()) -> None:
    """Warn about mistakes in a test, or fail it; ignore the rules in ``expect``, which it breaks on purpose.

    A fault or a rule of a scenario that never matched is a mistake of the test.

    Raises:
        AssertionError: ``mode`` is ``error``, and there are mistakes.
        ValueError: the mode is unknown.
    """
    if mode not in REVIEW_MODES:
        raise ValueError(f"payment_review must be {OFF}, {WARN} or {ERROR}, not {mode!r}")
    if mode == OFF:
        return
    try:
        problems = "\n".join(filter(None, [project.review().problems(expect), *project.unmatched()]))
    except SandboxError as refused:
        if refused.status != UNAUTHORIZED:
            raise
        return  # the test has closed or deleted its project
    if problems and mode == ERROR:
        raise AssertionError(problems)
    if problems:
        warnings.warn(PaymentReviewWarning(f"{test}: {problems}"), stacklevel=2)
