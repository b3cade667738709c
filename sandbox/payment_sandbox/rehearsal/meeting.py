"""Lets two handlers of the same moment make their calls together, unless one of them is held up."""

import sys
from threading import Condition, get_ident
from typing import Final

LOOK_SECONDS: Final = 0.002
STILL_LOOKS: Final = 10  # in a row, in which no other thread has moved
LOOKS_MAX: Final = 75  # then something else of the process never rests

Places = dict[int, tuple[int, int]]
"""Where each thread is: its frame and its instruction."""


class Meeting:
    """Two handlers wait for each other at every call, until one of them stays away.

    One that comes first waits only while another thread of the process is on the move: a handler that has
    ended, or that waits for a lock which the first one holds, stands still.
    """

    def __init__(self) -> None:
        self._arrivals = Condition()
        self._count = 0
        self._is_over = False

    def meet(self) -> None:
        """Wait for the other handler."""
        with self._arrivals:
            if self._is_over:
                return
            self._count += 1
            count = self._count
            if not count % 2:
                self._arrivals.notify_all()
                return
            still = looks = 0
            places = _places()
            while self._count == count and not self._is_over:
                self._arrivals.wait(LOOK_SECONDS)
                before, places = places, _places()
                still, looks = (still + 1 if places == before else 0), looks + 1
                self._is_over = still >= STILL_LOOKS or looks >= LOOKS_MAX


def _places() -> Places:
    """Where all threads but this one are."""
    own = get_ident()
    return {
        thread: (id(frame), frame.f_lasti) for thread, frame in sys._current_frames().items() if thread != own
    }
