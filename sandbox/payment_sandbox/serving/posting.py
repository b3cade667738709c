"""One POST of a webhook: its timeout and its reply."""

import socket
import ssl
from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from contextlib import closing
from functools import cache, lru_cache, partial
from http.client import HTTPConnection, HTTPException, HTTPResponse, IncompleteRead
from io import BufferedReader
from threading import Event, Lock, Thread, current_thread, get_ident, main_thread
from typing import TYPE_CHECKING, Final, Protocol
from urllib.parse import SplitResult, urlsplit

from payment_sandbox.loading import lazy
from payment_sandbox.orders.webhooks import (
    ATTEMPT_BODY_BYTES,
    LEADS_TO,
    THEN_FAILED,
    ReceiverAnswer,
    Reply,
    Send,
    Undelivered,
    WebhookRequest,
    no_answer_within,
)
from payment_sandbox.serving.binding import DEFAULT_PORTS, port_of
from payment_sandbox.serving.realtime import monotonic_seconds
from payment_sandbox.serving.sessions import NOT_TRUSTED, Trust, describe_failure
from payment_sandbox.serving.threads import start

if TYPE_CHECKING:
    import requests
    from _typeshed import WriteableBuffer

    from payment_sandbox.serving import tls
else:
    requests = lazy("requests")
    tls = lazy("payment_sandbox.serving.tls")

ANSWER_BYTES_MAX: Final = 1 << 18  # the bytes read from an answer; the record stores fewer
TRUST_ADVICE: Final = "; serve --webhook-ca FILE trusts the certificates in a file"


def post_over_network(
    request: WebhookRequest,
    on_status: Callable[[int], None],
    timeout_seconds: float,
    trusted: Trust | None = None,
) -> ReceiverAnswer:
    """POST the request without redirects, and without proxies or credentials from the environment.

    Raises:
        Undelivered: the response is missing or incomplete.
    """
    until_seconds = monotonic_seconds() + timeout_seconds
    try:
        prepared, parts = _prepare(request.url)
        with closing(_connect(parts, trusted, timeout_seconds)) as connected:
            http = HTTPConnection(str(parts.hostname), port_of(parts))
            http.default_port, http.sock = DEFAULT_PORTS[parts.scheme], connected
            http.request("POST", prepared.path_url, request.body, {**prepared.headers, **request.headers})
            with HTTPResponse(connected, method="POST") as response:
                response.fp = BufferedReader(_LimitedStream(connected, until_seconds))
                response.begin()
                on_status(response.status)
                body = response.read(ATTEMPT_BODY_BYTES)
                if response.length and len(body) < ATTEMPT_BODY_BYTES:
                    raise IncompleteRead(body, response.length)
                return ReceiverAnswer(body, location=response.headers.get("Location"))
    except (requests.RequestException, HTTPException, OSError, ValueError) as error:
        sentence = describe_failure(error, request.url)
        advice = TRUST_ADVICE if NOT_TRUSTED in sentence else ""
        raise Undelivered(f"{sentence}{advice}") from error


@lru_cache(maxsize=1024)
def _prepare(url: str) -> "tuple[requests.PreparedRequest, SplitResult]":
    """Prepare a request to an address; its headers are the credentials in the address, if any."""
    if urlsplit(url).port == 0:  # requests would drop it
        raise ValueError("nothing can listen on port 0")
    prepared = requests.Request("POST", url).prepare()
    prepared.headers.pop("Content-Length", None)
    return prepared, urlsplit(prepared.url or "")


def _connect(parts: SplitResult, trusted: Trust | None, timeout_seconds: float) -> socket.socket:
    """Connect to the receiver of an address, including the whole TLS handshake."""
    host = parts.hostname or ""
    is_below = host != "localhost" and f".{host.removesuffix('.')}".endswith(".localhost")
    address = "127.0.0.1" if is_below else host  # not every resolver knows shop.localhost and localhost.
    connected = socket.create_connection((address, port_of(parts)), timeout_seconds)
    if parts.scheme != "https":
        return connected
    context = _default_context() if trusted is None else trusted.tls
    context.check_hostname = context.verify_mode is not ssl.CERT_NONE  # older versions of urllib3 do it
    try:
        return context.wrap_socket(connected, server_hostname=parts.hostname)
    except BaseException:
        connected.close()
        raise


