"""Request bodies in memory, within limits that depend on the path."""

from io import BytesIO
from typing import Final

from payment_sandbox.web.addresses import accepts_snapshot
from payment_sandbox.web.bodies import BODY_BYTES_MAX

SNAPSHOT_BYTES_MAX: Final = 256 << 20


class Bodies:
    """All request bodies of a server; snapshots share one budget."""

    def __init__(self, snapshots_bytes_max: int) -> None:
        self._free_bytes = snapshots_bytes_max

    def receive(self, path: bytes) -> "Body":
        """Create an empty body for a request to this path."""
        return Body(self, is_snapshot=accepts_snapshot(path.decode("latin-1")))

    def reserve(self, length: int) -> bool:
        """Reserve memory for a piece of a snapshot; return False if the budget is exhausted."""
        has_room = length <= self._free_bytes
        self._free_bytes -= length if has_room else 0
        return has_room

    def release(self, length: int) -> None:
        """Release the memory of a snapshot."""
        self._free_bytes += length


class Body:
    """The received part of a body; beyond the limit, only the length is counted.

    The context manager releases the memory once the request is answered.
    """

    __slots__ = ("_bodies", "_buffer", "_is_snapshot", "_reserved_bytes", "bytes_max", "length")

    def __init__(self, bodies: Bodies, *, is_snapshot: bool) -> None:
        self._bodies = bodies
        self._is_snapshot = is_snapshot
        self._buffer: BytesIO | None = None
        self._reserved_bytes = 0
        self.bytes_max: Final = SNAPSHOT_BYTES_MAX if is_snapshot else BODY_BYTES_MAX
        self.length = 0

    def add(self, piece: bytes) -> None:
        """Append a piece to a contiguous buffer, so that many small pieces take no extra memory."""
        is_whole = self.length == self._reserved_bytes
        self.length += len(piece)
        if is_whole and self._has_room(len(piece)):
            self._reserved_bytes += len(piece)
            if self._buffer is None:
                self._buffer = BytesIO()
            self._buffer.write(piece)

    def _has_room(self, length: int) -> bool:
        return self._bodies.reserve(length) if self._is_snapshot else self.length <= self.bytes_max

    @property
    def is_whole(self) -> bool:
        """Whether the body is complete, within the limit."""
        return self.length == self._reserved_bytes

    def content(self) -> bytes:
        """The received part of the body, from its start."""
        return b"" if self._buffer is None else self._buffer.getvalue()

    def __enter__(self) -> "Body":
        return self

    def __exit__(self, *error: object) -> None:
        if self._is_snapshot:
            self._bodies.release(self._reserved_bytes)
        self._buffer = None
