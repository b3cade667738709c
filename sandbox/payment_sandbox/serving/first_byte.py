"""Tells https from http by the first byte that a client sends, so that one port can serve both."""

import socket
from asyncio import AbstractEventLoop, Future, timeout
from typing import Final

HANDSHAKE: Final = b"\x16"  # the first byte of TLS; no HTTP method begins with it
SILENT_SECONDS_MAX: Final = 10.0  # browsers open connections that they may never use


async def begins_with_tls(accepted: socket.socket, loop: AbstractEventLoop) -> bool:
    """Whether a new connection's client speaks TLS; its byte stays to be read.

    Raises:
        TimeoutError: the client has sent nothing for a while.
        OSError: the connection has failed.
    """
    readable: Future[None] = loop.create_future()

    def note() -> None:
        if not readable.done():
            readable.set_result(None)

    loop.add_reader(accepted, note)
    try:
        async with timeout(SILENT_SECONDS_MAX):
            await readable
        return accepted.recv(1, socket.MSG_PEEK) == HANDSHAKE
    finally:
        loop.remove_reader(accepted)
