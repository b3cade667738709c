"""The courier: the receivers in reach of a server, the POST to each with its time limit, and threads."""

import socket
import ssl
from collections.abc import Callable, Collection
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from contextlib import closing
from contextvars import copy_context
from datetime import timedelta
from functools import cache, lru_cache, partial
from http.client import HTTPConnection, HTTPException, HTTPResponse, IncompleteRead
from io import BufferedReader
from os import getpid
from threading import Event, Lock, Thread, current_thread, get_ident, main_thread
from typing import Any, Final, NamedTuple
from urllib.parse import SplitResult, urlsplit

from payment_sandbox.delivery.receivers import (
    DeliveryOutcome,
    Destination,
    PreparedAttempt,
    ProcessReceiver,
    Receiver,
)
from payment_sandbox.orders.webhooks import (
    ATTEMPT_BODY_BYTES,
    LEADS_TO,
    NOT_DELIVERED_TO,
    NOT_SENT_IN_TESTS,
    THEN_FAILED,
    ReceiverAnswer,
    Reply,
    Send,
    Undelivered,
    WebhookRequest,
    no_answer_within,
)
from payment_sandbox.projects.caller import caller
from payment_sandbox.scenarios.effects import Together
from payment_sandbox.serving.binding import DEFAULT_PORTS, is_local, port_of
from payment_sandbox.serving.realtime import monotonic_seconds, wall_now
from payment_sandbox.serving.sessions import NOT_TRUSTED, describe_failure, requests, trusting_context
from payment_sandbox.serving.threads import Threads, start

ANSWER_BYTES_MAX: Final = 1 << 18  # the bytes read from an answer; the record stores fewer
TRUST_ADVICE: Final = "; serve --webhook-ca FILE trusts the certificates in a file"
REDIRECTS: Final = (301, 302, 303, 307, 308)
GRACE_SECONDS: Final = 0.2  # the time for an event loop to cancel a late handler

LOCATION_PREFIX: Final = "Location of the handler:"

Run = Callable[[Callable[[], None]], object]


class Courier:
    """Delivers the webhooks of all projects, with a thread for each non-empty outbox."""

    def __init__(
        self,
        *,
        trusted: ssl.SSLContext | None = None,
        local_only: bool = False,
        allowed_hosts: Collection[str] = (),
    ) -> None:
        """Create a courier; ``trusted`` adds to the certificates that the system trusts.

        With ``local_only``, webhooks go only to this machine and to hosts that a project allows;
        ``allowed_hosts`` are the only hosts on the network.
        """
        self._local_only = local_only
        self.allowed_hosts = tuple(map(normal_host, allowed_hosts))
        self._threads = Threads("courier")
        self.run = self._threads.run
        self._network = _HttpAddress(self.run, partial(post_over_network, trusted=trusted))

    def receiver(self, destination: Destination, url: str) -> Receiver:
        """Return the receiver at an address: the application in this process, or a server on the network."""
        host = urlsplit(url).hostname or ""
        if destination.receiver is not None and (destination.hosts is None or host in destination.hosts):
            application = destination.receiver
            return _ApplicationInProcess(self.run, application, application, destination.on_waiting_thread)
        if self._local_only and not is_local(host) and host not in destination.allowed:
            advice = "deliver_to(app) delivers them to the shop, and "
            return _Nobody(
                f"{NOT_SENT_IN_TESTS}; {advice}deliver_over_network(hosts=[{host!r}]) allows that host"
            )
        if self.allowed_hosts and normal_host(host) not in self.allowed_hosts:
            advice = f"to allow {host}, add serve --deliver-to {host}"
            return _Nobody(f"{NOT_DELIVERED_TO} {', '.join(self.allowed_hosts)}; {advice}")
        return self._network

    def stop(self) -> None:
        """Accept no more work; deliveries in flight are abandoned with the process."""
        self._threads.stop()


class _Nobody(NamedTuple):
    """No receiver, for a reason."""

    reason: str

    def post(self, attempt: PreparedAttempt) -> list[DeliveryOutcome]:
        """Return the reason as the error of each copy."""
        return [DeliveryOutcome(Reply(0.0, error=self.reason), attempt.real_at)] * attempt.effect.copies


class _HttpAddress(NamedTuple):
    """Servers on the network; all copies of a webhook are sent at the same time."""

    run: Run
    send: Send
    application: ProcessReceiver | None = None
    on_waiting_thread: bool = False

    def post(self, attempt: PreparedAttempt) -> list[DeliveryOutcome]:
        """Send all copies on other threads, so that the time limit holds however the receiver behaves."""
        postings = [self._start(attempt) for _ in range(attempt.effect.copies)]
        return [DeliveryOutcome(posting.wait(), posting.sent_at) for posting in postings]

    def _start(self, attempt: PreparedAttempt, *, on_this_thread: bool = False) -> "Posting":
        posting = Posting(attempt.request, self.send, attempt.timeout_seconds, self.application)
        if on_this_thread:
            posting.run_on_waiting_thread()
        else:  # with this context, so that the thread gets the event loop of a test
            self.run(partial(copy_context().run, posting.run))
        return posting