@cache
def _default_context() -> ssl.SSLContext:
    return tls.trusting_context()


class _LimitedStream(socket.SocketIO):
    """An answer of limited length and duration, whose parts may all trickle, or never end."""

    def __init__(self, connected: socket.socket, until_seconds: float) -> None:
        super().__init__(connected, "r")
        self._connected = connected
        self._until_seconds = until_seconds
        self._remaining_bytes = ANSWER_BYTES_MAX

    def readinto(self, buffer: "WriteableBuffer") -> int | None:
        """Read into a buffer.

        Raises:
            TimeoutError: the answer takes too long.
            OSError: the answer is too long.
        """
        self._connected.settimeout(max(self._until_seconds - monotonic_seconds(), 0.001))  # 0: not to block
        count = super().readinto(buffer)
        self._remaining_bytes -= count or 0
        if self._remaining_bytes < 0:
            raise OSError(f"the answer exceeds {ANSWER_BYTES_MAX} bytes")
        return count


REDIRECTS: Final = (301, 302, 303, 307, 308)
GRACE_SECONDS: Final = 0.2  # the time for an event loop to cancel a late handler

LOCATION_PREFIX: Final = "Location of the handler:"


class ProcessReceiver(Protocol):
    """An application in this process that receives webhooks."""

    def __call__(
        self, request: WebhookRequest, on_status: Callable[[int], None], timeout_seconds: float, /
    ) -> ReceiverAnswer:
        """Deliver one webhook, and report the response's status as soon as it is known."""
        ...

    def locate_handler(self, thread_id: int) -> str | None:
        """Locate the handler that a thread is waiting for, if any."""
        ...

    def report_late_handler(self, location: str, timeout_seconds: float) -> None:
        """Report a handler that has not answered in time, and whose call still waits for it."""
        ...


