"""The response to one request: whole, in pieces, or cut off."""

import socket
import struct
from asyncio import Transport
from collections.abc import Callable
from contextlib import suppress
from email.utils import formatdate
from functools import lru_cache
from typing import Final, Protocol

from aiohttp import hdrs, web
from multidict import CIMultiDict

from payment_sandbox.serving.realtime import wall_second
from payment_sandbox.serving.wsgi import BufferedResponse, Headers, Peers, ResponseHead, error

SERVER: Final = "payment-sandbox"
LINGER_RESET: Final = struct.pack("ii", 1, 0)  # SO_LINGER: closing resets the connection
CUT_STATUS: Final = 0


class ResponseConnection(Protocol):
    """The interface that a connection offers to its response."""

    peers: Peers
    transport: Transport | None
    on_lost: Callable[[], None] | None

    @property
    def is_closed(self) -> bool:
        """Whether sending is no longer possible."""
        ...

    @property
    def closes_after_response(self) -> bool:
        """Whether to close the connection after this response."""
        ...

    async def linger(self) -> None:
        """Stop sending, drop all input, and return once the client has disconnected or had time to read."""
        ...


class PendingReply:
    """The answer to a request, started by one of ``send_response``, ``begin``, ``refuse`` and ``reset``."""

    __slots__ = ("_connection", "_http", "_stream", "status")

    def __init__(self, connection: ResponseConnection, http: web.BaseRequest) -> None:
        self._connection = connection
        self._http = http
        self._stream: web.StreamResponse | None = None
        self.status = CUT_STATUS  # until the response is sent

    @property
    def peers(self) -> Peers:
        """Both ends of the connection."""
        return self._connection.peers

    @property
    def is_closed(self) -> bool:
        """Whether sending is no longer possible."""
        return self._connection.is_closed

    @property
    def has_begun(self) -> bool:
        """Whether part of the response has been sent."""
        return self._stream is not None

    async def send_response(self, answer: BufferedResponse) -> web.StreamResponse:
        """Send the complete response, or the part before a cut.

        Raises:
            ValueError: the response has no head.
        """
        if answer.is_cut and not answer.body:
            return self.reset()
        if answer.head is None:
            raise ValueError("the application did not call start_response")
        self.status = answer.head.status
        headers = _build_headers(answer.head.headers)
        if answer.is_cut:
            cut = _TruncatedResponse(self._connection, body=answer.body, status=self.status, headers=headers)
            return await self._send_early(cut)
        response = web.Response(body=answer.body, status=self.status, headers=headers)
        return await self._send_early(self._end_response(response))

    def refuse(self, status: int, value: str) -> web.StreamResponse:
        """Answer with an error, and ignore all subsequent input."""
        self.status, refusal = status, error(status, value)
        assert refusal.head is not None, "an error without a head"
        last = _Refusal(self._connection, refusal.body, status, _build_headers(refusal.head.headers))
        last.force_close()
        return last

    async def begin(self, head: ResponseHead) -> None:
        """Start a response of unknown length; in HTTP/1.0, closing the connection ends it."""
        self.status = head.status
        stream = web.StreamResponse(status=head.status, headers=_build_headers(head.headers))
        self._stream = self._end_response(stream)
        await stream.prepare(self._http)

    async def send(self, piece: bytes) -> None:
        """Send a piece, and return once the client has read most of the data sent."""
        if self._stream is not None and self._http.method != "HEAD" and piece:
            await self._stream.write(piece)
            await self._http.writer.drain()

    async def end(self) -> web.StreamResponse:
        """End a response that was sent in pieces."""
        assert self._stream is not None, "begin was not called"
        return await self._send_early(self._stream)

    def cut(self) -> web.StreamResponse:
        """Flush, and close with the response incomplete."""
        if self._connection.transport is not None:
            self._connection.transport.close()
        return self._placeholder_response()

    def reset(self) -> web.StreamResponse:
        """Reset the TCP connection; unsent data is lost."""
        transport = self._connection.transport
        if transport is not None and not transport.is_closing():
            raw: socket.socket | None = transport.get_extra_info("socket")
            if raw is not None:
                raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, LINGER_RESET)
            transport.abort()
        return self._placeholder_response()

    def on_disconnect(self, callback: Callable[[], None] | None) -> None:
        """Set a callback for the client's disconnect; None removes it."""
        self._connection.on_lost = callback

    async def _send_early(self, response: web.StreamResponse) -> web.StreamResponse:
        """Send a whole response before the server library does, so that deferred work can start."""
        with suppress(ConnectionError):  # the client has disconnected
            await response.prepare(self._http)
            await response.write_eof()
        return response

    def _placeholder_response(self) -> web.StreamResponse:
        """Return a placeholder for the server library, which cannot send on a closed connection."""
        return self._stream or web.Response()

    def _end_response(self, response: web.StreamResponse) -> web.StreamResponse:
        if self._connection.closes_after_response or hdrs.UPGRADE in self._http.headers:
            response.force_close()  # aiohttp loses data sent after a declined upgrade
        return response


class _ClosingResponse(web.Response):
    """A response that closes the connection."""

    def __init__(
        self, connection: ResponseConnection, body: bytes, status: int, headers: "CIMultiDict[str]"
    ) -> None:
        super().__init__(body=body, status=status, headers=headers)
        self._connection = connection


class _TruncatedResponse(_ClosingResponse):
    """A truncated response."""

    async def write_eof(self, data: bytes = b"") -> None:
        """Send the available part, and close the connection."""
        await super().write_eof(data)
        if self._connection.transport is not None:
            self._connection.transport.close()


class _Refusal(_ClosingResponse):
    """A response to a client that may still be sending; closing with input unread would destroy it."""

    async def write_eof(self, data: bytes = b"") -> None:
        """Send the response, and wait until the client has disconnected or had time to read it."""
        await super().write_eof(data)
        await self._connection.linger()


def _build_headers(headers: Headers) -> "CIMultiDict[str]":
    """Build the headers of a response, with date and server."""
    result = CIMultiDict(headers)
    if not all([value.isascii() for _, value in headers]):
        result = CIMultiDict([(name, _decode_header(value)) for name, value in headers])
    result[hdrs.DATE] = _http_date(wall_second())
    result[hdrs.SERVER] = SERVER
    return result


def _decode_header(value: str) -> str:
    """Decode a WSGI header, one byte per character, to text for sending as UTF-8."""
    return value.encode("latin-1").decode("utf-8", "replace")


@lru_cache(maxsize=1)
def _http_date(second: int) -> str:
    return formatdate(second, usegmt=True)