class _ApplicationInProcess(_HttpAddress):
    """A merchant's application in this process, by default on the thread that waits for the webhooks."""

    def post(self, attempt: PreparedAttempt) -> list[DeliveryOutcome]:
        """Send the copies one after the other, unless a fault sends them together."""
        if isinstance(attempt.effect, Together):
            return super().post(attempt)
        on_this_thread = self.on_waiting_thread and caller().waiting_thread() is not None
        outcomes: list[DeliveryOutcome] = []
        for _ in range(attempt.effect.copies):
            posting = self._start(attempt, on_this_thread=on_this_thread)
            outcomes.append(DeliveryOutcome(posting.wait(), posting.sent_at))
        return outcomes


def normal_host(name: str) -> str:
    """Normalize a host name: lower case, without a trailing dot or the brackets of an IPv6 address."""
    return name.lower().rstrip(".").strip("[]")


MILLISECOND: Final = timedelta(milliseconds=1)
INTERIM_ANSWERS_MAX: Final = 16  # such as 103, before the answer
SWITCHING: Final = 101
FINAL_STATUS_MIN: Final = 200


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
        self.late_at_seconds = monotonic_seconds() + timeout_seconds
        self.sent_at = wall_now()
        self._thread = get_ident()
        self._status: int | None = None
        self._warning: str | None = None
        self._late_location: str | None = None  # location of the handler at the timeout
        self._unreported = Lock()  # taken once

    def run(self) -> None:
        """Send the request, and record the result, however the receiver behaves."""
        self._thread = get_ident()
        body, problem, traceback = "", None, None
        try:
            answer = self._send(self._request, self._record_status, self._timeout_seconds)
        except BaseException as error:  # handlers may raise pytest outcomes or SystemExit
            if isinstance(error, KeyboardInterrupt) and current_thread() is main_thread():
                raise
            problem = f"{type(error).__name__}: {error}"
            if isinstance(error, Undelivered):
                problem, traceback = str(error), error.traceback
            if self._status is not None:
                self._warning = f"the body is incomplete: {problem.partition(':')[0]}"
                problem = None
            elif monotonic_seconds() >= self.late_at_seconds:  # the socket timed out first
                problem = no_answer_within(self._timeout_seconds)
        else:
            body, traceback = answer.body.decode(errors="replace"), answer.traceback
            if answer.failure is not None:
                self._warning = f"answered {self._status}{THEN_FAILED}{answer.failure}"
            elif self._warning is not None and answer.location:
                self._warning = f"{self._warning}: {LEADS_TO}{answer.location}"
        self._answer.set_result(self._create_reply(body, problem, traceback))

    def run_on_waiting_thread(self) -> None:
        """Send the request on this thread, while another one watches the time.

        The time of an inner webhook's handler does not count towards the timeout of the outer one.
        """
        thread, started_seconds = get_ident(), self.late_at_seconds - self._timeout_seconds
        outer = _RUNNING.get(thread)
        _RUNNING[thread] = self
        _HAS_BEGUN.set()
        _watch(getpid())
        try:
            self.run()
        finally:
            del _RUNNING[thread]
            if outer is not None:
                outer.late_at_seconds += monotonic_seconds() - started_seconds
                _RUNNING[thread] = outer

    def wait(self) -> Reply:
        """Return the reply; a missing or late reply becomes a timeout error."""
        remaining_seconds = self.late_at_seconds - monotonic_seconds()
        try:
            if remaining_seconds < 0:
                raise FutureTimeout
            return self._answer.result(remaining_seconds)
        except FutureTimeout:
            traceback = self._location()
            self.report_late_handler(traceback)
            if self._status is None:
                return self._create_reply("", no_answer_within(self._timeout_seconds), traceback)
            self._warning = "the body did not arrive in time"
            return self._create_reply("", None, traceback)

    def report_late_handler(self, location: str | None = None) -> None:
        """Report a handler that is late, once, for its reply and for whoever waits for the test."""
        if self._receiver is not None and self._status is None and self._unreported.acquire(blocking=False):
            self._late_location = location or self._location() or ""
            self._receiver.report_late_handler(self._late_location, self._timeout_seconds)

    def _location(self) -> str | None:
        """Return the location of a late handler, if known."""
        if not self._answer.done():
            return self._receiver.locate_handler(self._thread) if self._receiver is not None else None
        traceback = self._answer.result().traceback
        if traceback is not None and traceback.startswith(LOCATION_PREFIX):
            return traceback  # reported by the event loop that cancelled the handler
        return self._late_location or traceback

    def _record_status(self, status: int) -> None:
        if monotonic_seconds() <= self.late_at_seconds:
            self._status = status
            self._warning = "redirects are not followed" if status in REDIRECTS else None

    def _create_reply(self, body: str, error: str | None, traceback: str | None) -> Reply:
        took = wall_now() - self.sent_at  # by the clock of all records, so that their order is right
        duration_ms = max(took / MILLISECOND, 0.0)
        status = self._status if error is None else None
        return Reply(duration_ms, status, body, error, self._warning, traceback)


