"""One POST of a webhook: its timeout and its reply."""

import logging
import os
import socket
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from contextlib import contextmanager, nullcontext, suppress
from functools import cache, partial
from http.client import HTTPResponse
from io import BufferedReader, RawIOBase
from threading import Condition, Lock, Thread, current_thread, get_ident, local, main_thread
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from payment_sandbox.loading import LOADING
from payment_sandbox.orders.webhooks import (
    ATTEMPT_BODY_BYTES,
    TIMEOUT_SECONDS,
    ReceiverAnswer,
    Reply,
    Send,
    Undelivered,
    WebhookRequest,
)
from payment_sandbox.serving.binding import port_of
from payment_sandbox.serving.realtime import monotonic_seconds
from payment_sandbox.serving.sessions import NOT_TRUSTED, Trust, describe_failure, direct_session, trust
from payment_sandbox.serving.threads import start

if TYPE_CHECKING:
    from collections.abc import Iterator

    import requests
    from _typeshed import WriteableBuffer

ANSWER_BYTES_MAX: Final = 1 << 18  # the bytes read from an answer; the record stores fewer
TRUST_ADVICE: Final = "; serve --webhook-ca FILE trusts the certificates in a file"

_thread_state = local()  # the connection of this thread's request


class CuttableConnection:
    """The connection of one request, which can be cut: a socket timeout never ends a trickling answer."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._socket: socket.socket | None = None
        self._is_cut = False

    @contextmanager
    def use(self) -> Iterator[None]:
        """Use this connection for this thread's requests within the context."""
        _thread_state.connection = self
        try:
            yield
        finally:
            _thread_state.connection = None
            with self._lock:
                if self._socket is not None:
                    self._socket.close()
                self._socket = None

    def record_socket(self, opened: socket.socket) -> None:
        """Record a new socket as a duplicate descriptor, which stays open when the socket is closed."""
        with self._lock:
            if self._socket is not None:
                self._socket.close()
            self._socket = opened.dup()
            if self._is_cut:
                self._shut_down()

    def cut(self) -> None:
        """Shut the connection down, so that the waiting thread gets an error."""
        with self._lock:
            self._is_cut = True
            self._shut_down()

    def _shut_down(self) -> None:
        if self._socket is not None:
            with suppress(OSError):  # already closed by the receiver
                self._socket.shutdown(socket.SHUT_RDWR)


def post_over_network(
    request: WebhookRequest, on_status: Callable[[int], None], trusted: Trust | None = None
) -> ReceiverAnswer:
    """POST the request without redirects, and without proxies or credentials from the environment.

    Raises:
        Undelivered: the response is missing or incomplete.
    """
    with LOADING:
        import requests  # deferred, for a faster start
        import urllib3

    try:
        return _post(request, on_status, trusted)
    except (requests.RequestException, urllib3.exceptions.HTTPError, OSError) as error:
        sentence = describe_failure(error, request.url)
        advice = TRUST_ADVICE if NOT_TRUSTED in sentence else ""
        raise Undelivered(f"{sentence}{advice}") from error


def _post(request: WebhookRequest, on_status: Callable[[int], None], trusted: Trust | None) -> ReceiverAnswer:
    url, headers = _resolve_locally(request)
    with _session(trusted) as session:
        session.headers.clear()
        with session.post(
            url,
            data=request.body,
            headers=headers,
            timeout=TIMEOUT_SECONDS,
            allow_redirects=False,
            stream=True,
        ) as response:
            on_status(response.status_code)
            response.raw.enforce_content_length = True  # urllib3 1 accepts truncated bodies by default
            body = b""
            for piece in response.raw.stream(ATTEMPT_BODY_BYTES, decode_content=True):
                body += piece
                if len(body) >= ATTEMPT_BODY_BYTES:
                    break
            return ReceiverAnswer(body[:ATTEMPT_BODY_BYTES], location=response.headers.get("Location"))


def _resolve_locally(request: WebhookRequest) -> tuple[str, Mapping[str, str]]:
    """Send ``shop.localhost`` and ``localhost.`` to this machine; not every resolver knows these names."""
    parts = urlsplit(request.url)
    host = parts.hostname or ""
    is_name = host != "localhost" and f".{host.removesuffix('.')}".endswith(".localhost")
    if parts.scheme != "http" or not is_name:
        return request.url, request.headers
    there = parts._replace(netloc=f"127.0.0.1:{port_of(parts)}")
    return there.geturl(), {**request.headers, "Host": parts.netloc.rpartition("@")[2]}


def warm_up() -> None:
    """Import the modules for the first webhook; imports on many threads at once would delay requests."""
    _session().close()


def _session(trusted: Trust | None = None) -> "requests.Session":
    """Create a session whose connections can be cut."""
    with LOADING:
        import requests  # deferred; its submodules come later, to avoid a race

    session, adapter = direct_session(), requests.adapters.HTTPAdapter()
    if trusted is not None:
        trust(session, trusted, adapter)
    adapter.poolmanager.pool_classes_by_scheme = _pools()
    for scheme in ("http://", "https://"):
        session.mount(scheme, adapter)
    return session


