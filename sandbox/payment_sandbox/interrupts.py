"""End the program on signals while it loads, without a traceback; the package imports this module first."""

import _signal  # type: ignore[import-not-found]  # signal takes longer to load
import os
import sys

PROGRAM = "payment-sandbox"
INIT_PROCESS = 1  # the system drops signals to process 1 of a container unless it handles them
SIGNAL_EXIT_BASE = 128


def exit_silently_on_interrupt() -> None:
    """Let an interrupt end the process without a traceback, unless a handler is installed."""
    is_init = os.getpid() == INIT_PROCESS
    if _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler:
        _signal.signal(_signal.SIGINT, _exit_now if is_init else _signal.SIG_DFL)
    if is_init and _signal.getsignal(_signal.SIGTERM) == _signal.SIG_DFL:
        _signal.signal(_signal.SIGTERM, _exit_now)


def is_silent_on_interrupt() -> bool:
    """Whether an interrupt ends the process without a traceback, and without cleanup."""
    return _signal.getsignal(_signal.SIGINT) in (_signal.SIG_DFL, _exit_now)


def _exit_now(number: int, _: object) -> None:
    os._exit(SIGNAL_EXIT_BASE + number)


def _is_program() -> bool:
    """Whether this process runs the command; ``argv[0]`` is ``-m`` while Python locates the module."""
    program = sys.argv[0] if sys.argv else ""
    return program == "-m" or program.endswith((f"/{PROGRAM}", f"/{PROGRAM}.pyz"))


if _is_program():
    exit_silently_on_interrupt()
