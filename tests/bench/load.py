"""A load of eight connections that cost little themselves, so that a server shows what it can do."""

import selectors
import socket
from time import perf_counter

CONNECTIONS = 8
HEAD_END = b"\r\n\r\n"


def http_request(method: str, path: str, body: bytes = b"", *headers: str) -> bytes:
    """A request as it goes over the wire."""
    lines = [f"{method} {path} HTTP/1.1", "Host: 127.0.0.1", f"Content-Length: {len(body)}", *headers]
    return "\r\n".join(lines).encode() + HEAD_END + body


class Client:
    """One connection: the same request again and again."""

    def __init__(self, port: int, sent: bytes) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._sent = sent
        self.came = b""
        self.answered = 0

    def send(self) -> None:
        """The next request."""
        self.came = b""
        self.socket.sendall(self._sent)

    def read(self) -> bool:
        """What has come; True when it is a whole answer."""
        piece = self.socket.recv(1 << 18)
        assert piece, "the server closed the connection"
        self.came += piece
        if not _is_whole(self.came):
            return False
        assert self.came[9:10] == b"2", self.came[:300]
        self.answered += 1
        return True


def _is_whole(came: bytes) -> bool:
    head, end, body = came.partition(HEAD_END)
    lower = head.lower()
    if not end:
        return False
    place = lower.find(b"content-length:")
    if place < 0:
        return body.endswith(b"0\r\n\r\n")  # in chunks
    return len(body) >= int(lower[place + 15 :].split(b"\r\n", 1)[0])


def per_second(port: int, sent: bytes, requests: int) -> float:
    """How many of these requests a server answers in a second."""
    clients = [Client(port, sent) for _ in range(CONNECTIONS)]
    with selectors.DefaultSelector() as ready:
        begun = perf_counter()
        for client in clients:
            ready.register(client.socket, selectors.EVENT_READ, client)
            client.send()
        left, open_ = requests - len(clients), len(clients)
        while open_:
            for key, _ in ready.select():
                client = key.data
                if not client.read():
                    continue
                if left > 0:
                    left -= 1
                    client.send()
                else:
                    ready.unregister(client.socket)
                    open_ -= 1
        taken = perf_counter() - begun
    for client in clients:
        client.socket.close()
    return sum(client.answered for client in clients) / taken
