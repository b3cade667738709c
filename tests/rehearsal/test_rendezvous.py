"""Two handlers meet, however slowly one of them gets to its call."""

from hashlib import pbkdf2_hmac
from threading import Lock, Thread

from pytest_payment_sandbox.rehearsal.rendezvous import Rendezvous


def test_a_handler_that_shows_no_progress_but_runs_is_awaited() -> None:
    """A thread in one long instruction looks like one that gets no processor: the other handler waits for it."""
    rendezvous, arrivals = Rendezvous(), []

    def handle() -> None:
        pbkdf2_hmac("sha256", b"", b"", 40_000)
        arrivals.append("second")
        rendezvous.meet()

    second = Thread(target=handle)
    second.start()
    rendezvous.meet()
    arrivals.append("first")
    second.join()
    assert arrivals == ["second", "first"]


def test_a_handler_that_waits_for_a_lock_is_not_awaited() -> None:
    """A handler that waits for a lock of the other one never arrives: the other one goes on."""
    rendezvous, lock = Rendezvous(), Lock()

    def handle() -> None:
        with lock:
            rendezvous.meet()

    second = Thread(target=handle)
    with lock:
        second.start()
        rendezvous.meet()
    second.join()
