"""Lets two handlers of a shop run at the same moment, also on a busy machine."""

import sys
from contextlib import suppress
from pathlib import Path
from threading import Condition, current_thread, get_ident
from threading import enumerate as all_threads
from typing import Final

CHECK_SECONDS: Final = 0.002
IDLE_CHECKS: Final = 10  # consecutive checks in which no other thread made progress
CHECKS_MAX: Final = 1000  # after this many checks, another thread is assumed to be busy forever

ThreadPositions = dict[int, tuple[int, int]]
"""The position of each thread: its frame and instruction."""


class Rendezvous:
    """Makes two handlers wait for each other at every call, until one of them fails to arrive.

    The first handler waits only while another thread of the process is running: a handler that has ended,
    or that waits for a lock held by the first handler, will never arrive.
    """

    def __init__(self) -> None:
        self._arrivals = Condition()
        self._count = 0
        self._is_over = False

    def meet(self) -> None:
        """Wait until the other handler arrives, or is blocked."""
        with self._arrivals:
            if self._is_over:
                return
            self._count += 1
            count = self._count
            if not count % 2:
                self._arrivals.notify_all()
                return
            idle_checks = checks = 0
            positions = thread_positions()
            while self._count == count and not self._is_over:
                self._arrivals.wait(CHECK_SECONDS)
                before, positions = positions, thread_positions()
                is_idle = positions == before and not _waits_for_processor()
                idle_checks, checks = (idle_checks + 1 if is_idle else 0), checks + 1
                self._is_over = idle_checks >= IDLE_CHECKS or checks >= CHECKS_MAX


def thread_positions() -> ThreadPositions:
    """Return the positions of all other threads."""
    own = get_ident()
    return {
        thread: (id(frame), frame.f_lasti) for thread, frame in sys._current_frames().items() if thread != own
    }


def _waits_for_processor() -> bool:
    """Whether another thread starts or is ready to run, though it may get no processor."""
    for thread in all_threads():
        if thread.native_id is None:
            return True
        if thread is not current_thread():
            with suppress(OSError):  # the thread has ended, or the system is not Linux
                state = Path(f"/proc/self/task/{thread.native_id}/stat").read_text().rpartition(") ")[2]
                if not state.startswith("S"):
                    return True
    return False
