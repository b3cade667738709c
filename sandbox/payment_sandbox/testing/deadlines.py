"""Interrupts a shop's handler that takes too long, at the line where it is."""

import ctypes
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from threading import Event, Lock, Thread, get_ident, main_thread
from typing import Any, Final
from weakref import WeakSet

from payment_sandbox.serving.realtime import monotonic_seconds
from payment_sandbox.serving.threads import start

AGAIN_SECONDS: Final = 1.0  # code that catches the interruption and goes on is interrupted again
DEBUGGERS: Final = frozenset({"bdb", "pdb", "pydevd", "debugpy", "_pydevd_bundle", "pydevd_frame_evaluator"})
SIGNAL: Final[Any] = getattr(signal, "SIGURG", None)  # ignored by default


class Interrupted(BaseException):
    """Raised where the code is when its time is over; frameworks let it pass, as it is no ``Exception``."""

    def __init__(self, deadline: "Deadline | None" = None) -> None:
        super().__init__("the time is over")
        self.deadline = deadline


class TimeLimit(Exception):
    """The time is over; the cause shows where the code was."""


class Deadline:
    """When some code is interrupted."""

    def __init__(self, at_seconds: float) -> None:
        self.at_seconds = at_seconds
        self.thread = get_ident()
        self.is_due = False  # the thread has a signal on its way
        self.is_over = False  # the code has ended


_INSIDE: Final[ContextVar[tuple[Deadline, ...]]] = ContextVar("deadlines", default=())
"""The deadlines of the code that runs here, the outermost first; tasks that it starts have them, too."""


class _Watchdog:
    """The thread that watches all deadlines; it ends when there are none."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._armed: WeakSet[Deadline] = WeakSet()
        self._process = 0  # the one whose thread is watching

    def arm(self, deadline: Deadline) -> None:
        with self._lock:
            self._armed.add(deadline)
            begins, self._process = self._process != os.getpid(), os.getpid()
        if begins:
            start(Thread(target=self._watch, name="deadlines", daemon=True))

    def disarm(self, deadline: Deadline) -> None:
        with self._lock:  # an interruption is either on its way already, or does not come any more
            self._armed.discard(deadline)

    def _watch(self) -> None:
        pause = Event()
        while (next_seconds := self._next()) is not None:
            pause.wait(max(next_seconds - monotonic_seconds(), 0.0))
            self._interrupt()

    def _next(self) -> float | None:
        with self._lock:
            found = min((deadline.at_seconds for deadline in self._armed), default=None)
            if found is None:
                self._process = 0
            return found

    def _interrupt(self) -> None:
        with self._lock:
            for deadline in self._armed:
                if deadline.at_seconds <= monotonic_seconds() and not deadline.is_over:
                    deadline.at_seconds = monotonic_seconds() + AGAIN_SECONDS
                    deadline.is_due = True
                    _raise_in(deadline.thread, Interrupted)


_WATCHDOG: Final = _Watchdog()


def _is_main(thread: int) -> bool:
    return SIGNAL is not None and thread == main_thread().ident


@cache
def _install() -> None:
    """Handle the signal, unless somebody else does; it stays, and does nothing when nothing is due."""
    if signal.getsignal(SIGNAL) in (signal.SIG_DFL, signal.SIG_IGN):
        signal.signal(SIGNAL, _on_signal)


def _raise_in(thread: int, raised: type[Interrupted] | None) -> None:
    """Raise in a thread; in the main thread by a signal, which also ends what blocks it, such as a sleep."""
    if _is_main(thread) and signal.getsignal(SIGNAL) is _on_signal:
        signal.pthread_kill(thread, SIGNAL)
    else:
        found = ctypes.py_object(raised) if raised is not None else None
        ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), found)


def _on_signal(number: int, frame: Any) -> None:
    """Interrupt the code that runs now, if its time is over; the event loop around it goes on."""
    due = next((item for item in _INSIDE.get() if item.is_due and not item.is_over), None)
    if due is not None and not _is_debugged():
        due.is_due = False
        raise Interrupted(due)


def _is_debugged() -> bool:
    """Whether somebody steps through the code, and takes their time."""
    monitoring = getattr(sys, "monitoring", None)  # since Python 3.12
    if monitoring is not None and monitoring.get_tool(monitoring.DEBUGGER_ID) is not None:
        return True
    return getattr(sys.gettrace(), "__module__", "").partition(".")[0] in DEBUGGERS


@contextmanager
def interrupted_after(seconds: float) -> Iterator[None]:
    """Interrupt the block once the time is over, whichever of its code runs then.

    Raises:
        TimeLimit: it was interrupted.
    """
    deadline = Deadline(monotonic_seconds() + seconds)
    is_main = _is_main(deadline.thread)
    if is_main:
        _install()
    outer = _INSIDE.set((*_INSIDE.get(), deadline))
    _WATCHDOG.arm(deadline)
    try:
        yield
    except (Interrupted, BaseExceptionGroup) as interrupted:
        if not _is_of(interrupted, deadline):
            raise
        raise TimeLimit from interrupted
    finally:
        deadline.is_over = True
        _WATCHDOG.disarm(deadline)
        _INSIDE.reset(outer)
        if deadline.is_due and not is_main:
            _raise_in(deadline.thread, None)


def _is_of(error: BaseException, deadline: Deadline) -> bool:
    """Whether an error is the interruption of this deadline, or a group with it."""
    if isinstance(error, BaseExceptionGroup):
        return any(_is_of(each, deadline) for each in error.exceptions)
    return isinstance(error, Interrupted) and error.deadline in (None, deadline)
