"""The exceptions of a shop's handler: those that it raises, and those that its framework only logs."""

import logging
import os
import sys
import sysconfig
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from threading import get_ident
from traceback import StackSummary, TracebackException, walk_stack
from typing import Final

from payment_sandbox.serving.posting import PLACED
from payment_sandbox.serving.realtime import monotonic_seconds

FRAMES_MAX: Final = 12
WORKERS: Final = (os.path.join("anyio", "to_thread.py"), os.path.join("starlette", "concurrency.py"))
OWN: Final = str(Path(__file__).parents[2]) + os.sep
POSTING: Final = os.path.join(OWN, "serving", "posting.py")
LIBRARIES: Final = (
    OWN,
    *{f"{sysconfig.get_path(name)}{os.sep}" for name in ("stdlib", "platstdlib", "purelib", "platlib")},
)


class Running:
    """A handler that runs now: the exceptions that were logged, and what may explain them."""

    def __init__(self, receiver: object, outer: "Running | None") -> None:
        self.logged: list[BaseException] = []
        self.notes: list[str] = []
        self.begun_seconds = monotonic_seconds()
        self.thread = get_ident()  # where the handler runs
        self._receiver = receiver
        self._outer = outer  # the handler whose call led to this one

    def is_for(self, receiver: object) -> bool:
        """Whether it, or a handler around it, handles a webhook of this receiver."""
        return self._receiver is receiver or (self._outer is not None and self._outer.is_for(receiver))


RUNNING: "Final[ContextVar[Running | None]]" = ContextVar("running_handler", default=None)
"""The handler that this code belongs to, also on threads and in tasks that it has started."""


class _Listener(logging.Handler):
    """Keeps the exceptions that are logged while a handler runs."""

    def emit(self, record: logging.LogRecord) -> None:
        running = RUNNING.get()
        if running is not None and isinstance(record.exc_info, tuple) and record.exc_info[1] is not None:
            running.logged.append(record.exc_info[1])


_LISTENER: Final = _Listener()
_listening: Final[list[Running]] = []  # while there is one, the root logger has the listener


@contextmanager
def running_handler(receiver: object) -> Iterator[Running]:
    """Run a shop's handler inside; what it logs as exceptions is kept."""
    running = Running(receiver, RUNNING.get())
    before = RUNNING.set(running)
    _listening.append(running)
    logging.root.addHandler(_LISTENER)  # which does nothing if it is there already
    try:
        yield running
    finally:
        _listening.remove(running)
        if not _listening:
            logging.root.removeHandler(_LISTENER)
        RUNNING.reset(before)


def logged(error: BaseException) -> None:
    """Keep an exception that the running handler has answered already."""
    running = RUNNING.get()
    if running is not None:
        running.logged.append(error)


def note(text: str) -> None:
    """Explain how the running handler is run, in case that it fails."""
    running = RUNNING.get()
    if running is not None:
        running.notes.append(text)


def handled_here() -> None:
    """Note that the running handler runs on this thread, such as that of an event loop."""
    running = RUNNING.get()
    if running is not None:
        running.thread = get_ident()


def place_in(thread: int) -> str:
    """Where the handler is that a thread runs."""
    frame = sys._current_frames().get(thread)
    frames = list(StackSummary.extract(walk_stack(frame)))[::-1] if frame is not None else []
    begin = max((index + 1 for index, each in enumerate(frames) if each.filename == POSTING), default=0)
    return _placed(_shortened(StackSummary.from_list(frames[begin:])))


def place_of(error: BaseException) -> str:
    """Where the code was when it was cancelled."""
    chain = _chain(error)
    stacks = [_shortened(TracebackException.from_exception(each).stack) for each in chain]
    own = [stack for stack in stacks if any(_is_own(frame.filename) for frame in stack)]
    return _placed(own[-1] if own else stacks[-1])


def _placed(stack: StackSummary) -> str:
    return f"{PLACED}\n" + "".join(stack.format()).rstrip() if stack else ""


def is_on_worker(error: BaseException) -> bool:
    """Whether the error came from a worker thread of an asynchronous framework, or from waiting for one."""
    return any(
        frame.filename.endswith(WORKERS)
        for each in _chain(error)
        for frame in TracebackException.from_exception(each).stack
    )


def _chain(error: BaseException) -> list[BaseException]:
    """An exception, and those that it came from."""
    chain = [error]
    while (before := _before(chain[-1])) is not None and all(before is not each for each in chain):
        chain.append(before)
    return chain


def _before(error: BaseException) -> BaseException | None:
    """What an exception came from."""
    if isinstance(error, BaseExceptionGroup):
        return error.exceptions[0]
    return error.__cause__ or error.__context__


def traceback_of(error: BaseException) -> str:
    """The traceback of an exception, cut to the shop's own code where there is any."""
    shown = TracebackException.from_exception(error, capture_locals=False)
    each: TracebackException | None = shown
    while each is not None:
        each.stack = _shortened(each.stack)
        each = each.__cause__ or (None if each.__suppress_context__ else each.__context__)
    return "".join(shown.format()).rstrip()


def _shortened(stack: StackSummary) -> StackSummary:
    """The shop's frames, with the last one wherever it is; or the last ones, if none is the shop's."""
    frames = [frame for frame in stack if not frame.filename.startswith(OWN)]
    own = [frame for frame in frames if _is_own(frame.filename)]
    shown = [*own, *([frames[-1]] if own and frames[-1] is not own[-1] else [])] if own else frames
    return StackSummary.from_list(shown[-FRAMES_MAX:])


def _is_own(filename: str) -> bool:
    return not filename.startswith((*LIBRARIES, "<"))