@cache
def _pools() -> dict[str, type]:
    """Return urllib3 connection pools that report each socket to the thread's ``CuttableConnection``."""
    with LOADING:
        from urllib3.connection import HTTPConnection, HTTPSConnection  # deferred, for a faster start
        from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool

    class PlainConnection(HTTPConnection):
        response_class = _LimitedResponse

        def _new_conn(self) -> socket.socket:
            return _report_socket(super()._new_conn())

    class EncryptedConnection(HTTPSConnection):
        response_class = _LimitedResponse

        def _new_conn(self) -> socket.socket:  # called before the handshake, which may trickle, too
            return _report_socket(super()._new_conn())

    class PlainPool(HTTPConnectionPool):
        ConnectionCls = PlainConnection

    class EncryptedPool(HTTPSConnectionPool):
        ConnectionCls = EncryptedConnection

    return {"http": PlainPool, "https": EncryptedPool}


class _LimitedStream(RawIOBase):
    """A limited input stream, because parsing an endless answer would keep the processor busy."""

    def __init__(self, source: RawIOBase) -> None:
        super().__init__()
        self._source = source
        self._remaining_bytes = ANSWER_BYTES_MAX

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: "WriteableBuffer") -> int | None:
        """Read into a buffer.

        Raises:
            OSError: the answer is too long.
        """
        count: int | None = self._source.readinto(buffer)
        self._remaining_bytes -= count or 0
        if self._remaining_bytes < 0:
            raise OSError(f"the answer exceeds {ANSWER_BYTES_MAX} bytes")
        return count

    def close(self) -> None:
        """Close the underlying stream."""
        self._source.close()
        super().close()


class _LimitedResponse(HTTPResponse):
    """An answer of limited length, for http and https."""

    def __init__(self, sock: socket.socket, *arguments: Any, **options: Any) -> None:
        super().__init__(sock, *arguments, **options)
        self.fp = BufferedReader(_LimitedStream(self.fp.detach()))


def _report_socket(opened: socket.socket) -> socket.socket:
    connection: CuttableConnection | None = getattr(_thread_state, "connection", None)
    if connection is not None:
        connection.record_socket(opened)
    return opened


REDIRECTS: Final = (301, 302, 303, 307, 308)
NO_ANSWER: Final = f"no answer within {TIMEOUT_SECONDS:g} seconds"
LATE_HANDLER_WARNING: Final = (
    f"{NO_ANSWER} from a webhook handler; the call that caused the webhook waits for the handler; "
    "pytest-timeout stops tests that hang. %s"
)
GRACE_SECONDS: Final = 0.2  # the time for an event loop to cancel a late handler

LOCATION_PREFIX: Final = "Location of the handler:"
LocateHandler = Callable[[int], str | None]
"""Locates the handler that a thread is waiting for."""

log = logging.getLogger(__name__)


