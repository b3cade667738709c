"""Stops hanging runs in a rehearsal: at first only the run, or if that fails, the process."""

import os
import sys
import sysconfig
from collections.abc import Callable, Sequence
from contextlib import suppress
from threading import Event, Thread, get_ident
from traceback import walk_stack
from typing import Final

import pytest

from payment_sandbox.serving.threads import start
from payment_sandbox.testing.shops.tracebacks import location_on_thread

UNWIND_SECONDS: Final = 3.0
CHECK_SECONDS: Final = 0.05
STANDARD_LIBRARY: Final = f"{sysconfig.get_path('stdlib')}{os.sep}"
PACKAGES: Final = f"{os.sep}site-packages{os.sep}"
PYTEST: Final = f"{os.sep}_pytest{os.sep}"
FRAME_PREFIX: Final = "  File "


def cancel_timeout(item: pytest.Item) -> None:
    """Cancel pytest-timeout's limit for a test, because its variations take longer."""
    cancel = getattr(item.ihook, "pytest_timeout_cancel_timer", None)
    if cancel is not None:
        cancel(item=item)


class RunWatchdog:
    """A watchdog on a separate thread, for the next run on the current thread.

    After the time limit, ``stop_soon`` makes the run stop at its next call to the sandbox; if the run makes
    no calls, ``abandon`` follows after ``unwind_seconds``, or after the usual time if that is longer. Both
    callbacks receive the position of the run in the code.
    """

    def __init__(
        self,
        seconds: float,
        stop_soon: Callable[[str], None],
        abandon: Callable[[str], None],
        unwind_seconds: float = 0,
    ) -> None:
        self._seconds = seconds
        self._unwind_seconds = max(UNWIND_SECONDS, unwind_seconds)
        self._stop_soon = stop_soon
        self._abandon = abandon
        self._is_over = Event()
        self._watched_thread_id = get_ident()
        self._thread = Thread(target=self._watch, name="rehearsal watch", daemon=True)

    def __enter__(self) -> "RunWatchdog":
        start(self._thread)
        return self

    def __exit__(self, *error: object) -> None:
        self._is_over.set()
        self._thread.join()

    def _watch(self) -> None:
        for seconds, give_up in ((self._seconds, self._stop_soon), (self._unwind_seconds, self._abandon)):
            self._is_over.wait(seconds)
            while not self._is_over.is_set() and _is_in_pytest(self._watched_thread_id):
                self._is_over.wait(CHECK_SECONDS)
            if self._is_over.is_set():
                return
            give_up(location_on_thread(self._watched_thread_id))


def last_frame(location: str) -> str:
    """Return the innermost frame of a stack trace in one line: ``File "shop.py", line 7, in look``."""
    frames = [line.strip() for line in location.splitlines() if line.startswith(FRAME_PREFIX)]
    return frames[-1] if frames else "unknown code"


def _is_in_pytest(thread_id: int) -> bool:
    """Whether a thread runs pytest's own code, such as the formatting of tracebacks, which ends."""
    frames = walk_stack(sys._current_frames().get(thread_id))
    files = (frame.f_code.co_filename for frame, _ in frames)
    inner = next((file for file in files if not file.startswith(STANDARD_LIBRARY) or PACKAGES in file), "")
    return PYTEST in inner


def end_process(item: pytest.Item, reports: Sequence[pytest.TestReport]) -> None:
    """Report a test whose thread cannot be stopped, and exit the process, as pytest-timeout does."""
    config, session = item.config, item.session
    with suppress(Exception):
        config.pluginmanager.getplugin("capturemanager").suspend_global_capture(in_=True)
    for report in reports:
        item.ihook.pytest_runtest_logreport(report=report)
    if not hasattr(config, "workerinput"):  # pytest-xdist replaces a worker that exits
        session._setupstate.stack.clear()  # the test still uses its fixtures
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
        with suppress(Exception):
            config.hook.pytest_sessionfinish(session=session, exitstatus=session.exitstatus)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(pytest.ExitCode.TESTS_FAILED)
