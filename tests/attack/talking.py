"""One connection on which a client says something, whatever it is, and reads the answers meanwhile."""

import select
import socket
import ssl
import struct
from collections.abc import Callable, Iterator
from contextlib import suppress
from enum import Enum
from time import perf_counter
from typing import Final, NamedTuple

from tests.attack.answers import Answer, Asked, Reader

SENT_AT_ONCE: Final = 1 << 18
READ_AT_ONCE: Final = 1 << 16
ANSWER_SECONDS: Final = 60.0  # for everything that is said on one connection
CLOSED_SECONDS: Final = 5.0  # until a connection ends whose client has nothing more to say
DOUBTFUL_SECONDS: Final = 0.25  # for an answer that need not come


class Ending(Enum):
    """What a client does after its last byte."""

    WAITS = "reads the answers, and then ends"
    HALF_CLOSES = "closes its sending side, and reads the answers"
    RESETS = "breaks the connection"


class Pause(NamedTuple):
    """Time for the server to read what was sent, and perhaps to answer."""

    seconds: float = 0.004
    until_answer: bool = False


class Below(NamedTuple):
    """Bytes that are sent below TLS, as if they were its records."""

    data: bytes


Sent = Iterator[bytes | Pause | Below]


class Case(NamedTuple):
    """What a client says on one connection, and what it may read."""

    name: str
    sent: Callable[[], Sent]
    asked: tuple[Asked, ...]
    ending: Ending = Ending.WAITS
    is_certain: bool = True  # each request is answered; if not, a refusal or the end may come instead, once
    is_random: bool = False  # its bytes were changed: nobody knows what it asks for
    is_http: bool = True  # what comes back; else it is not read
    answer_seconds: float = ANSWER_SECONDS  # after the last byte
    twin: Callable[[], Sent] | None = None  # the same in another form, which gets the same answers

    @property
    def creations(self) -> int:
        """How many orders it may make."""
        return sum(201 in asked.statuses for asked in self.asked)


class Talk(NamedTuple):
    """What a client has read on one connection."""

    answers: list[Answer]
    interims: list[int]
    problems: list[str]
    is_reset: bool = False

    @property
    def statuses(self) -> list[int]:
        """The statuses of its answers."""
        return [answer.status for answer in self.answers]

    @property
    def created(self) -> int:
        """How many orders the client knows of."""
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
        """``closed_seconds`` is how soon a connection must end once its client has ended."""
        self._case = case
        self._closed_seconds = closed_seconds
        self._reader = Reader(case.asked)
        self._is_reset = self._is_ended = False
        self._deadline = perf_counter() + ANSWER_SECONDS
        self._socket = self._below = socket.create_connection(address, timeout=CLOSED_SECONDS)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if tls is not None:
            self._below = self._socket.dup()
            self._socket = tls.wrap_socket(self._socket, server_hostname="localhost")
        self._socket.setblocking(False)

    def talk(self) -> Talk:
        """Say everything, and read what comes."""
        with self._socket, self._below:
            for piece in self._case.sent():
                self._say(piece)
                if self._is_ended or self._is_late:
                    break
            self._end()
        if self._is_ended:
            self._reader.end(is_reset=self._is_reset)
        reader = self._reader
        return Talk(reader.answers, reader.interims, reader.problems, self._is_reset)

    @property
    def _is_late(self) -> bool:
        return perf_counter() > self._deadline

    def _say(self, piece: bytes | Pause | Below) -> None:
        if isinstance(piece, Pause):
            self._pause(piece)
        elif isinstance(piece, Below):
            with suppress(OSError):  # the server has closed
                self._below.sendall(piece.data)
        else:
            self._send(piece)

    def _send(self, piece: bytes) -> None:
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
                except OSError:  # the server has closed: what it said before is still to be read
                    self._read_until(lambda: False, 1.0)
                    self._is_ended = self._is_reset = True

    def _read(self) -> None:
        """Read what there is."""
        try:
            data = self._socket.recv(READ_AT_ONCE)
        except (ssl.SSLWantReadError, BlockingIOError):
            return
        except OSError:
            self._is_ended = self._is_reset = True
            return
        if data and self._case.is_http:
            self._reader.feed(data)
        self._is_ended = not data

    def _read_until(self, is_enough: Callable[[], bool], seconds: float) -> None:
        until = min(self._deadline, perf_counter() + seconds)
        while not self._is_ended and not is_enough():
            remaining = until - perf_counter()
            if remaining <= 0:
                return
            if self._pending or select.select([self._socket], [], [], remaining)[0]:
                self._read()

    @property
    def _pending(self) -> bool:
        """Whether TLS has decrypted something that was not read."""
        return isinstance(self._socket, ssl.SSLSocket) and self._socket.pending() > 0

    def _pause(self, pause: Pause) -> None:
        reader = self._reader
        before = len(reader.answers) + sum(reader.interims)
        self._read_until(
            lambda: pause.until_answer and len(reader.answers) + sum(reader.interims) > before, pause.seconds
        )

    def _end(self) -> None:
        """End as the case says; no more than the answers may come."""
        ending = self._case.ending
        if ending is Ending.RESETS:
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            return
        is_tls = isinstance(self._socket, ssl.SSLSocket)  # has no half-closed connections
        if ending is Ending.WAITS or is_tls:
            seconds = self._case.answer_seconds
            if not self._case.is_certain:
                seconds = min(seconds, DOUBTFUL_SECONDS)
            self._read_until(lambda: self._reader.is_complete, seconds)
        if self._is_ended or is_tls:
            return
        try:
            self._socket.shutdown(socket.SHUT_WR)
        except OSError:  # the server has broken the connection: what it said before is still to be read
            self._is_reset = True
        seconds = self._closed_seconds
        if not self._reader.is_complete:
            seconds = max(seconds, self._case.answer_seconds)
        self._read_until(lambda: False, seconds)
        if not self._is_ended:
            self._reader.problems.append("the connection stays open although its client has ended")
