"""Exceptions from a shop's handler, raised by the handler or logged by its framework."""

import logging
import os
import re
import sys
import sysconfig
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import chain
from pathlib import Path
from threading import Thread, current_thread, get_ident, main_thread
from traceback import FrameSummary, StackSummary, TracebackException, walk_stack
from types import CodeType, FrameType
from typing import Final
from weakref import WeakSet

from payment_sandbox.serving.courier import LOCATION_PREFIX
from payment_sandbox.serving.realtime import monotonic_seconds
from payment_sandbox.serving.sessions import causes

FRAMES_MAX: Final = 12
ERROR_STATUS: Final = 400
WORKER_MODULES: Final = (os.path.join("anyio", "to_thread.py"), os.path.join("starlette", "concurrency.py"))
WORKER_THREADS: Final = (
    os.path.join("anyio", "_backends", "_asyncio.py"),
    os.path.join("concurrent", "futures", "thread.py"),
)
FRAME_PATTERN: Final = re.compile(r'File "(?P<file>.+)", line (?P<line>\d+), in (?P<name>.+)')
SANDBOX_FOLDER: Final = str(Path(__file__).parents[2]) + os.sep
COURIER_MODULE: Final = os.path.join(SANDBOX_FOLDER, "serving", "courier.py")
LIBRARY_FOLDERS: Final = (
    SANDBOX_FOLDER,
    *{f"{sysconfig.get_path(name)}{os.sep}" for name in ("stdlib", "platstdlib", "purelib", "platlib")},
)


Frames = tuple[tuple[CodeType, int], ...]
"""Functions and line numbers, innermost first."""

CALLING_FRAMES: Final[ContextVar[Frames]] = ContextVar("calling_frames", default=())
"""The frames of a coroutine whose call is answered on another thread."""


def stack_frames() -> Iterator[tuple[CodeType, int]]:
    """Return the frames on this thread, and the frames of the coroutine that made the current call."""
    own = ((frame.f_code, number) for frame, number in walk_stack(sys._getframe(1)))
    return chain(own, CALLING_FRAMES.get())


class RunningHandler:
    """A running handler, with its logged exceptions, and notes that may explain them."""

    def __init__(self, receiver: object, outer: "RunningHandler | None", timeout_seconds: float) -> None:
        self.logged_exceptions: list[BaseException] = []
        self.notes: list[str] = []
        self.started_seconds = monotonic_seconds()
        self.timeout_seconds = timeout_seconds
        self.thread = get_ident()  # the thread of the handler
        self.threads_before = frozenset(threading.enumerate())
        self._receiver = receiver
        self._outer = outer  # the handler whose call caused this webhook

    def is_for(self, receiver: object) -> bool:
        """Return whether this or an outer handler handles a webhook for the receiver."""
        return self._receiver is receiver or (self._outer is not None and self._outer.is_for(receiver))


CURRENT_HANDLER: "Final[ContextVar[RunningHandler | None]]" = ContextVar("running_handler", default=None)
"""The handler that runs the current code, including on its threads and in its tasks."""


