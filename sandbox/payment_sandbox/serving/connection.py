"""One HTTP connection: uvicorn's, with limits, errors as JSON, and an end that the application can force."""

import logging
from asyncio import AbstractEventLoop
from collections.abc import Callable
from functools import lru_cache
from http import HTTPStatus
from typing import Any, Final, cast

from httptools import HttpParserError, HttpParserUpgrade, HttpRequestParser
from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from payment_sandbox.serving.first_byte import HANDSHAKE
from payment_sandbox.serving.response import SentResponse
from payment_sandbox.serving.wsgi import REQUEST_BYTES_MAX, RESPONSE, error_bytes

HEAD_BYTES_MAX: Final = 16 << 10  # of a request line with its headers
IDLE_SECONDS: Final = 60
FORGOTTEN_SECONDS: Final = 1.0  # without a request
HALF_OPEN_SECONDS: Final = 2.0  # without a byte in the middle of a request
HEAD_SECONDS_MAX: Final = 5.0  # for a request line and headers that come in drops
UNREAD_SECONDS_MAX: Final = 10.0  # for a response that the client does not read
REFUSAL_SECONDS: Final = 1.0  # closing with unread data would destroy the response

# The gateway logs what fails; uvicorn's own loggers may belong to a server of the merchant's.
_quiet = logging.getLogger("payment_sandbox.uvicorn")
_quiet.setLevel(logging.CRITICAL)


log = logging.getLogger(__name__)


@lru_cache(maxsize=16)
def say_once(problem: str) -> None:
    """Log what the client may not say clearly; once, because it comes again."""
    log.warning("%s", problem)


class Refused(Exception):
    """A request that is refused before its body is read."""

    def __init__(self, status: int, value: str) -> None:
        super().__init__(value)
        self.status = status
        self.value = value


HEAD_TOO_LARGE: Final = Refused(431, f"the request line and headers are over {HEAD_BYTES_MAX} bytes")
BODY_TOO_LARGE: Final = Refused(413, f"the body is over {REQUEST_BYTES_MAX - 1} bytes")
UNKNOWN_CODING: Final = Refused(501, "the only Transfer-Encoding that is supported is chunked")
NOT_HTTP: Final = Refused(400, "this is not a valid HTTP request")


