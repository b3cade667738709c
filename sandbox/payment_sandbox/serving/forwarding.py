"""Passes a request on to the server that owns its project, and the response back, piece by piece.

Between servers, the connections stay open for the next request. A header says which server asks, for whom and
how often the request was passed on; a secret that all servers read in their database keeps others from
claiming to be one. A server that speaks TLS is called so, and has to show the certificate whose fingerprint
stands in the database.
"""

import asyncio
from asyncio import AbstractEventLoop, StreamReader, StreamWriter
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from hmac import compare_digest
from typing import Final
from urllib.parse import urlsplit

from aiohttp import web
from httptools import HttpResponseParser

from payment_sandbox.serving.replies import Reply
from payment_sandbox.serving.tls import any_server_context, shown_by
from payment_sandbox.serving.wsgi import Answer, Head, Headers, Peers, Request
from payment_sandbox.storage.postgresql import Address
from payment_sandbox.web.bodies import BODY_BYTES_MAX

FORWARDED: Final = b"sandbox-forwarded"
CUT: Final = "sandbox-cut"
"""A header of a forwarded response that was cut; its value is the length of the whole, or nothing."""

HOPS_MAX: Final = 20
CONNECT_SECONDS: Final = 2.0
IDLE_CONNECTIONS_MAX: Final = 32  # to each server
PIECE_BYTES: Final = 1 << 16
ALIVE_EVERY_SECONDS: Final = 1.0
NOT_PASSED: Final = ("connection", "transfer-encoding", "date", "server", CUT)
OF_CONNECTION: Final = (b"connection", b"keep-alive", b"transfer-encoding", b"content-length", b"expect")


def passed_on(peers: Peers, hops: int, secret: str) -> bytes:
    """The header of a request from this client that was passed on so often."""
    return f"{secret};{hops};{peers.scheme};{peers.client_port};{peers.client_host}".encode()


def taken_from(request: Request, peers: Peers, secret: str) -> tuple[Request, Peers, int]:
    """A request without the header, as the first server saw it, and how often it was passed on."""
    values = [value for name, value in request.headers if name == FORWARDED]
    if not values:
        return request, peers, 0
    headers = [header for header in request.headers if header[0] != FORWARDED]
    request = request._replace(headers=headers)
    sent, hops, scheme, port, host = (values[0].decode("latin-1").split(";", 4) + [""] * 4)[:5]
    if not compare_digest(sent.encode("latin-1"), secret.encode()) or not hops.isdigit():
        return request, peers, 0
    return request, peers._replace(scheme=scheme, client_host=host, client_port=int(port or 0)), int(hops)


class Unsent(Exception):
    """The other server could not be reached; it has seen nothing of the request."""


class BrokenOff(Exception):
    """The other server did not answer; whether it has done something is unknown."""


class _Incoming:
    """What the parser reports of a response."""

    def __init__(self) -> None:
        self.status = 0
        self.headers: list[tuple[str, str]] = []
        self.pieces: deque[bytes] = deque()
        self.has_head = self.is_whole = self.stays_open = False
        self._parser = HttpResponseParser(self)

    def feed(self, piece: bytes) -> None:
        """Parse what has come."""
        self._parser.feed_data(piece)

    def on_header(self, name: bytes, value: bytes) -> None:
        """A header."""
        self.headers.append((name.decode("latin-1"), value.decode("latin-1")))

    def on_headers_complete(self) -> None:
        """The end of the head."""
        self.has_head = True
        self.status = self._parser.get_status_code()
        self.stays_open = self._parser.should_keep_alive()

    def on_body(self, body: bytes) -> None:
        """A piece of the body."""
        self.pieces.append(body)

    def on_message_complete(self) -> None:
        """The end."""
        self.is_whole = True

    def header(self, name: str) -> str | None:
        """The first header with this lower-case name."""
        return next((value for key, value in self.headers if key.lower() == name), None)


