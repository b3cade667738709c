"""Ports that stay free until a test uses them."""

import os
import socket
from contextlib import closing
from itertools import count

_tries = count(os.getpid() * 17)


def free_port() -> int:
    """Return a port on which no server listens, outside the range of ports that the system assigns."""
    while True:
        port = 20_000 + next(_tries) % 12_000
        try:
            with closing(socket.create_server(("127.0.0.1", port))):
                return port
        except OSError:
            continue
