"""A proxy between a server and its database that can interrupt connections."""

import socket
from contextlib import suppress
from threading import Event, Thread

from tests.support.ports import free_port


class Wire:
    """A proxy to the database that can interrupt a connection in the middle of a commit."""

    def __init__(self, port: int) -> None:
        self._database_port = port
        self._listening = socket.create_server(("127.0.0.1", free_port()))
        self.port = self._listening.getsockname()[1]
        self.cuts_answers_to: bytes | None = (
            None  # requests with these bytes are forwarded, their responses are not
        )
        self.loses: bytes | None = None  # a request with these bytes is dropped, and the connection closed
        self._refuses = False
        self.then_refuses = False  # refuse every connection after the next interruption
        self.swallows = False
        self._sockets: list[socket.socket] = []
        Thread(target=self._run, daemon=True).start()

    def _run(self) -> None:
        while True:
            try:
                client, _ = self._listening.accept()
            except OSError:
                return
            try:
                server = socket.create_connection(("127.0.0.1", self._database_port))
            except OSError:  # the database is stopped
                client.close()
                continue
            if self._refuses and self.then_refuses:
                client.close()
                server.close()
                continue
            self._sockets += [client, server]
            is_cut = Event()
            Thread(target=self._pass, args=(client, server, is_cut, True), daemon=True).start()
            Thread(target=self._pass, args=(server, client, is_cut, False), daemon=True).start()

    def _pass(self, one: socket.socket, other: socket.socket, is_cut: Event, is_request: bool) -> None:
        try:
            while piece := one.recv(65536):
                if self.swallows:
                    continue
                if is_request and self._is_lost(piece):
                    break
                if is_request and self.cuts_answers_to is not None and self.cuts_answers_to in piece:
                    is_cut.set()
                    self._cut_others(one, other)
                if not is_request and is_cut.is_set():
                    break
                other.sendall(piece)
        except OSError:
            pass
        finally:
            for each in (one, other):
                with suppress(OSError):
                    each.shutdown(socket.SHUT_RDWR)
                each.close()

    def _is_lost(self, piece: bytes) -> bool:
        is_lost = self.loses is not None and self.loses in piece
        if is_lost:
            self.loses = None
        return is_lost

    def _cut_others(self, *spared: socket.socket) -> None:
        self.cuts_answers_to, self._refuses = None, self.then_refuses
        for each in self._sockets if self._refuses else ():
            if each not in spared:
                with suppress(OSError):
                    each.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Close all connections."""
        self._listening.close()
        for each in self._sockets:
            each.close()
