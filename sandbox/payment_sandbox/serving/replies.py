"""The reply to one request: whole, in pieces, or cut off."""

import json
import socket
import struct
from asyncio import timeout
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Final

from aiohttp import hdrs, web_request, web_response
from aiohttp.http import HttpVersion10
from multidict import CIMultiDict
from werkzeug.wrappers import Response

from payment_sandbox.web.error_bodies import TYPE_BY_STATUS, error_body

SERVER: Final = "payment-sandbox"
LINGER_RESET: Final = struct.pack("ii", 1, 0)  # SO_LINGER: closing resets the connection
UNAVAILABLE: Final = 503


class HttpReply:
    """The reply to a request, by one of ``send``, ``send_pieces``, ``cut`` and ``reset``."""

    __slots__ = ("_closes_connection", "_http", "_send_seconds", "_sent")

    def __init__(self, http: web_request.BaseRequest, send_seconds: float) -> None:
        """``send_seconds`` is the longest wait for the client to read a part of the response."""
        self._http = http
        self._send_seconds = send_seconds
        self._closes_connection = hdrs.UPGRADE in http.headers or http.method == hdrs.METH_CONNECT
        """With a declined upgrade, because aiohttp waits for data of the other protocol."""
        self._sent: web_response.StreamResponse | None = None

    async def send(self, response: Response) -> web_response.StreamResponse:
        """Send a whole response, before aiohttp does, so that deferred work can start."""
        headers = _encode_headers(response)
        whole = web_response.Response(body=response.get_data(), status=response.status_code, headers=headers)
        async with timeout(self._send_seconds):
            await self._begin(whole)
            await whole.write_eof()
        return whole

    async def send_pieces(
        self, response: Response, pieces: AsyncGenerator[bytes, None]
    ) -> web_response.StreamResponse:
        """Send a response in pieces; in HTTP/1.0, closing the connection ends one of unknown length."""
        stream = web_response.StreamResponse(status=response.status_code, headers=_encode_headers(response))
        if self._http.version == HttpVersion10:
            stream.force_close()  # aiohttp keeps a connection that the client wants to keep
        async with aclosing(pieces):
            async for piece in pieces:
                async with timeout(self._send_seconds):
                    if self._sent is None:
                        await self._begin(stream)
                    if self._http.method == hdrs.METH_HEAD:
                        break
                    await stream.write(piece)
                    await self._http.writer.drain()
        if self._sent is None:
            await self._begin(stream)
        await stream.write_eof()
        return stream

    def cut(self) -> web_response.StreamResponse:
        """Flush, and close with the response incomplete; without a response, reset the connection."""
        if self._sent is None:
            return self.reset()
        if self._http.transport is not None:
            self._http.transport.close()
        return self._sent

    def reset(self) -> web_response.StreamResponse:
        """Reset the TCP connection; unsent data is lost."""
        transport = self._http.transport
        if transport is not None and not transport.is_closing():
            raw: socket.socket | None = transport.get_extra_info("socket")
            if raw is not None:
                raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, LINGER_RESET)
            transport.abort()
        return self._sent or web_response.Response()  # aiohttp cannot send it

    async def _begin(self, response: web_response.StreamResponse) -> None:
        self._sent = response
        if self._closes_connection or response.status == UNAVAILABLE:
            response.force_close()  # a refused crowd frees its connections
        await response.prepare(self._http)


def _encode_headers(response: Response) -> "CIMultiDict[str]":
    """Encode headers, which have one character for each byte, for aiohttp, which sends UTF-8."""
    headers: CIMultiDict[str] = CIMultiDict()
    for name, value in response.headers:
        headers.add(name, value if value.isascii() else value.encode("latin-1").decode("utf-8", "replace"))
    headers[hdrs.SERVER] = SERVER
    return headers


def error(status: int, value: str, *, retry: bool = False) -> Response:
    """Build an error of the server itself; ``retry`` tells the client to retry soon."""
    body = error_body(status, TYPE_BY_STATUS[status], value)
    headers = {"Retry-After": "1"} if retry else None
    return Response(f"{json.dumps(body)}\n", status, headers, mimetype="application/json")
