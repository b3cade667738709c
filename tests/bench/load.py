"""A load generator with eight cheap connections, so that the server is the bottleneck."""

import selectors
import socket
from time import perf_counter

CONNECTIONS = 8
HEAD_END = b"\r\n\r\n"


def http_request(method: str, path: str, body: bytes = b"", *headers: str) -> bytes:
    """Return the bytes of a request."""
    lines = [f"{method} {path} HTTP/1.1", "Host: 127.0.0.1", f"Content-Length: {len(body)}", *headers]
    return "\r\n".join(lines).encode() + HEAD_END + body


class Client:
    """A connection that repeats one request."""

    def __init__(self, port: int, request: bytes) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._request = request
        self.received = b""
        self.responses = 0

    def send(self) -> None:
        """Send the next request."""
        self.received = b""
        self.socket.sendall(self._request)

    def read(self) -> bool:
        """Receive data; return True once the response is complete."""
        chunk = self.socket.recv(1 << 18)
        assert chunk, "the server closed the connection"
        self.received += chunk
        if not _is_complete(self.received):
            return False
        assert self.received[9:10] == b"2", self.received[:300]
        self.responses += 1
        return True


def _is_complete(received: bytes) -> bool:
    head, end, body = received.partition(HEAD_END)
    lower = head.lower()
    if not end:
        return False
    position = lower.find(b"content-length:")
    if position < 0:
        return body.endswith(b"0\r\n\r\n")  # chunked
    return len(body) >= int(lower[position + 15 :].split(b"\r\n", 1)[0])


def per_second(port: int, request: bytes, requests: int) -> float:
    """Return how many of these requests a server answers per second."""
    clients = [Client(port, request) for _ in range(CONNECTIONS)]
    with selectors.DefaultSelector() as selector:
        started = perf_counter()
        for client in clients:
            selector.register(client.socket, selectors.EVENT_READ, client)
            client.send()
        remaining, open_ = requests - len(clients), len(clients)
        while open_:
            for key, _ in selector.select():
                client = key.data
                if not client.read():
                    continue
                if remaining > 0:
                    remaining -= 1
                    client.send()
                else:
                    selector.unregister(client.socket)
                    open_ -= 1
        elapsed = perf_counter() - started
    for client in clients:
        client.socket.close()
    return sum(client.responses for client in clients) / elapsed
