"""Threads that leave signals to the main thread."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Thread, current_thread, main_thread


def start(thread: Thread) -> None:
    """Start a thread in which, and in whose own threads, no Ctrl-C arrives.

    A system may deliver it to any thread that does not block it, and the waiting main thread would sleep on.
    """
    if not hasattr(signal, "pthread_sigmask"):  # a system without POSIX signals
        thread.start()
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
    try:
        thread.start()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def unmasked() -> Iterator[None]:
    """Run somebody else's code: the processes that it starts must hear signals."""
    if not hasattr(signal, "pthread_sigmask") or current_thread() is main_thread():
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT, signal.SIGTERM})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
