"""Benchmark of the time from exec to the first response, against importing Flask."""

import os
import socket
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter

from tests.bench import report, seconds
from tests.support.ports import free_port

ROUNDS = 11


def environment(cache: str) -> dict[str, str]:
    """Return environment variables with a bytecode cache, which every second start has."""
    variables = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**variables, "PYTHONPYCACHEPREFIX": cache}


def seconds_to_response(cache: str) -> float:
    """Return the seconds from exec to the first response of /health/."""
    port = free_port()
    started = perf_counter()
    with subprocess.Popen(
        [sys.executable, "-m", "payment_sandbox", "serve", "--port", str(port)],
        stdout=subprocess.DEVNULL,
        env=environment(cache),
    ) as server:
        connection = connect(port, server)
        connection.sendall(b"GET /health/ HTTP/1.1\r\nHost: x\r\n\r\n")
        assert connection.recv(100).startswith(b"HTTP/1.1 200")
        elapsed = perf_counter() - started
        connection.close()
        server.terminate()
    return elapsed


def connect(port: int, server: subprocess.Popen[bytes]) -> socket.socket:
    """Connect as soon as the server listens."""
    while True:
        try:
            return socket.create_connection(("127.0.0.1", port))
        except ConnectionRefusedError:
            assert server.poll() is None, "the server has ended"


def main() -> None:
    """Report the start of the server against the import of Flask, measured in turn."""
    with tempfile.TemporaryDirectory() as folder:
        cache = str(Path(folder))

        def flask() -> object:
            return subprocess.run([sys.executable, "-c", "import flask"], check=True, env=environment(cache))

        flask()
        seconds_to_response(cache)
        ratios = [seconds_to_response(cache) / seconds(flask) for _ in range(ROUNDS)]
    report("exec to first /health/ / python -c 'import flask'", ratios, "<= 1.4")
