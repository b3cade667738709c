"""From exec to the first answer, against importing Flask alone."""

import os
import socket
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter

from tests.bench import report, seconds

ROUNDS = 11


def environment(cache: str) -> dict[str, str]:
    """Bytecode is kept, as it is for everybody who starts the sandbox twice."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**kept, "PYTHONPYCACHEPREFIX": cache}


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as unused:
        port: int = unused.getsockname()[1]
    return port


def until_answer(cache: str) -> float:
    """Seconds from exec to the first answer of /health/."""
    port = free_port()
    begun = perf_counter()
    with subprocess.Popen(
        [sys.executable, "-m", "payment_sandbox", "serve", "--port", str(port)],
        stdout=subprocess.DEVNULL,
        env=environment(cache),
    ) as served:
        connection = _connected(port)
        connection.sendall(b"GET /health/ HTTP/1.1\r\nHost: x\r\n\r\n")
        assert connection.recv(100).startswith(b"HTTP/1.1 200")
        taken = perf_counter() - begun
        connection.close()
        served.terminate()
    return taken


def _connected(port: int) -> socket.socket:
    while True:
        try:
            return socket.create_connection(("127.0.0.1", port))
        except ConnectionRefusedError:
            continue


def main() -> None:
    """The two in turn."""
    with tempfile.TemporaryDirectory() as folder:
        cache = str(Path(folder))

        def flask() -> object:
            return subprocess.run([sys.executable, "-c", "import flask"], check=True, env=environment(cache))

        flask()
        until_answer(cache)
        ratios = [until_answer(cache) / seconds(flask) for _ in range(ROUNDS)]
    report("exec to first /health/ / python -c 'import flask'", ratios, "<= 1.4")
