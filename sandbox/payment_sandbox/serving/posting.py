"""One POST of a webhook: its time limit, and what came back."""

import logging
import os
import socket
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from contextlib import contextmanager, nullcontext, suppress
from functools import cache, partial
from http.client import HTTPResponse
from io import BufferedReader, RawIOBase
from threading import Condition, Lock, Thread, current_thread, get_ident, local, main_thread
from typing import TYPE_CHECKING, Any, Final

from payment_sandbox.loading import LOADING
from payment_sandbox.orders.webhooks import (
    BODY_KEPT_BYTES,
    TIMEOUT_SECONDS,
    ReceiverAnswer,
    Reply,
    Send,
    Undelivered,
    WebhookRequest,
)
from payment_sandbox.serving.realtime import monotonic_seconds
from payment_sandbox.serving.sessions import NOT_TRUSTED, Trust, direct_session, trouble, trust
from payment_sandbox.serving.threads import start

if TYPE_CHECKING:
    from collections.abc import Iterator

    import requests
    from _typeshed import WriteableBuffer

ANSWER_BYTES_MAX: Final = 1 << 18  # of which little is kept
TRUST: Final = "; serve --webhook-ca FILE trusts the certificates in a file"

_here = local()  # the wire of the request that this thread sends


class Wire:
    """The connection of one request. A receiver that sends a byte now and then never times out by itself."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._socket: socket.socket | None = None
        self._is_cut = False

    @contextmanager
    def used(self) -> Iterator[None]:
        """What this thread sends inside goes over this wire."""
        _here.wire = self
        try:
            yield
        finally:
            _here.wire = None
            with self._lock:
                if self._socket is not None:
                    self._socket.close()
                self._socket = None

    def connected(self, opened: socket.socket) -> None:
        """Note a new connection; a copy of its descriptor stays valid whoever wraps or closes it."""
        with self._lock:
            if self._socket is not None:
                self._socket.close()
            self._socket = opened.dup()
            if self._is_cut:
                self._shut_down()

    def cut(self) -> None:
        """Wake the thread that waits for the receiver, with an error."""
        with self._lock:
            self._is_cut = True
            self._shut_down()

    def _shut_down(self) -> None:
        if self._socket is not None:
            with suppress(OSError):  # the receiver has closed it
                self._socket.shutdown(socket.SHUT_RDWR)


def over_the_wire(
    request: WebhookRequest, answered: Callable[[int], None], trusted: Trust | None = None
) -> ReceiverAnswer:
    """POST the request; ignore redirects, and proxies and credentials from the environment.

    Raises:
        Undelivered: there is no response, or only a part of one.
    """
    with LOADING:
        import requests  # here, for a faster start
        import urllib3

    try:
        return _posted(request, answered, trusted)
    except (requests.RequestException, urllib3.exceptions.HTTPError, OSError) as error:
        sentence = trouble(error, request.url)
        way_on = TRUST if NOT_TRUSTED in sentence else ""
        raise Undelivered(f"{sentence}{way_on}") from error


def _posted(
    request: WebhookRequest, answered: Callable[[int], None], trusted: Trust | None
) -> ReceiverAnswer:
    with _session(trusted) as session:
        session.headers.clear()
        with session.post(
            request.url,
            data=request.body,
            headers=request.headers,
            timeout=TIMEOUT_SECONDS,
            allow_redirects=False,
            stream=True,
        ) as response:
            answered(response.status_code)
            response.raw.enforce_content_length = True  # urllib3 1 accepts truncated bodies by default
            body = b""
            for piece in response.raw.stream(BODY_KEPT_BYTES, decode_content=True):
                body += piece
                if len(body) >= BODY_KEPT_BYTES:
                    break
            return ReceiverAnswer(body[:BODY_KEPT_BYTES], location=response.headers.get("Location"))


def warm_up() -> None:
    """Load what the first webhook needs; on many threads at once, it would hold up requests."""
    _session().close()


def _session(trusted: Trust | None = None) -> "requests.Session":
    """A session whose connections can be cut."""
    with LOADING:
        import requests  # here, for a faster start; its parts only after it, or two threads get half of it

    session, adapter = direct_session(), requests.adapters.HTTPAdapter()
    if trusted is not None:
        trust(session, trusted, adapter)
    adapter.poolmanager.pool_classes_by_scheme = _pools()
    for scheme in ("http://", "https://"):
        session.mount(scheme, adapter)
    return session


@cache
def _pools() -> dict[str, type]:
    """urllib3's connection pools, whose connections tell their wire of their sockets."""
    with LOADING:
        from urllib3.connection import HTTPConnection, HTTPSConnection  # here, for a faster start
        from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool

    class Plain(HTTPConnection):
        response_class = _Answer

        def _new_conn(self) -> socket.socket:
            return _noted(super()._new_conn())

    class Encrypted(HTTPSConnection):
        response_class = _Answer

        def _new_conn(self) -> socket.socket:  # before the handshake, which a receiver can drip, too
            return _noted(super()._new_conn())

    class PlainPool(HTTPConnectionPool):
        ConnectionCls = Plain

    class EncryptedPool(HTTPSConnectionPool):
        ConnectionCls = Encrypted

    return {"http": PlainPool, "https": EncryptedPool}


