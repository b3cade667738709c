"""Webhooks for a merchant's application in this process."""

import re
from collections.abc import Callable
from threading import current_thread, get_ident, main_thread
from typing import Any, Final

from payment_sandbox.orders.webhooks import TIMEOUT_SECONDS, Told, Undelivered, WebhookRequest
from payment_sandbox.serving.realtime import monotonic_seconds
from payment_sandbox.serving.threads import unmasked
from payment_sandbox.testing.calling import CALLING_LOOP, TimeLimit
from payment_sandbox.testing.shops.interfaces import shop_of
from payment_sandbox.testing.shops.posted import Posted
from payment_sandbox.testing.shops.tracebacks import (
    RUNNING,
    Running,
    is_on_worker,
    note,
    place_in,
    place_of,
    running_handler,
    traceback_of,
)
from payment_sandbox.testing.shops.watching import unwatch, watch

HOST: Final = re.compile(r"[\w.-]+(:\d+)?|\[[0-9A-Fa-f:.]+\](:\d+)?")
ELSEWHERE: Final = (
    "It ran on the thread {here}, not on the test's ({tests}): the call that led to this webhook was made on "
    "another thread, or over a socket. A connection or transaction of the test is not visible there. Make "
    "the call on the test's thread, with payment_sandbox.session or another client that needs no socket."
)

ON_WORKER: Final = (
    "Its framework ran it on a worker thread, as it does with handlers that are not async. There it does not "
    "see connections and transactions of the test, and goes on after it was given up."
)


class Receiver:
    """Delivers a project's webhooks to a merchant's application."""

    def __init__(self, application: Any, host: str | None = None, *, is_here: bool = False) -> None:
        """Prepare the application; ``host`` is the ``Host`` of every request, else that of its address.

        ``is_here`` says that it runs on the thread that waits for it.

        Raises:
            TypeError: it is neither a WSGI nor an ASGI application.
            ValueError: ``host`` is not a host name, with or without a port.
        """
        if host is not None and not (isinstance(host, str) and HOST.fullmatch(host)):
            raise ValueError(f"host is {host!r}, but must be a host name such as shop.example:8443")
        self._shop = shop_of(application)
        self.application = application
        watch(application)
        self._host = host
        self._is_here = is_here
        self._tests_thread = current_thread()
        self._running: dict[int, Running] = {}  # by the thread that waits for it
        self.outcome: BaseException | None = None

    def __call__(self, request: WebhookRequest, answered: Callable[[int], None]) -> Told:
        """Deliver one webhook, and report its status.

        Raises:
            Undelivered: the handler failed.
        """
        here = get_ident()
        outer = self._running.get(here)  # a handler whose call led to this webhook
        try:
            with unmasked(), running_handler(self) as running:
                self._running[here] = running
                if (
                    self._is_here
                    and CALLING_LOOP.get() is None
                    and current_thread() is not self._tests_thread
                ):
                    note(ELSEWHERE.format(here=current_thread().name, tests=self._tests_thread.name))
                return self._told(running, self._posted(request), answered)
        finally:
            del self._running[here]
            if outer is not None:
                self._running[here] = outer

    def place(self, thread: int) -> str | None:
        """Where the handler is that a thread waits for; None if it waits for none."""
        running = self._running.get(thread)
        return None if running is None else self._explained(running, place_in(running.thread))

    def _posted(self, request: WebhookRequest) -> Posted:
        host = [("Host", self._host)] if self._host is not None else []
        return Posted(request.url, [*request.headers.items(), *host], request.body)

    def _told(self, running: Running, posted: Posted, answered: Callable[[int], None]) -> Told:
        try:
            told = self._shop.answer(posted, answered)
        except TimeLimit as late:
            problem = f"no answer within {TIMEOUT_SECONDS:g} seconds"
            place = place_of(late) if late.__cause__ is not None else place_in(running.thread)
            raise self._undelivered(running, problem, late, place) from late
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt) and current_thread() is main_thread():
                raise
            if _is_outcome(error):
                self.outcome = error
            problem = f"{type(error).__name__}: {error}"
            raise self._undelivered(running, problem, error, traceback_of(error)) from error
        if not running.logged:
            return told
        logged = running.logged[-1]
        return told._replace(traceback=self._explained(running, traceback_of(logged), logged))

    def _undelivered(
        self, running: Running, problem: str, error: BaseException, traceback: str
    ) -> Undelivered:
        failed = Undelivered(problem)
        failed.traceback = self._explained(running, traceback, error)
        return failed

    def _explained(self, running: Running, traceback: str, error: BaseException | None = None) -> str:
        """A traceback, with what may explain it: on which thread or event loop the handler ran."""
        notes = list(running.notes)
        if error is not None and is_on_worker(error):
            notes.append(ON_WORKER)
        return "\n".join(filter(None, (traceback, *notes)))

    def may_have_called(self) -> bool:
        """Whether the calling code may belong to a webhook handler, which must not wait for webhooks.

        The test's own thread does not, unless it runs the handler itself. A handler that has timed out no
        longer counts.
        """
        here = get_ident()
        running = RUNNING.get()
        if running is not None and running.is_for(self):
            return True
        others = self._running.copy()
        if here in others or current_thread() is self._tests_thread:
            return here in others
        if CALLING_LOOP.get() is not None:
            return False
        latest = monotonic_seconds() - TIMEOUT_SECONDS
        return any(other.begun_seconds > latest for other in others.values())

    def raise_outcome(self) -> None:
        """Raise what a handler raised for the test, such as ``pytest.fail`` or a time limit of the test."""
        outcome, self.outcome = self.outcome, None
        if outcome is not None:
            raise outcome

    def close(self) -> None:
        """Close the event loops that it made."""
        unwatch(self.application)
        self._shop.close()


def _is_outcome(error: BaseException) -> bool:
    """Whether an exception is one of pytest's outcomes, which are for the test."""
    return any(kind.__module__ == "_pytest.outcomes" for kind in type(error).__mro__)
