"""The reply to one request: whole, in pieces, or cut off."""

import json
import socket
import struct
from contextlib import suppress
from typing import Final

from aiohttp import hdrs, web_request, web_response
from flask import Response
from multidict import CIMultiDict

from payment_sandbox.web.call import ConnectionCut
from payment_sandbox.web.error_bodies import TYPE_BY_STATUS, error_body

SERVER: Final = "payment-sandbox"
LINGER_RESET: Final = struct.pack("ii", 1, 0)  # SO_LINGER: closing resets the connection
CUT_STATUS: Final = 0
UNAVAILABLE: Final = 503


class Reply:
    """The reply to a request, started by one of ``send``, ``begin``, ``cut`` and ``reset``."""

    __slots__ = ("_closes_connection", "_http", "_stream", "status")

    def __init__(self, http: web_request.BaseRequest, *, closes_connection: bool) -> None:
        self._http = http
        is_upgrade = hdrs.UPGRADE in http.headers or http.method == hdrs.METH_CONNECT
        self._closes_connection = closes_connection or is_upgrade
        """With a declined upgrade, because aiohttp waits for data of the other protocol."""
        self._stream: web_response.StreamResponse | None = None
        self.status = CUT_STATUS  # until the response is sent

    async def send(self, response: Response) -> web_response.StreamResponse:
        """Send a whole response, or its part before a cut."""
        body: list[bytes] = []
        is_cut = False
        try:
            body.extend(response.iter_encoded())
        except ConnectionCut:
            is_cut = True
        if is_cut and not any(body):
            return self.reset()
        whole = web_response.Response(
            body=b"".join(body), status=response.status_code, headers=_encode_headers(response)
        )
        self._start(whole)
        await self._send(whole)
        if is_cut and self._http.transport is not None:
            self._http.transport.close()
        return whole

    async def begin(self, response: Response) -> None:
        """Start a response of unknown length; in HTTP/1.0, closing the connection ends it."""
        self._stream = web_response.StreamResponse(
            status=response.status_code, headers=_encode_headers(response)
        )
        self._start(self._stream)
        await self._stream.prepare(self._http)

    async def send_piece(self, piece: bytes) -> None:
        """Send a piece, and return once the client has read most of the data sent."""
        if self._stream is not None and self._http.method != "HEAD" and piece:
            await self._stream.write(piece)
            await self._http.writer.drain()

    async def end(self) -> web_response.StreamResponse:
        """End a response that was sent in pieces."""
        assert self._stream is not None, "begin was not called"
        await self._send(self._stream)
        return self._stream

    def cut(self) -> web_response.StreamResponse:
        """Flush, and close with the response incomplete; without a response, reset the connection."""
        if self._stream is None:
            return self.reset()
        if self._http.transport is not None:
            self._http.transport.close()
        return self._stream

    def reset(self) -> web_response.StreamResponse:
        """Reset the TCP connection; unsent data is lost."""
        transport = self._http.transport
        if transport is not None and not transport.is_closing():
            raw: socket.socket | None = transport.get_extra_info("socket")
            if raw is not None:
                raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, LINGER_RESET)
            transport.abort()
        return self._stream or web_response.Response()  # aiohttp cannot send it

    def _start(self, response: web_response.StreamResponse) -> None:
        self.status = response.status
        if self._closes_connection or response.status == UNAVAILABLE:
            response.force_close()  # a refused crowd frees its connections

    async def _send(self, response: web_response.StreamResponse) -> None:
        """Send a response before aiohttp does, so that deferred work can start."""
        with suppress(ConnectionError):  # the client has disconnected
            await response.prepare(self._http)
            await response.write_eof()


def _encode_headers(response: Response) -> "CIMultiDict[str]":
    """Encode headers, which have one character for each byte, for aiohttp, which sends UTF-8."""
    headers = CIMultiDict(
        [
            (name, value if value.isascii() else value.encode("latin-1").decode("utf-8", "replace"))
            for name, value in response.get_wsgi_headers({})
        ]
    )
    headers[hdrs.SERVER] = SERVER
    return headers


def error(status: int, value: str, *, retry: bool = False) -> Response:
    """Build an error of the server itself; ``retry`` tells the client to retry soon."""
    body = error_body(status, TYPE_BY_STATUS[status], value)
    headers = {"Retry-After": "1"} if retry else None
    return Response(f"{json.dumps(body)}\n", status, headers, mimetype="application/json")