class Connection(HttpToolsProtocol):
    """A connection that closes when nothing has come for a while, whatever it is in the middle of."""

    def __init__(
        self, config: Config, state: ServerState, loop: AbstractEventLoop, lost: Callable[[], None]
    ) -> None:
        super().__init__(config=config, server_state=state, app_state={}, _loop=loop)
        self.logger = _quiet
        self.access_log = False
        self._lost = lost
        self._head_bytes = 0
        self._is_in_head = False
        self._is_in_request = False
        self._refused: Refused | None = None
        self._unsent_bytes = 0  # when it was last looked at
        self._begun_seconds = self.quiet_since_seconds = loop.time()

    # What the parser and the transport report

    def connection_made(self, transport: Any) -> None:
        """Begin; a client that sends nothing is not kept for long."""
        super().connection_made(transport)
        self._limit_idleness()

    def connection_lost(self, exc: Exception | None) -> None:
        """End, and make room for another connection."""
        self._cancel_timer()
        super().connection_lost(exc)
        self._lost()

    def data_received(self, data: bytes) -> None:
        """Parse what has come; after a refusal, only drain it."""
        if self._refused is not None:
            return
        self._cancel_timer()
        self.quiet_since_seconds = self.loop.time()
        try:
            self._feed(data)
        except HttpParserError:
            if data.startswith(HANDSHAKE):
                say_once("a client speaks https, and this server only http; serve --tls speaks both")
            self._refuse(NOT_HTTP)  # and close: where the next request starts is unknown
            return
        if self._is_in_head:
            self._head_bytes += len(data)
            if self._head_bytes > HEAD_BYTES_MAX:
                self._refuse(HEAD_TOO_LARGE)
        if not self.is_closed and not self._is_answering:
            self._limit_idleness()

    def _feed(self, data: bytes) -> None:
        """Parse it; an offered protocol is not accepted, so what follows the headers is the body."""
        try:
            self.parser.feed_data(data)
        except HttpParserUpgrade as offer:
            if self.parser.get_method() == b"CONNECT":
                raise HttpParserError("this is no proxy") from None
            without = [pair for pair in self.headers if pair[0] not in (b"upgrade", b"connection")]
            head = [b"%s %s HTTP/1.1" % (self.parser.get_method(), self.url)]
            head += [b"%s: %s" % pair for pair in without]
            self.parser = HttpRequestParser(self)
            self._feed(b"\r\n".join([*head, b"", b""]) + data[offer.args[0] :])

    def on_message_begin(self) -> None:
        """Begin a request."""
        super().on_message_begin()
        self._is_in_head = self._is_in_request = True
        self._begun_seconds = self.loop.time()
        self._head_bytes = 0

    def on_headers_complete(self) -> None:
        """Pass on a request, unless it is too large or comes once more without its offer of a protocol."""
        self._is_in_head = False
        if self.parser.should_upgrade():
            return
        length = len(self.url)
        for name, value in self.headers:
            length += len(name) + len(value)
            if name == b"content-length" and int(value) > REQUEST_BYTES_MAX:
                self._refuse(BODY_TOO_LARGE)
            if name == b"transfer-encoding" and value.lower() != b"chunked":
                self._refuse(UNKNOWN_CODING)
        if length > HEAD_BYTES_MAX:
            self._refuse(HEAD_TOO_LARGE)
        if self._refused is not None:
            raise self._refused  # ends the parsing
        super().on_headers_complete()
        cast(dict[str, Any], self.scope)["extensions"] = {RESPONSE: SentResponse(self.cycle)}

    def on_message_complete(self) -> None:
        """The whole request has come."""
        if self.parser.should_upgrade():
            return
        self._is_in_request = False
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """Note when the response was sent."""
        self.quiet_since_seconds = self.loop.time()
        super().on_response_complete()

    # What the server and the application ask for

    @property
    def is_closed(self) -> bool:
        """Whether nothing more can be sent."""
        return self.transport is None or self.transport.is_closing()

    def is_forgotten(self) -> bool:
        """Whether nothing has happened for a while, and no request waits for its response."""
        if self._is_answering:
            return False
        now = self.loop.time()
        quiet_seconds = now - self.quiet_since_seconds
        if self._is_in_request:
            is_slow = self._is_in_head and now - self._begun_seconds >= HEAD_SECONDS_MAX
            return is_slow or quiet_seconds >= HALF_OPEN_SECONDS
        is_sending = self.transport.get_write_buffer_size() > 0
        return quiet_seconds >= (UNREAD_SECONDS_MAX if is_sending else FORGOTTEN_SECONDS)

    @property
    def _is_answering(self) -> bool:
        """Whether a complete request waits for its response."""
        cycle = self.cycle
        return cycle is not None and not cycle.response_complete and not cycle.more_body

    def _cancel_timer(self) -> None:
        if self.timeout_keep_alive_task is not None:
            self.timeout_keep_alive_task.cancel()
            self.timeout_keep_alive_task = None

    def _limit_idleness(self) -> None:
        if self.timeout_keep_alive_task is None:
            self.timeout_keep_alive_task = self.loop.call_later(
                self.timeout_keep_alive, self.timeout_keep_alive_handler
            )

    def timeout_keep_alive_handler(self) -> None:
        """Close a connection that was idle for too long, also if the client does not read what was sent."""
        unsent_bytes = self.transport.get_write_buffer_size()
        if 0 < unsent_bytes != self._unsent_bytes:  # the client is slow, but reads
            self._unsent_bytes = unsent_bytes
            self._cancel_timer()
            self._limit_idleness()
        else:
            self.transport.abort()

    def _refuse(self, refused: Refused) -> None:
        """Send an error and close: at once if the client does the same, else when it had time to read it."""
        if self.is_closed or self._refused is not None:
            return
        self._refused = refused
        if self.cycle is not None:
            self.cycle.disconnected = True  # an earlier request's response comes too late
        body = error_bytes(refused.status, refused.value)
        head = (
            f"HTTP/1.1 {refused.status} {HTTPStatus(refused.status).phrase}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
        )
        self.transport.write(head.encode() + body)
        if self.transport.can_write_eof():  # TLS has no half-closed connections
            self.transport.write_eof()
        self.loop.call_later(REFUSAL_SECONDS, self.transport.close)
