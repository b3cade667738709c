"""One POST of a webhook: its time limit, and what came back."""

from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from functools import partial
from threading import Thread, current_thread, main_thread
from typing import Final

from payment_sandbox.orders.webhooks import TIMEOUT_SECONDS, Reply, Send, Undelivered, WebhookRequest
from payment_sandbox.serving.realtime import monotonic_seconds
from payment_sandbox.serving.sessions import Trust
from payment_sandbox.serving.threads import start
from payment_sandbox.serving.wire import Wire, over_the_wire

REDIRECTS: Final = (301, 302, 303, 307, 308)
NO_ANSWER: Final = f"no answer within {TIMEOUT_SECONDS:g} seconds"


class Posting:
    """One POST in flight: its status line counts, even if the body fails."""

    def __init__(self, request: WebhookRequest, send: Send) -> None:
        self._request = request
        self._send = send
        self._wire = Wire()
        self._answer: Future[Reply] = Future()
        self._begun_seconds = monotonic_seconds()
        self._status: int | None = None
        self._warning: str | None = None

    def run(self) -> None:
        """Send the request; whatever the receiver does, the result is recorded."""
        try:
            with self._wire.used():
                told = self._send(self._request, self._answered)
        except BaseException as error:  # a handler may raise pytest's outcomes, or SystemExit
            if isinstance(error, KeyboardInterrupt) and current_thread() is main_thread():
                raise
            self._answer.set_result(self._failed(error))
            return
        if self._warning is not None and told.location:
            self._warning = f"{self._warning}: this one leads to {told.location}"
        body = told.body.decode(errors="replace")
        self._answer.set_result(self._reply(body, traceback=told.traceback))

    def wait(self) -> Reply:
        """Return the reply, or a timeout error, also for a reply that came too late."""
        left_seconds = self._begun_seconds + TIMEOUT_SECONDS - monotonic_seconds()
        try:
            if left_seconds < 0:
                raise FutureTimeout
            return self._answer.result(left_seconds)
        except FutureTimeout:
            self._wire.cut()
            traceback = self._answer.result().traceback if self._answer.done() else None
            if self._status is not None:
                self._warning = "the body did not arrive in time"
                return self._reply(traceback=traceback)
            return self._reply(error=NO_ANSWER, traceback=traceback)

    def _failed(self, error: BaseException) -> Reply:
        problem, traceback = f"{type(error).__name__}: {error}", None
        if isinstance(error, Undelivered):
            problem, traceback = str(error), error.traceback
        if self._status is None:
            if monotonic_seconds() - self._begun_seconds >= TIMEOUT_SECONDS:  # the socket's limit came first
                problem = NO_ANSWER
            return self._reply(error=problem, traceback=traceback)
        self._warning = f"the body is incomplete: {problem.partition(':')[0]}"
        return self._reply(traceback=traceback)

    def _answered(self, status: int) -> None:
        if monotonic_seconds() - self._begun_seconds > TIMEOUT_SECONDS:
            return
        self._status = status
        self._warning = "redirects are not followed" if status in REDIRECTS else None

    def _reply(self, body: str = "", error: str | None = None, traceback: str | None = None) -> Reply:
        duration_ms = (monotonic_seconds() - self._begun_seconds) * 1000
        status = self._status if error is None else None
        return Reply(duration_ms, status, body, error, self._warning, traceback)


def poster(trusted: Trust | None = None) -> Callable[[WebhookRequest], Reply]:
    """Send webhooks over the network; returns what came back within five seconds, or why nothing did."""

    def post(request: WebhookRequest) -> Reply:
        posting = Posting(request, partial(over_the_wire, trusted=trusted))
        start(Thread(target=posting.run, name="posting", daemon=True))
        return posting.wait()

    return post
