"""A process with many connections that call a server continuously, each call with another invalid key.

Run ``python -m tests.support.made_up_keys HOST PORT CONNECTIONS``; it stops when its input ends.
"""

import selectors
import socket
import subprocess
import sys
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from urllib.parse import urlsplit

REFUSED = b"HTTP/1.1 401"


@contextmanager
def crowding(url: str, connections: int = 60) -> Iterator[list[int]]:
    """Call a server from many connections; afterwards, the list contains the number of refused calls."""
    address = urlsplit(url)
    program = [sys.executable, "-m", __name__, str(address.hostname), str(address.port), str(connections)]
    crowd = subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert crowd.stdout is not None
    crowd.stdout.readline()  # wait until the calls have started
    refused: list[int] = []
    try:
        yield refused
    finally:
        printed, _ = crowd.communicate()
    refused.append(int(printed))


def main(host: str, port: int, connections: int) -> None:
    """Call until the input ends, then print the number of refused calls."""
    keys, refused = count(), 0
    ready = selectors.DefaultSelector()
    ready.register(sys.stdin, selectors.EVENT_READ)

    def call(connected: socket.socket) -> None:
        key = b64encode(f"made-up-{next(keys)}:".encode()).decode()
        connected.sendall(
            f"GET /v1/orders/x/ HTTP/1.1\r\nHost: {host}\r\nAuthorization: Basic {key}\r\n\r\n".encode()
        )

    for _ in range(connections):
        connected = socket.create_connection((host, port))
        ready.register(connected, selectors.EVENT_READ)
        call(connected)
    print("calls", flush=True)
    while True:
        for event, _ in ready.select():
            if event.fileobj is sys.stdin:
                print(refused)
                return
            assert isinstance(event.fileobj, socket.socket)
            answer = event.fileobj.recv(1 << 16)
            assert answer.startswith(REFUSED), answer
            refused += 1
            call(event.fileobj)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
