"""A network between a server and its database, of which each direction can stop."""

import socket
from contextlib import suppress
from threading import Event, Thread

from tests.support.ports import free_port


class Wire:
    """Forwards connections to a port, unless ``questions`` or ``answers`` are cleared."""

    def __init__(self, to_port: int) -> None:
        self.questions, self.answers = Event(), Event()
        self.restore()
        self.port = free_port()
        self._to_port = to_port
        self._listening = socket.create_server(("127.0.0.1", self.port), backlog=64)
        self._thread = Thread(target=self._accept, daemon=True)
        self._thread.start()

    def cut(self) -> None:
        """Let nothing through any more, without closing a connection."""
        self.questions.clear()
        self.answers.clear()

    def restore(self) -> None:
        """Let everything through."""
        self.questions.set()
        self.answers.set()

    def close(self) -> None:
        """Accept no more connections, and let the open ones end."""
        with suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)
        self.restore()
        self._thread.join()

    def _accept(self) -> None:
        with self._listening, suppress(OSError):
            while True:
                near, _ = self._listening.accept()
                try:
                    far = socket.create_connection(("127.0.0.1", self._to_port))
                except OSError:
                    near.close()
                    continue
                for source, target, gate in ((near, far, self.questions), (far, near, self.answers)):
                    source.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                    Thread(target=self._forward, args=(source, target, gate), daemon=True).start()

    def _forward(self, source: socket.socket, target: socket.socket, gate: Event) -> None:
        with suppress(OSError):
            while data := source.recv(1 << 16):
                gate.wait()
                target.sendall(data)
        gate.wait()  # a closed connection is not seen through a cut wire
        for end in (source, target):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
        source.close()
