"""What the gateway needs of the connection that a response is sent on."""

import socket
import struct

from uvicorn.protocols.http.httptools_impl import RequestResponseCycle


class SentResponse:
    """One response on its way; a connection may carry several requests at once, so each has its own."""

    __slots__ = ("_cycle",)

    def __init__(self, cycle: RequestResponseCycle) -> None:
        self._cycle = cycle

    @property
    def is_closed(self) -> bool:
        """Whether nothing more can be sent."""
        return self._cycle.transport.is_closing()

    @property
    def is_held_up(self) -> bool:
        """Whether the client has not read what was sent before."""
        return self._cycle.flow.write_paused

    @property
    def has_begun(self) -> bool:
        """Whether a part of the response has been sent."""
        return self._cycle.response_started

    @property
    def ends_streams(self) -> bool:
        """Whether a response of unknown length has an end mark; for HTTP/1.0 it ends with the connection."""
        return self._cycle.scope["http_version"] != "1.0"

    def expect_stream(self) -> None:
        """Prepare a response of unknown length."""
        if not self.ends_streams:
            self._cycle.chunked_encoding = False
            self._cycle.expected_content_length = 1 << 62

    def end_stream(self) -> None:
        """End a response of unknown length: after an end mark, the client may go on with the connection."""
        if not self.ends_streams:
            self.close_when_sent()

    def reset(self) -> None:
        """Break the connection, with a TCP reset; what was not yet sent is lost."""
        raw: socket.socket | None = self._cycle.transport.get_extra_info("socket")
        if raw is not None:
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._cycle.disconnected = True
        self._cycle.transport.abort()

    def close_when_sent(self) -> None:
        """Close once what is on its way has been sent, whether the response is complete or not."""
        self._cycle.disconnected = True
        self._cycle.transport.close()
