"""Receives the bodies of requests, within limits that depend on the path."""

from collections.abc import Awaitable, Callable
from typing import Any, Final, NamedTuple

from payment_sandbox.serving.wsgi import REQUEST_BYTES_MAX, Answer, error
from payment_sandbox.web.bodies import BODY_BYTES_MAX
from payment_sandbox.web.paths import takes_snapshot

SNAPSHOTS_BYTES_MAX: Final = 1 << 30  # of all snapshots that are being received or restored

Receive = Callable[[], Awaitable[Any]]


class Body(NamedTuple):
    """A request's body; what is over the limit of its path is counted, but not kept."""

    data: bytes
    length: int

    @property
    def is_whole(self) -> bool:
        """Whether everything was kept."""
        return len(self.data) == self.length


class Bodies:
    """Receives bodies; ``done`` is to be called for each."""

    def __init__(self) -> None:
        self._snapshots_bytes = 0

    async def receive(self, path: str, receive: Receive) -> Body | None:
        """A request's body; None if the client has gone.

        It is read to its end even if nobody will use it, so that the client reads the response.
        """
        if not takes_snapshot(path):
            return await _received(receive, lambda before, length: before + length <= BODY_BYTES_MAX)
        kept = 0

        def keep(before: int, length: int) -> bool:
            nonlocal kept
            if self._snapshots_bytes + length > SNAPSHOTS_BYTES_MAX:
                return False
            self._snapshots_bytes += length
            kept += length
            return True

        body = None
        try:
            body = await _received(receive, keep)
        finally:
            if body is None:
                self._snapshots_bytes -= kept
        return body

    def done(self, path: str, body: Body) -> None:
        """Note that a body is needed no longer."""
        if takes_snapshot(path):
            self._snapshots_bytes -= len(body.data)


def refusal(path: str, body: Body) -> Answer | None:
    """The answer to a request whose body the application cannot be asked about."""
    if body.length > REQUEST_BYTES_MAX:
        return error(413, f"the body is over {REQUEST_BYTES_MAX - 1} bytes")
    if takes_snapshot(path) and not body.is_whole:
        return error(503, "too many snapshots are being received; try again later", retry=True)
    return None


async def _received(receive: Receive, keep: Callable[[int, int], bool]) -> Body | None:
    """A body; ``keep`` gets what was kept so far and the length of a piece, and says whether to keep it."""
    pieces: list[bytes] = []
    length, is_whole = 0, True
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        piece = message["body"]
        is_whole = is_whole and keep(length, len(piece))
        if is_whole:
            pieces.append(piece)
        length += len(piece)
        if not message["more_body"] or length > REQUEST_BYTES_MAX:
            return Body(pieces[0] if len(pieces) == 1 else b"".join(pieces), length)
