"""A client that sends arbitrary bytes on one connection, and reads the answers at the same time."""

import select
import socket
import ssl
import struct
from collections.abc import Callable, Iterator
from enum import Enum
from time import perf_counter
from typing import Final, NamedTuple

from tests.attack.answers import Answer, ExpectedResponse, Reader

SENT_AT_ONCE: Final = 1 << 18
READ_AT_ONCE: Final = 1 << 16
ANSWER_SECONDS: Final = 60.0  # for everything on one connection
CLOSED_SECONDS: Final = 5.0  # until the server must close a connection that its client has closed
DOUBTFUL_SECONDS: Final = 0.25  # for an optional answer


class Ending(Enum):
    """The behaviour of a client after its last byte."""

    WAITS = "reads the answers, and then closes"
    RESETS = "resets the connection"


class Pause(NamedTuple):
    """Time for the server to read the sent bytes, and perhaps to answer."""

    seconds: float = 0.004
    until_answer: bool = False


Pieces = Iterator[bytes | Pause]


class Case(NamedTuple):
    """The bytes that a client sends on one connection, and the permitted answers."""

    name: str
    pieces: Callable[[], Pieces]
    expected: tuple[ExpectedResponse, ...]
    ending: Ending = Ending.WAITS
    is_certain: bool = True  # if False, a refusal or a closed connection may replace an answer
    answer_seconds: float = ANSWER_SECONDS  # after the last byte

    @property
    def creations(self) -> int:
        """The number of orders that the case may create."""
        return sum(201 in response.statuses for response in self.expected)


class Transcript(NamedTuple):
    """The answers that a client has read on one connection."""

    answers: list[Answer]
    interims: list[int]
    problems: list[str]
    is_reset: bool = False

    @property
    def created(self) -> int:
        """The number of orders whose creation was acknowledged."""
        return sum(answer.status == 201 for answer in self.answers)


class Client:
    """Sends one case on a new connection."""

    def __init__(
        self,
        address: tuple[str, int],
        case: Case,
        tls: ssl.SSLContext | None = None,
        closed_seconds: float = CLOSED_SECONDS,
    ) -> None:
        """``closed_seconds`` limits the time until the server, too, closes the connection."""
        self._case = case
        self._closed_seconds = closed_seconds
        self._reader = Reader(case.expected)
        self._is_reset = self._is_ended = False
        self._deadline = perf_counter() + ANSWER_SECONDS
        self._socket = socket.create_connection(address, timeout=CLOSED_SECONDS)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if tls is not None:
            self._socket = tls.wrap_socket(self._socket, server_hostname="localhost")
        self._socket.setblocking(False)

    def run(self) -> Transcript:
        """Send all pieces, and read the answers."""
        with self._socket:
            for piece in self._case.pieces():
                self._send_piece(piece)
                if self._is_ended or self._is_late:
                    break
            self._end()
        if self._is_ended:
            self._reader.end(is_reset=self._is_reset)
        reader = self._reader
        return Transcript(reader.answers, reader.interims, reader.problems, self._is_reset)

    @property
    def _is_late(self) -> bool:
        return perf_counter() > self._deadline

    def _send_piece(self, piece: bytes | Pause) -> None:
        if isinstance(piece, Pause):
            self._pause(piece)
        else:
            self._send_bytes(piece)

    def _send_bytes(self, piece: bytes) -> None:
        unsent = memoryview(piece)
        while unsent and not self._is_ended and not self._is_late:
            readable, writable, _ = select.select([self._socket], [self._socket], [], 0.5)
            if readable:
                self._read()
            if writable and not self._is_ended:
                try:
                    unsent = unsent[self._socket.send(unsent[:SENT_AT_ONCE]) :]
                except (ssl.SSLWantReadError, ssl.SSLWantWriteError, BlockingIOError):
                    continue
                except OSError:  # the server has closed: earlier answers are still unread
                    self._read_until(lambda: False, 1.0)
                    self._is_ended = self._is_reset = True

    def _read(self) -> None:
        try:
            data = self._socket.recv(READ_AT_ONCE)
        except (ssl.SSLWantReadError, BlockingIOError):
            return
        except OSError:
            self._is_ended = self._is_reset = True
            return
        if data:
            self._reader.feed(data)
        self._is_ended = not data

    def _read_until(self, is_done: Callable[[], bool], seconds: float) -> None:
        deadline = min(self._deadline, perf_counter() + seconds)
        while not self._is_ended and not is_done():
            remaining = deadline - perf_counter()
            if remaining <= 0:
                return
            if self._pending or select.select([self._socket], [], [], remaining)[0]:
                self._read()

    @property
    def _pending(self) -> bool:
        """Whether TLS has decrypted bytes that are still unread."""
        return isinstance(self._socket, ssl.SSLSocket) and self._socket.pending() > 0

    def _pause(self, pause: Pause) -> None:
        reader = self._reader
        before = len(reader.answers) + sum(reader.interims)
        self._read_until(
            lambda: pause.until_answer and len(reader.answers) + sum(reader.interims) > before, pause.seconds
        )

    def _end(self) -> None:
        """End the connection as the case requires, and read the remaining answers."""
        if self._case.ending is Ending.RESETS:
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            return
        is_tls = isinstance(self._socket, ssl.SSLSocket)  # TLS has no half-closed connections
        seconds = self._case.answer_seconds
        if not self._case.is_certain:
            seconds = min(seconds, DOUBTFUL_SECONDS)
        self._read_until(lambda: self._reader.is_complete, seconds)
        if self._is_ended or is_tls:
            return
        try:
            self._socket.shutdown(socket.SHUT_WR)
        except OSError:  # the server has reset the connection: earlier answers are still unread
            self._is_reset = True
        seconds = self._closed_seconds
        if not self._reader.is_complete:
            seconds = max(seconds, self._case.answer_seconds)
        self._read_until(lambda: False, seconds)
        if not self._is_ended:
            self._reader.problems.append("the connection stays open although its client has ended")