class Posting:
    """One POST in flight. The status line counts as the answer, even if the body fails."""

    def __init__(self, request: WebhookRequest, send: Send, locate: LocateHandler | None = None) -> None:
        """Prepare a POST; with ``locate``, a timeout's reply says where the in-process handler was."""
        self._request = request
        self._send = send
        self._locate = locate
        self._connection = CuttableConnection()
        self._answer: Future[Reply] = Future()
        self.sent_seconds = self._started_seconds = monotonic_seconds()
        self._thread = get_ident()
        self._status: int | None = None
        self._warning: str | None = None
        self._logged_location: str | None = None  # location of the handler at the timeout

    def run(self) -> None:
        """Send the request, and record the result, however the receiver behaves."""
        self._thread = get_ident()
        try:
            with self._connection.use():
                answer = self._send(self._request, self._record_status)
        except BaseException as error:  # handlers may raise pytest outcomes or SystemExit
            if isinstance(error, KeyboardInterrupt) and current_thread() is main_thread():
                raise
            self._answer.set_result(self._convert_failure(error))
            return
        if self._warning is not None and answer.location:
            self._warning = f"{self._warning}: this one leads to {answer.location}"
        body = answer.body.decode(errors="replace")
        self._answer.set_result(self._create_reply(body, traceback=answer.traceback))

    def run_on_waiting_thread(self) -> None:
        """Send the request on the waiting thread; lateness is still detected."""
        with _LATE_HANDLERS.watch(self) if self._locate is not None else nullcontext():
            self.run()

    def wait(self) -> Reply:
        """Return the reply; a missing or late reply becomes a timeout error."""
        remaining_seconds = self.late_at_seconds - monotonic_seconds()
        try:
            if remaining_seconds < 0:
                raise FutureTimeout
            return self._answer.result(remaining_seconds)
        except FutureTimeout:
            self._connection.cut()
            traceback = self._late_location()
            if self._status is not None:
                self._warning = "the body did not arrive in time"
                return self._create_reply(traceback=traceback)
            return self._create_reply(error=NO_ANSWER, traceback=traceback)

    # The timeout, for ``_LateHandlers``

    @property
    def late_at_seconds(self) -> float:
        """The monotonic time of the timeout."""
        return self._started_seconds + TIMEOUT_SECONDS

    @property
    def is_lateness_logged(self) -> bool:
        """Whether the lateness has been logged."""
        return self._logged_location is not None

    def log_lateness(self) -> None:
        """Locate the late handler, for the reply and for the log of a hanging test."""
        self._logged_location = self._location() or ""
        log.warning(LATE_HANDLER_WARNING, self._logged_location)

    def pause(self, seconds: float) -> None:
        """Extend the timeout by the duration of a nested webhook's handler."""
        self._started_seconds += seconds

    def _late_location(self) -> str | None:
        """Return the location of a late handler at its timeout, if known."""
        if not self._answer.done():
            return self._location()
        traceback = self._answer.result().traceback
        is_location = traceback is not None and traceback.startswith(
            LOCATION_PREFIX
        )  # reported by the event loop that cancelled the handler
        return traceback if is_location else self._logged_location or traceback

    def _location(self) -> str | None:
        return self._locate(self._thread) if self._locate is not None else None

    def _convert_failure(self, error: BaseException) -> Reply:
        problem, traceback = f"{type(error).__name__}: {error}", None
        if isinstance(error, Undelivered):
            problem, traceback = str(error), error.traceback
        if self._status is None:
            if monotonic_seconds() >= self.late_at_seconds:  # the socket timed out first
                problem = NO_ANSWER
            return self._create_reply(error=problem, traceback=traceback)
        self._warning = f"the body is incomplete: {problem.partition(':')[0]}"
        return self._create_reply(traceback=traceback)

    def _record_status(self, status: int) -> None:
        if monotonic_seconds() > self.late_at_seconds:
            return
        self._status = status
        self._warning = "redirects are not followed" if status in REDIRECTS else None

    def _create_reply(self, body: str = "", error: str | None = None, traceback: str | None = None) -> Reply:
        duration_ms = (monotonic_seconds() - self._started_seconds) * 1000
        status = self._status if error is None else None
        return Reply(duration_ms, status, body, error, self._warning, traceback)


class _LateHandlers:
    """Detects late handlers on the waiting thread, without raising an exception in that thread.

    One thread checks all handlers, and stops when none are running.
    """

    def __init__(self) -> None:
        self._changed = Condition()
        self._stacks: dict[int, list[Posting]] = {}  # by thread; only the last posting's handler is running
        self._process = 0  # the id of the process that runs the checking thread
        self._thread: Thread | None = None

    @contextmanager
    def watch(self, posting: Posting) -> "Iterator[None]":
        """Watch a handler in the context; its time does not count towards the enclosing handler's timeout."""
        thread, started_seconds = get_ident(), monotonic_seconds()
        with self._changed:
            self._stacks.setdefault(thread, []).append(posting)
            is_new, self._process = self._process != os.getpid(), os.getpid()
        if is_new:
            self._thread = Thread(target=self._run, name="overdue", daemon=True)
            start(self._thread)
        try:
            yield
        finally:
            with self._changed:
                stack = self._stacks[thread]
                stack.pop()
                if stack:
                    stack[-1].pause(monotonic_seconds() - started_seconds)
                else:
                    del self._stacks[thread]

    def stop(self) -> None:
        """Stop the thread, unless a handler is running."""
        thread = self._thread
        with self._changed:
            self._changed.notify_all()
        if thread is not None and thread is not current_thread():
            thread.join(GRACE_SECONDS)

    def _run(self) -> None:
        while (pause_seconds := self._log_late_handlers()) is not None:
            with self._changed:
                self._changed.wait(pause_seconds)

    def _log_late_handlers(self) -> float | None:
        """Report late handlers; return the seconds until the next check, or None if no handler is running."""
        with self._changed:
            if not self._stacks:
                self._process = 0
                return None
            running = [stack[-1] for stack in self._stacks.values()]
        waiting = [posting for posting in running if not posting.is_lateness_logged]
        for posting in waiting:
            if posting.late_at_seconds + GRACE_SECONDS <= monotonic_seconds():
                posting.log_lateness()
        now = monotonic_seconds() - GRACE_SECONDS
        remaining = [posting.late_at_seconds - now for posting in waiting if not posting.is_lateness_logged]
        return max(min(remaining, default=TIMEOUT_SECONDS), 0.0)


_LATE_HANDLERS: Final = _LateHandlers()


def stop_watching() -> None:
    """Stop checking for late handlers, unless a handler is running."""
    _LATE_HANDLERS.stop()


def webhook_poster(trusted: Trust | None = None) -> Callable[[WebhookRequest], Reply]:
    """Return a function that sends a webhook over the network, with a timeout of five seconds."""

    def post(request: WebhookRequest) -> Reply:
        posting = Posting(request, partial(post_over_network, trusted=trusted))
        start(Thread(target=posting.run, name="posting", daemon=True))
        return posting.wait()

    return post
