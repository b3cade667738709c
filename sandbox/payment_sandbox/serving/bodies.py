"""The bodies of requests while they are received and used, within limits that depend on the path."""

from io import BytesIO
from typing import Final

from payment_sandbox.web.addresses import takes_snapshot
from payment_sandbox.web.bodies import BODY_BYTES_MAX

SNAPSHOT_BYTES_MAX: Final = 256 << 20


class Bodies:
    """All bodies of a server; the snapshots among them share one budget."""

    def __init__(self, snapshots_bytes_max: int) -> None:
        self._free_bytes = snapshots_bytes_max

    def receive(self, path: bytes) -> "Body":
        """The body of a request to this path."""
        return Body(self, is_snapshot=takes_snapshot(path.decode("latin-1")))

    def reserve(self, length: int) -> bool:
        """Reserve room for a piece of a snapshot; False if there is none."""
        has_room = length <= self._free_bytes
        self._free_bytes -= length if has_room else 0
        return has_room

    def release(self, length: int) -> None:
        """Note that this much of a snapshot is needed no longer."""
        self._free_bytes += length


class Body:
    """What came of a body; beyond a limit, its length is counted and its content is dropped.

    As a context, it ends when its request is answered.
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
        """Add a piece, however small; many small ones take no more room than a large one."""
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
        """Whether all of it could be received."""
        return self.length == self._reserved_bytes

    def content(self) -> bytes:
        """What was received of it, from its beginning."""
        return b"" if self._buffer is None else self._buffer.getvalue()

    def __enter__(self) -> "Body":
        return self

    def __exit__(self, *error: object) -> None:
        if self._is_snapshot:
            self._bodies.release(self._reserved_bytes)
        self._buffer = None
