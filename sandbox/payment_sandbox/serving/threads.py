"""Threads that leave signals to the main thread."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Thread, current_thread, main_thread


def start(thread: Thread) -> None:
    """Start a thread that receives no SIGINT or SIGTERM, nor do the threads it starts.

    The system may deliver a signal to any thread that does not block it; the main thread would not wake up.
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
    """Run foreign code with signals unblocked, because processes that it starts must receive them."""
    if not hasattr(signal, "pthread_sigmask") or current_thread() is main_thread():
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT, signal.SIGTERM})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
