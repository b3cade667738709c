"""The response to one request: whole, in pieces, or cut off."""

import socket
import struct
from contextlib import suppress
from http import HTTPStatus
from typing import Final

from aiohttp import hdrs, web
from multidict import CIMultiDict

from payment_sandbox.serving.wsgi import BufferedResponse, Headers, ResponseHead

SERVER: Final = "payment-sandbox"
LINGER_RESET: Final = struct.pack("ii", 1, 0)  # SO_LINGER: closing resets the connection
CUT_STATUS: Final = 0


class PendingReply:
    """The answer to a request, started by one of ``send_response``, ``begin``, ``cut`` and ``reset``."""

    __slots__ = ("_closes_connection", "_http", "_stream", "status")

    def __init__(self, http: web.BaseRequest, *, closes_connection: bool) -> None:
        self._http = http
        is_upgrade = hdrs.UPGRADE in http.headers or http.method == hdrs.METH_CONNECT
        self._closes_connection = closes_connection or is_upgrade
        """With a declined upgrade, because aiohttp waits for data of the other protocol."""
        self._stream: web.StreamResponse | None = None
        self.status = CUT_STATUS  # until the response is sent

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
        response = web.Response(body=answer.body, status=self.status, headers=headers)
        await self._send(self._end_response(response))
        if answer.is_cut and self._http.transport is not None:
            self._http.transport.close()
        return response

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
        await self._send(self._stream)
        return self._stream

    def cut(self) -> web.StreamResponse:
        """Flush, and close with the response incomplete; without a response, reset the connection."""
        if self._stream is None:
            return self.reset()
        if self._http.transport is not None:
            self._http.transport.close()
        return self._stream

    def reset(self) -> web.StreamResponse:
        """Reset the TCP connection; unsent data is lost."""
        transport = self._http.transport
        if transport is not None and not transport.is_closing():
            raw: socket.socket | None = transport.get_extra_info("socket")
            if raw is not None:
                raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, LINGER_RESET)
            transport.abort()
        return self._stream or web.Response()  # aiohttp cannot send it

    async def _send(self, response: web.StreamResponse) -> None:
        """Send a whole response before aiohttp does, so that deferred work can start."""
        with suppress(ConnectionError):  # the client has disconnected
            await response.prepare(self._http)
            await response.write_eof()

    def _end_response(self, response: web.StreamResponse) -> web.StreamResponse:
        if self._closes_connection or response.status == HTTPStatus.SERVICE_UNAVAILABLE:
            response.force_close()  # a refused crowd frees its connections
        return response


def _build_headers(headers: Headers) -> "CIMultiDict[str]":
    if all([value.isascii() for _, value in headers]):
        result = CIMultiDict(headers)
    else:  # a WSGI header has one character for each byte; aiohttp sends UTF-8
        result = CIMultiDict(
            [(name, value.encode("latin-1").decode("utf-8", "replace")) for name, value in headers]
        )
    result[hdrs.SERVER] = SERVER
    return result