class _ExceptionRecorder(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        running = CURRENT_HANDLER.get()
        if running is not None and isinstance(record.exc_info, tuple) and record.exc_info[1] is not None:
            running.logged_exceptions.append(record.exc_info[1])


_RECORDER: Final = _ExceptionRecorder()
_recorded_handlers: Final[list[RunningHandler]] = []  # the recorder is attached while this has entries


@contextmanager
def running_handler(receiver: object, timeout_seconds: float) -> Iterator[RunningHandler]:
    """Run a shop's handler in the context, and record the exceptions that it logs."""
    running = RunningHandler(receiver, CURRENT_HANDLER.get(), timeout_seconds)
    before = CURRENT_HANDLER.set(running)
    _recorded_handlers.append(running)
    logging.root.addHandler(_RECORDER)  # no-op if already added
    try:
        yield running
    finally:
        _recorded_handlers.remove(running)
        if current_thread() is main_thread():  # so that no test code has run in the meantime
            _SHOP_THREADS.update(set(threading.enumerate()) - running.threads_before)
        if not _recorded_handlers:
            logging.root.removeHandler(_RECORDER)
        CURRENT_HANDLER.reset(before)


_SHOP_THREADS: "Final[WeakSet[Thread]]" = WeakSet()  # those that a shop's handler has started


def is_shop_thread() -> bool:
    """Return whether a shop's handler has started this thread, while the test waited for the handler."""
    is_new = any(
        running.thread == main_thread().ident and current_thread() not in running.threads_before
        for running in _recorded_handlers
    )
    return is_new or current_thread() in _SHOP_THREADS


def describe_late_failure(error: BaseException, status: int | None) -> str | None:
    """Record an exception that followed a handler's response; describe it, unless the response is an error.

    Frameworks reraise an error after their 500 response. After a success, the shop's work is incomplete.
    """
    running = CURRENT_HANDLER.get()
    if running is not None:
        running.logged_exceptions.append(error)
    return f"{type(error).__name__}: {error}" if status is not None and status < ERROR_STATUS else None


def add_note(text: str) -> None:
    """Add a note for the report on the running handler, in case it fails."""
    running = CURRENT_HANDLER.get()
    if running is not None:
        running.notes.append(text)


def set_handler_thread() -> None:
    """Record this thread, such as an event loop's, as the thread of the running handler."""
    running = CURRENT_HANDLER.get()
    if running is not None:
        running.thread = get_ident()


def location_on_thread(thread_id: int) -> str:
    """Locate the handler that a thread runs."""
    running = sys._current_frames()
    frames = _handler_frames(running.get(thread_id))
    if not _has_shop_code(frames):  # a framework may run it on a worker thread
        workers = (_handler_frames(frame) for frame in running.values() if _is_worker(frame))
        frames = next(filter(_has_shop_code, workers), frames)
    return _location(_shorten(StackSummary.from_list(frames)))


def _handler_frames(frame: FrameType | None) -> list[FrameSummary]:
    """Return the frames of a thread since it began to deliver a webhook, outermost first."""
    frames = list(StackSummary.extract(walk_stack(frame)))[::-1] if frame is not None else []
    begin = (index + 1 for index, each in enumerate(frames) if each.filename == COURIER_MODULE)
    return frames[max(begin, default=0) :]


def _has_shop_code(frames: list[FrameSummary]) -> bool:
    return any(is_shop_code(frame.filename) for frame in frames)


def _is_worker(frame: FrameType) -> bool:
    return any(each.f_code.co_filename.endswith(WORKER_THREADS) for each, _ in walk_stack(frame))


def describe_place(location: str) -> str:
    """Name the handler at a location, with the file and the line that it has reached."""
    frames = [match for match in FRAME_PATTERN.finditer(location) if is_shop_code(match["file"])]
    if not frames:
        return "payment-sandbox: a webhook handler:"
    first, last = frames[0], frames[-1]
    inner = f", in {last['name']}" if last["name"] != first["name"] else ""
    place = f"{last['file']}, line {last['line']}{inner}"
    return f"payment-sandbox: the webhook handler {first['name']} ({place}):"


def location_of_error(error: BaseException) -> str:
    """Locate the code that raised an error, such as a cancellation."""
    stacks = [_shorten(TracebackException.from_exception(each).stack) for each in causes(error)]
    own = [stack for stack in stacks if any(is_shop_code(frame.filename) for frame in stack)]
    return _location(own[0] if own else stacks[0])


def _location(stack: StackSummary) -> str:
    return f"{LOCATION_PREFIX}\n" + "".join(stack.format()).rstrip() if stack else ""


def is_on_worker(error: BaseException) -> bool:
    """Return whether an error came from a framework's worker thread, or was raised while waiting for one."""
    return any(
        frame.filename.endswith(WORKER_MODULES)
        for each in causes(error)
        for frame in TracebackException.from_exception(each).stack
    )


def traceback_of(error: BaseException) -> str:
    """Format the traceback of an exception, reduced to the shop's own code if it has any."""
    shown = TracebackException.from_exception(error, capture_locals=False)
    each: TracebackException | None = shown
    while each is not None:
        each.stack = _shorten(each.stack)
        each = each.__cause__ or (None if each.__suppress_context__ else each.__context__)
    return "".join(shown.format()).rstrip()


def _shorten(stack: StackSummary) -> StackSummary:
    """Return the shop's frames and the last frame; if the shop has no frames, return the last frames."""
    frames = [frame for frame in stack if not frame.filename.startswith(SANDBOX_FOLDER)]
    own = [frame for frame in frames if is_shop_code(frame.filename)]
    shown = [*own, *([frames[-1]] if own and frames[-1] is not own[-1] else [])] if own else frames
    return StackSummary.from_list(shown[-FRAMES_MAX:])


def is_shop_code(filename: str) -> bool:
    """Return whether a file belongs neither to the sandbox nor to another library."""
    return not filename.startswith((*LIBRARY_FOLDERS, "<"))
