"""Suppress tracebacks for interrupts while the program loads; the package imports this module first."""

import _signal  # type: ignore[import-not-found]  # signal takes longer to load
import sys

PROGRAM = "payment-sandbox"


def exit_silently_on_interrupt() -> None:
    """Let an interrupt end the process without a traceback, unless a handler is installed."""
    if _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler:
        _signal.signal(_signal.SIGINT, _signal.SIG_DFL)


def _is_program() -> bool:
    """Whether this process runs the command; ``argv[0]`` is ``-m`` while Python locates the module."""
    program = sys.argv[0] if sys.argv else ""
    return program == "-m" or program.endswith((f"/{PROGRAM}", f"/{PROGRAM}.pyz"))


if _is_program():
    exit_silently_on_interrupt()
