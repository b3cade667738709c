"""Benchmark of the request log of ``serve``: its cost per request."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from tests.bench import report
from tests.bench.bodies import BODY
from tests.bench.http import HEADERS
from tests.bench.load import Client, http_request, per_second
from tests.support.ports import free_port

REQUESTS = 3000
ROUNDS = 9
HEADER_LINES = [f"{name}: {value}" for name, value in HEADERS.items()]
TICKS_INDEX = 11  # user and system time in /proc/PID/stat, after the name of the program


class Serve(NamedTuple):
    """A ``serve`` in a separate process that prints into a file."""

    port: int
    process_id: int

    def seconds(self) -> float:
        """Return its processor time so far; Linux only."""
        fields = Path(f"/proc/{self.process_id}/stat").read_text().rpartition(")")[2].split()
        return sum(map(int, fields[TICKS_INDEX : TICKS_INDEX + 2])) / os.sysconf("SC_CLK_TCK")


class Pace(NamedTuple):
    """The requests of a server per second, and per second of processor time."""

    in_time: float
    in_processor_time: float


@contextmanager
def run_serve(folder: Path, *options: str) -> Iterator[Serve]:
    """Start ``serve``, and wait until it is ready."""
    port = free_port()
    command = [sys.executable, "-m", "payment_sandbox", "serve", "--clock", "frozen", "--port", str(port)]
    with open(folder / f"printed-{port}", "wb") as printed:
        process = subprocess.Popen([*command, *options], stdout=printed)
    try:
        while process.poll() is None:
            try:
                Client(port, b"").socket.close()
                break
            except ConnectionRefusedError:
                continue
        yield Serve(port, process.pid)
    finally:
        process.terminate()
        process.wait()


def measure(serve: Serve, request: bytes) -> Pace:
    """Measure one run."""
    before = serve.seconds()
    in_time = per_second(serve.port, request, REQUESTS)
    return Pace(in_time, REQUESTS / (serve.seconds() - before))


def create_order(serve: Serve) -> str:
    """Create an order, and return its path."""
    client = Client(serve.port, http_request("POST", "/v1/orders/", BODY, *HEADER_LINES))
    client.send()
    while not client.read():
        pass
    client.socket.close()
    order = json.loads(client.received.partition(b"\r\n\r\n")[2])
    return f"/v1/orders/{order['id']}/"


def main() -> None:
    """Report creations and reads, with and without a request log, measured in turn."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory()))
        servers = [stack.enter_context(run_serve(folder, *options)) for options in ((), ("--quiet",))]
        creation = http_request("POST", "/v1/orders/", BODY, *HEADER_LINES)
        requests = {
            "creations": [creation, creation],
            "reads": [http_request("GET", create_order(serve), b"", *HEADER_LINES) for serve in servers],
        }
        for kind, sent in requests.items():
            rounds = [
                [measure(serve, request) for serve, request in zip(servers, sent, strict=True)]
                for _ in range(1 + ROUNDS)
            ][1:]
            times = [loud.in_time / quiet.in_time for loud, quiet in rounds]
            report(f"{kind} per second of serve / of serve --quiet", times, ">= 0.9")
            used = [loud.in_processor_time / quiet.in_processor_time for loud, quiet in rounds]
            report(f"{kind} per processor second of serve / of serve --quiet", used, ">= 0.9")


if __name__ == "__main__":
    main()