class Posting:
    """One POST in flight. The status line counts as the answer, even if the body fails."""

    def __init__(
        self,
        request: WebhookRequest,
        send: Send,
        timeout_seconds: float,
        receiver: ProcessReceiver | None = None,
    ) -> None:
        """Prepare a POST; with a ``receiver``, a timeout's reply says where its handler was."""
        self._request = request
        self._send = send
        self._timeout_seconds = timeout_seconds
        self._receiver = receiver
        self._answer: Future[Reply] = Future()
        self._late_at_seconds = monotonic_seconds() + timeout_seconds
        self._thread = get_ident()
        self._status: int | None = None
        self._warning: str | None = None
        self._late_location: str | None = None  # location of the handler at the timeout

    def run(self) -> None:
        """Send the request, and record the result, however the receiver behaves."""
        self._thread = get_ident()
        try:
            answer = self._send(self._request, self._record_status, self._timeout_seconds)
        except BaseException as error:  # handlers may raise pytest outcomes or SystemExit
            if isinstance(error, KeyboardInterrupt) and current_thread() is main_thread():
                raise
            self._answer.set_result(self._convert_failure(error))
            return
        if answer.failure is not None:
            self._warning = f"answered {self._status}{THEN_FAILED}{answer.failure}"
        elif self._warning is not None and answer.location:
            self._warning = f"{self._warning}: {LEADS_TO}{answer.location}"
        body = answer.body.decode(errors="replace")
        self._answer.set_result(self._create_reply(body, traceback=answer.traceback))

    def run_on_waiting_thread(self) -> None:
        """Send the request on this thread, while another one watches the time.

        The time of an inner webhook's handler does not count towards the timeout of the outer one.
        """
        thread, started_seconds = get_ident(), monotonic_seconds()
        outer = _RUNNING.get(thread)
        _RUNNING[thread] = self
        _watch()
        try:
            self.run()
        finally:
            del _RUNNING[thread]
            if outer is not None:
                outer._late_at_seconds += monotonic_seconds() - started_seconds
                _RUNNING[thread] = outer

    def wait(self) -> Reply:
        """Return the reply; a missing or late reply becomes a timeout error."""
        remaining_seconds = self._late_at_seconds - monotonic_seconds()
        try:
            if remaining_seconds < 0:
                raise FutureTimeout
            return self._answer.result(remaining_seconds)
        except FutureTimeout:
            traceback = self._location_at_timeout()
            self._report_late_handler(traceback)
            if self._status is not None:
                self._warning = "the body did not arrive in time"
                return self._create_reply(traceback=traceback)
            return self._create_reply(error=no_answer_within(self._timeout_seconds), traceback=traceback)

    def report_if_late(self) -> None:
        """Report a handler that is late, for its reply and for whoever waits for the test."""
        is_late = monotonic_seconds() >= self._late_at_seconds + GRACE_SECONDS
        if is_late and self._late_location is None and self._status is None:
            self._report_late_handler(self._location())

    def _report_late_handler(self, location: str | None) -> None:
        if self._receiver is not None and self._late_location is None and self._status is None:
            self._late_location = location or ""
            self._receiver.report_late_handler(self._late_location, self._timeout_seconds)

    def _location_at_timeout(self) -> str | None:
        """Return the location of a late handler at its timeout, if known."""
        if not self._answer.done():
            return self._location()
        traceback = self._answer.result().traceback
        if traceback is not None and traceback.startswith(LOCATION_PREFIX):
            return traceback  # reported by the event loop that cancelled the handler
        return self._late_location or traceback

    def _location(self) -> str | None:
        return self._receiver.locate_handler(self._thread) if self._receiver is not None else None

    def _convert_failure(self, error: BaseException) -> Reply:
        problem, traceback = f"{type(error).__name__}: {error}", None
        if isinstance(error, Undelivered):
            problem, traceback = str(error), error.traceback
        if self._status is None:
            if monotonic_seconds() >= self._late_at_seconds:  # the socket timed out first
                problem = no_answer_within(self._timeout_seconds)
            return self._create_reply(error=problem, traceback=traceback)
        self._warning = f"the body is incomplete: {problem.partition(':')[0]}"
        return self._create_reply(traceback=traceback)

    def _record_status(self, status: int) -> None:
        if monotonic_seconds() <= self._late_at_seconds:
            self._status = status
            self._warning = "redirects are not followed" if status in REDIRECTS else None

    def _create_reply(self, body: str = "", error: str | None = None, traceback: str | None = None) -> Reply:
        remaining_seconds = self._late_at_seconds - monotonic_seconds()
        duration_ms = (self._timeout_seconds - remaining_seconds) * 1000
        status = self._status if error is None else None
        return Reply(duration_ms, status, body, error, self._warning, traceback)


_RUNNING: Final[dict[int, Posting]] = {}  # the innermost handler of each waiting thread
_WATCH_LOCK: Final = Lock()
_NEVER: Final = Event()
_watching: Thread | None = None


def _watch() -> None:
    """Let a thread look for late handlers while any of them runs; few webhooks are the first to start it."""
    global _watching  # noqa: PLW0603 (one thread for all handlers)
    with _WATCH_LOCK:
        if _watching is None or not _watching.is_alive():  # a fork copies no threads
            _watching = Thread(target=_report_late_handlers, name="overdue", daemon=True)
            start(_watching)


def _report_late_handlers() -> None:
    global _watching  # noqa: PLW0603 (see above)
    while not _NEVER.wait(GRACE_SECONDS):
        with _WATCH_LOCK:
            if not _RUNNING:
                _watching = None
                return
        for posting in list(_RUNNING.values()):
            posting.report_if_late()
            del posting  # so that a deleted project can be freed


def webhook_poster(trusted: Trust | None = None) -> Callable[[WebhookRequest, float], Reply]:
    """Return a function that sends a webhook over the network, with a timeout."""

    def post(request: WebhookRequest, timeout_seconds: float) -> Reply:
        posting = Posting(request, partial(post_over_network, trusted=trusted), timeout_seconds)
        start(Thread(target=posting.run, name="posting", daemon=True))
        return posting.wait()

    return post