class _Limited(RawIOBase):
    """What is read of an answer, which may have no end: parsing that would keep the processor busy."""

    def __init__(self, source: RawIOBase) -> None:
        super().__init__()
        self._source = source
        self._left_bytes = ANSWER_BYTES_MAX

    def readable(self) -> bool:
        """It is."""
        return True

    def readinto(self, buffer: "WriteableBuffer") -> int | None:
        """Read some.

        Raises:
            OSError: the answer is too long.
        """
        count: int | None = self._source.readinto(buffer)
        self._left_bytes -= count or 0
        if self._left_bytes < 0:
            raise OSError(f"the answer has no end within {ANSWER_BYTES_MAX} bytes")
        return count

    def close(self) -> None:
        """Close what is read from."""
        self._source.close()
        super().close()


class _Answer(HTTPResponse):
    """An answer of limited length, counted where http and https are the same: as it is parsed."""

    def __init__(self, sock: socket.socket, *given: Any, **options: Any) -> None:
        super().__init__(sock, *given, **options)
        self.fp = BufferedReader(_Limited(self.fp.detach()))


def _noted(opened: socket.socket) -> socket.socket:
    wire: Wire | None = getattr(_here, "wire", None)
    if wire is not None:
        wire.connected(opened)
    return opened


REDIRECTS: Final = (301, 302, 303, 307, 308)
NO_ANSWER: Final = f"no answer within {TIMEOUT_SECONDS:g} seconds"
STILL_WAITS: Final = (
    f"{NO_ANSWER} from a webhook handler, and the call that led to it waits until it returns; "
    "pytest-timeout ends tests that hang. %s"
)
GRACE_SECONDS: Final = 0.2  # in which an event loop cancels a handler that is late

PLACED: Final = "The handler was here:"
Place = Callable[[int], str | None]
"""Says where the handler is that a thread waits for."""

log = logging.getLogger(__name__)


class Posting:
    """One POST in flight: its status line counts, even if the body fails."""

    def __init__(self, request: WebhookRequest, send: Send, place: Place | None = None) -> None:
        """With ``place``, the reply says where a handler in this process was when its time was over."""
        self._request = request
        self._send = send
        self._place = place
        self._wire = Wire()
        self._answer: Future[Reply] = Future()
        self.sent_seconds = self._begun_seconds = monotonic_seconds()
        self._thread = get_ident()
        self._status: int | None = None
        self._warning: str | None = None
        self._late_at: str | None = None  # where the handler was when its time was over

    def run(self) -> None:
        """Send the request; whatever the receiver does, the result is recorded."""
        self._thread = get_ident()
        try:
            with self._wire.used():
                answer = self._send(self._request, self._answered)
        except BaseException as error:  # a handler may raise pytest's outcomes, or SystemExit
            if isinstance(error, KeyboardInterrupt) and current_thread() is main_thread():
                raise
            self._answer.set_result(self._failed(error))
            return
        if self._warning is not None and answer.location:
            self._warning = f"{self._warning}: this one leads to {answer.location}"
        body = answer.body.decode(errors="replace")
        self._answer.set_result(self._reply(body, traceback=answer.traceback))

    def run_here(self) -> None:
        """Send the request on the thread that waits for the reply; what is late is noticed all the same."""
        with _OVERDUE.watching(self) if self._place is not None else nullcontext():
            self.run()

    def wait(self) -> Reply:
        """Return the reply, or a timeout error, also for a reply that came too late."""
        remaining_seconds = self.late_at_seconds - monotonic_seconds()
        try:
            if remaining_seconds < 0:
                raise FutureTimeout
            return self._answer.result(remaining_seconds)
        except FutureTimeout:
            self._wire.cut()
            traceback = self._where_it_was()
            if self._status is not None:
                self._warning = "the body did not arrive in time"
                return self._reply(traceback=traceback)
            return self._reply(error=NO_ANSWER, traceback=traceback)

    # The time limit, as those who watch it need it

    @property
    def late_at_seconds(self) -> float:
        """When the receiver's time is over."""
        return self._begun_seconds + TIMEOUT_SECONDS

    @property
    def is_told(self) -> bool:
        """Whether somebody has been told that it is late."""
        return self._late_at is not None

    def tell_late(self) -> None:
        """Note where the handler is, for the reply and for whoever reads the log of a test that hangs."""
        self._late_at = self._placed() or ""
        log.warning(STILL_WAITS, self._late_at)

    def pause(self, seconds: float) -> None:
        """Do not count the time of another webhook's handler that this one has waited for."""
        self._begun_seconds += seconds

    def _where_it_was(self) -> str | None:
        """Where a late handler was when its time was over, as far as somebody has seen it."""
        if not self._answer.done():
            return self._placed()
        traceback = self._answer.result().traceback
        is_place = traceback is not None and traceback.startswith(
            PLACED
        )  # of an event loop that cancelled it
        return traceback if is_place else self._late_at or traceback

    def _placed(self) -> str | None:
        return self._place(self._thread) if self._place is not None else None

    def _failed(self, error: BaseException) -> Reply:
        problem, traceback = f"{type(error).__name__}: {error}", None
        if isinstance(error, Undelivered):
            problem, traceback = str(error), error.traceback
        if self._status is None:
            if monotonic_seconds() >= self.late_at_seconds:  # the socket's limit came first
                problem = NO_ANSWER
            return self._reply(error=problem, traceback=traceback)
        self._warning = f"the body is incomplete: {problem.partition(':')[0]}"
        return self._reply(traceback=traceback)

    def _answered(self, status: int) -> None:
        if monotonic_seconds() > self.late_at_seconds:
            return
        self._status = status
        self._warning = "redirects are not followed" if status in REDIRECTS else None

    def _reply(self, body: str = "", error: str | None = None, traceback: str | None = None) -> Reply:
        duration_ms = (monotonic_seconds() - self._begun_seconds) * 1000
        status = self._status if error is None else None
        return Reply(duration_ms, status, body, error, self._warning, traceback)


