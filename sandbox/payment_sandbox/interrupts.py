"""Ends a program that is interrupted while it loads, without a traceback; the package imports this first."""

import _signal  # type: ignore[import-not-found]  # signal takes longer to load
import sys

PROGRAM = "payment-sandbox"


def end_at_once() -> None:
    """Let an interrupt end the process as it ends other programs, unless somebody handles it already."""
    if _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler:
        _signal.signal(_signal.SIGINT, _signal.SIG_DFL)


def _is_program() -> bool:
    """Whether this process runs the command: ``-m`` stands for the name while Python looks for the module."""
    begun_as = sys.argv[0] if sys.argv else ""
    return begun_as == "-m" or begun_as.endswith((f"/{PROGRAM}", f"/{PROGRAM}.pyz"))


if _is_program():
    end_at_once()
