"""Threads that leave signals to the main thread."""

import signal
from threading import Thread


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
