"""Threads that leave signals to the main thread, started on demand."""

import logging
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from queue import SimpleQueue
from threading import Thread, current_thread, main_thread
from typing import Final

from payment_sandbox.projects.locks import THREADS, ranked_lock

IDLE_THREADS_MAX: Final = 16

Job = Callable[[], None]

log = logging.getLogger(__name__)


def start(thread: Thread) -> None:
    """Start a thread that blocks SIGINT and SIGTERM, as do the threads that it starts.

    The system may deliver a signal to any thread that does not block it, without waking the main thread.
    """
    if not hasattr(signal, "pthread_sigmask"):  # no POSIX signals on this system
        thread.start()
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
    try:
        thread.start()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def signals_unblocked() -> Iterator[None]:
    """Unblock signals in the context, for foreign code whose child processes must receive them."""
    if not hasattr(signal, "pthread_sigmask") or current_thread() is main_thread():
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT, signal.SIGTERM})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class Threads:
    """Daemon threads, started on demand and reused; a stuck thread blocks no other job."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._lock = ranked_lock(THREADS)
        self._idle: list[SimpleQueue[Job | None]] = []
        self._stopped = False
        self._process = os.getpid()

    def run(self, job: Job) -> bool:
        """Run a job on an idle thread or a new one; return False after ``stop``."""
        with self._lock:
            if self._stopped:
                return False
            if self._process != os.getpid():  # after a fork, which copies no threads
                self._process, self._idle = os.getpid(), []
            inbox = self._idle.pop() if self._idle else None
        if inbox is not None:
            inbox.put(job)
            return True
        inbox = SimpleQueue()
        inbox.put(job)
        start(Thread(target=self._work, args=(inbox,), name=self._name, daemon=True))
        return True

    def stop(self) -> None:
        """End the idle threads, and stop accepting jobs."""
        with self._lock:
            self._stopped = True
            idle, self._idle = self._idle, []
        for inbox in idle:
            inbox.put(None)

    def _work(self, inbox: SimpleQueue[Job | None]) -> None:
        while (job := inbox.get()) is not None:
            try:
                job()
            except BaseException:
                log.exception("a job on a %s thread failed", self._name)
            del job  # so that a deleted project can be freed
            if not self._park(inbox):
                return

    def _park(self, inbox: SimpleQueue[Job | None]) -> bool:
        """Reserve an idle thread for the next job, unless enough threads are idle."""
        with self._lock:
            if self._stopped or len(self._idle) >= IDLE_THREADS_MAX:
                return False
            self._idle.append(inbox)
            return True