class _Overdue:
    """Notices handlers that are late on the thread that waits for them; nothing is raised there.

    One thread looks at all of them, and ends when there are none.
    """

    def __init__(self) -> None:
        self._changed = Condition()
        self._stacks: dict[int, list[Posting]] = {}  # by thread; the handler of the last one is running
        self._process = 0  # the one whose thread is looking
        self._thread: Thread | None = None

    @contextmanager
    def watching(self, posting: Posting) -> "Iterator[None]":
        """Notice if it is late; the one around it on this thread is not late because of it."""
        thread, begun_seconds = get_ident(), monotonic_seconds()
        with self._changed:
            self._stacks.setdefault(thread, []).append(posting)
            begins, self._process = self._process != os.getpid(), os.getpid()
        if begins:
            self._thread = Thread(target=self._look, name="overdue", daemon=True)
            start(self._thread)
        try:
            yield
        finally:
            with self._changed:
                stack = self._stacks[thread]
                stack.pop()
                if stack:
                    stack[-1].pause(monotonic_seconds() - begun_seconds)
                else:
                    del self._stacks[thread]

    def stop(self) -> None:
        """End the thread, unless a handler is running."""
        looking = self._thread
        with self._changed:
            self._changed.notify_all()
        if looking is not None and looking is not current_thread():
            looking.join(GRACE_SECONDS)

    def _look(self) -> None:
        while (pause_seconds := self._told()) is not None:
            with self._changed:
                self._changed.wait(pause_seconds)

    def _told(self) -> float | None:
        """Tell those that are late; the seconds until another can be, None if there is none left."""
        with self._changed:
            if not self._stacks:
                self._process = 0
                return None
            running = [stack[-1] for stack in self._stacks.values()]
        waiting = [posting for posting in running if not posting.is_told]
        for posting in waiting:
            if posting.late_at_seconds + GRACE_SECONDS <= monotonic_seconds():
                posting.tell_late()
        now = monotonic_seconds() - GRACE_SECONDS
        remaining = [posting.late_at_seconds - now for posting in waiting if not posting.is_told]
        return max(min(remaining, default=TIMEOUT_SECONDS), 0.0)


_OVERDUE: Final = _Overdue()


def stop_watching() -> None:
    """Look for late handlers no longer, unless one is running."""
    _OVERDUE.stop()


def poster(trusted: Trust | None = None) -> Callable[[WebhookRequest], Reply]:
    """Send webhooks over the network; returns what came back within five seconds, or why nothing did."""

    def post(request: WebhookRequest) -> Reply:
        posting = Posting(request, partial(over_the_wire, trusted=trusted))
        start(Thread(target=posting.run, name="posting", daemon=True))
        return posting.wait()

    return post