_RUNNING: Final[dict[int, Posting]] = {}  # the innermost handler of each waiting thread
_HAS_BEGUN: Final = Event()
_NEVER: Final = Event()


@cache
def _watch(process_id: int) -> None:
    """Start the thread that watches the time of handlers; a fork copies no threads."""
    start(Thread(target=_report_late_handlers, name="overdue", daemon=True))


def _report_late_handlers() -> None:
    while _HAS_BEGUN.wait():
        _HAS_BEGUN.clear()
        while _RUNNING:
            _NEVER.wait(GRACE_SECONDS)
            for posting in list(_RUNNING.values()):
                if monotonic_seconds() >= posting.late_at_seconds + GRACE_SECONDS:
                    posting.report_late_handler()
                del posting  # so that a deleted project can be freed


def post_webhook(
    request: WebhookRequest, timeout_seconds: float, trusted: ssl.SSLContext | None = None
) -> Reply:
    """Send a webhook over the network, with a timeout."""
    posting = Posting(request, partial(post_over_network, trusted=trusted), timeout_seconds)
    start(Thread(target=posting.run, name="posting", daemon=True))
    return posting.wait()


def post_over_network(
    request: WebhookRequest,
    on_status: Callable[[int], None],
    timeout_seconds: float,
    trusted: ssl.SSLContext | None = None,
) -> ReceiverAnswer:
    """POST the request without redirects, and without proxies or credentials from the environment.

    Raises:
        Undelivered: the response is missing or incomplete.
    """
    until_seconds = monotonic_seconds() + timeout_seconds
    try:
        parts, port, prepared = _prepare(request.url)
        with closing(_connect(parts, port, trusted, timeout_seconds)) as connected:
            http = HTTPConnection(str(parts.hostname), port)
            http.default_port, http.sock = DEFAULT_PORTS[parts.scheme], connected
            http.request("POST", prepared.path_url, request.body, {**prepared.headers, **request.headers})
            with HTTPResponse(connected, method="POST") as response:
                response.fp = BufferedReader(_LimitedStream(connected, until_seconds))
                for _ in range(INTERIM_ANSWERS_MAX + 1):
                    response.headers = None  # type: ignore[assignment]  # else only the first is read
                    response.begin()
                    if response.status == SWITCHING or response.status >= FINAL_STATUS_MIN:
                        break
                if response.status < FINAL_STATUS_MIN:
                    raise HTTPException(f"answered {response.status}, which is no answer to a webhook")
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
def _prepare(url: str) -> "tuple[SplitResult, int, requests.PreparedRequest]":
    """Prepare a request to an address; its headers are the credentials in the address, if any."""
    if urlsplit(url).port == 0:  # requests would drop it
        raise ValueError("nothing can listen on port 0")
    prepared = requests.Request("POST", url).prepare()
    prepared.headers.pop("Content-Length", None)
    parts = urlsplit(prepared.url or "")
    return parts, port_of(parts), prepared


def _connect(
    parts: SplitResult, port: int, trusted: ssl.SSLContext | None, timeout_seconds: float
) -> socket.socket:
    """Connect to the receiver of an address, including the whole TLS handshake."""
    host = parts.hostname or ""
    is_below = host != "localhost" and f".{host.removesuffix('.')}".endswith(".localhost")
    address = "127.0.0.1" if is_below else host  # not every resolver knows shop.localhost and localhost.
    connected = socket.create_connection((address, port), timeout_seconds)
    if parts.scheme != "https":
        return connected
    context = trusted or trusting_context()
    context.check_hostname = context.verify_mode is not ssl.CERT_NONE  # older versions of urllib3 do it
    try:
        return context.wrap_socket(connected, server_hostname=parts.hostname)
    except BaseException:
        connected.close()
        raise


class _LimitedStream(socket.SocketIO):
    """An answer of limited length and duration, whose parts may all trickle, or never end."""

    def __init__(self, connected: socket.socket, until_seconds: float) -> None:
        super().__init__(connected, "r")
        self._connected = connected
        self._until_seconds = until_seconds
        self._remaining_bytes = ANSWER_BYTES_MAX

    def readinto(self, buffer: Any) -> int | None:
        """Read into a buffer, within the limits."""
        self._connected.settimeout(max(self._until_seconds - monotonic_seconds(), 0.001))  # 0: not to block
        count = super().readinto(buffer)
        self._remaining_bytes -= count or 0
        if self._remaining_bytes < 0:
            raise OSError(f"the answer exceeds {ANSWER_BYTES_MAX} bytes")
        return count