class Forwarder:
    """Connections to the other servers."""

    def __init__(self, loop: AbstractEventLoop) -> None:
        self._loop = loop
        self._idle: dict[Address, deque[tuple[StreamReader, StreamWriter]]] = {}

    async def close(self) -> None:
        """Close the idle connections."""
        writers = [writer for idle in self._idle.values() for _, writer in idle]
        self._idle.clear()
        for writer in writers:
            writer.transport.abort()
        await asyncio.gather(*(writer.wait_closed() for writer in writers), return_exceptions=True)

    async def forward(
        self,
        request: Request,
        header: bytes,
        address: Address,
        reply: Reply,
        is_alive: Callable[[], bool],
    ) -> web.StreamResponse:
        """Have the server at an address answer; ``is_alive`` says whether it still can.

        ``header`` says for whom.

        Raises:
            Unsent: nothing has reached it.
            BrokenOff: it has not answered; nothing was sent to the client.
        """
        sent = request_bytes(request, header)
        reader, writer, incoming = await self._asked(address, sent, is_alive)
        is_reusable = False
        try:
            response, is_whole = await self._pass_back(request, reader, incoming, reply)
            is_reusable = is_whole and incoming.stays_open
            return response
        finally:
            if is_reusable and len(self._idle.setdefault(address, deque())) < IDLE_CONNECTIONS_MAX:
                self._idle[address].append((reader, writer))
            else:
                writer.close()

    async def _asked(
        self, address: Address, sent: bytes, is_alive: Callable[[], bool]
    ) -> "tuple[StreamReader, StreamWriter, _Incoming]":
        """Send the request, and read the head of the response, on a connection that still works."""
        idle = self._idle.get(address, deque())
        while idle:
            reader, writer = idle.pop()
            if not reader.at_eof() and not writer.is_closing():
                break
            writer.close()
        else:
            reader, writer = await self._connected(address)
        try:
            writer.write(sent)
            return reader, writer, await self._head(reader, is_alive)
        except (OSError, EOFError) as error:
            writer.close()
            raise BrokenOff from error

    async def _connected(self, address: Address) -> tuple[StreamReader, StreamWriter]:
        parts, tls = urlsplit(address.url), any_server_context() if address.fingerprint else None
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                reader, writer = await asyncio.open_connection(
                    parts.hostname, parts.port, limit=PIECE_BYTES, ssl=tls
                )
        except (OSError, TimeoutError, ValueError) as error:  # a server that starts has no address yet
            raise Unsent from error
        if tls is not None and shown_by(writer.get_extra_info("ssl_object")) != address.fingerprint:
            writer.transport.abort()
            raise Unsent
        return reader, writer

    async def _head(self, reader: StreamReader, is_alive: Callable[[], bool]) -> _Incoming:
        incoming = _Incoming()
        while not incoming.has_head:
            piece = await self._piece(reader, is_alive)
            if not piece:
                raise EOFError
            incoming.feed(piece)
        return incoming

    async def _piece(self, reader: StreamReader, is_alive: Callable[[], bool]) -> bytes:
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(ALIVE_EVERY_SECONDS):
                    return await reader.read(PIECE_BYTES)
            if not is_alive():
                raise EOFError

    async def _pass_back(
        self, request: Request, reader: StreamReader, incoming: _Incoming, reply: Reply
    ) -> tuple[web.StreamResponse, bool]:
        """The response to the client; True if nothing of it can come any more from the other server."""
        head = Head(incoming.status, [pair for pair in incoming.headers if pair[0].lower() not in NOT_PASSED])
        length, cut = incoming.header("content-length"), incoming.header(CUT)
        is_bodiless = request.method == "HEAD" or incoming.status in (204, 304)
        if length is not None or is_bodiless:
            while not (incoming.is_whole or is_bodiless):
                piece = await reader.read(PIECE_BYTES)
                if not piece:
                    return reply.reset(), False
                incoming.feed(piece)
            return reply.whole(_whole(head, b"".join(incoming.pieces), cut)), not is_bodiless
        return await self._stream(reader, incoming, reply, head)

    async def _stream(
        self, reader: StreamReader, incoming: _Incoming, reply: Reply, head: Head
    ) -> tuple[web.StreamResponse, bool]:
        gone = asyncio.Event()
        reply.when_lost(gone.set)
        leaving = self._loop.create_task(gone.wait())
        try:
            await reply.begin(head)
            while not reply.is_closed:
                while incoming.pieces:
                    await reply.send(incoming.pieces.popleft())
                if incoming.is_whole:
                    return reply.ended(), True
                reading = self._loop.create_task(reader.read(PIECE_BYTES))
                await asyncio.wait({reading, leaving}, return_when=asyncio.FIRST_COMPLETED)
                if not reading.done():
                    reading.cancel()
                    break
                piece = b""
                with suppress(OSError):
                    piece = reading.result()
                if not piece:
                    break
                incoming.feed(piece)
            return reply.cut(), False
        finally:
            reply.when_lost(None)
            leaving.cancel()


def _whole(head: Head, body: bytes, cut: str | None) -> Answer:
    if cut is None:
        return Answer(head, body, is_cut=False)
    headers = [*_without_length(head), *([("Content-Length", cut)] if cut else [])]
    whole = Head(head.status, headers) if body or cut else None
    return Answer(whole, body, is_cut=True)


def cut_answer(answer: Answer) -> Answer:
    """An answer that is cut, as one that can be passed back to the server that has the client."""
    head = answer.head or Head(502, [])
    length = next((value for name, value in head.headers if name.lower() == "content-length"), "")
    headers = [*_without_length(head), ("Content-Length", str(len(answer.body)))]
    headers += [(CUT, length if answer.body else "")]
    return Answer(Head(head.status, headers), answer.body, is_cut=False, close=answer.close)


def _without_length(head: Head) -> Headers:
    return [header for header in head.headers if header[0].lower() != "content-length"]


def request_bytes(request: Request, header: bytes) -> bytes:
    """A request as it goes over the wire again."""
    lines = [b"%s %s HTTP/1.1" % (request.method.encode(), request.target)]
    lines += [b"%s: %s" % header for header in request.headers if header[0] not in OF_CONNECTION]
    missing = min(request.length, BODY_BYTES_MAX + 1) - len(request.body)  # of a body that is too large
    body = request.body + b" " * missing if missing > 0 else request.body
    if body or request.method in ("POST", "PUT", "PATCH"):
        lines.append(b"content-length: %d" % len(body))
    lines.append(b"%s: %s" % (FORWARDED, header))
    if not any(name == b"host" for name, _ in request.headers):
        lines.append(b"host: sandbox")
    return b"\r\n".join([*lines, b"", body])
