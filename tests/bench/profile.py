"""Where the time of a read and of a creation goes, part by part, as ``make profile`` prints it.

Profiling slows Python code and leaves C code as it is, so the shares are a guide; the ratios of the bench count.
"""

import cProfile
import pstats
from collections import defaultdict
from pathlib import Path
from threading import Event
from typing import Any, Final

import payment_sandbox
from payment_sandbox.serving.server import Server
from tests.bench.load import http_request, per_second
from tests.bench.peers import BASIC, CREATE, made
from tests.support.servers import make_server

REQUESTS: Final = 4000
SLOWEST: Final = 12
OWN: Final = str(Path(payment_sandbox.__file__).parent)
PARTS: Final = {
    "/asyncio/": "event loop",
    "/selectors.py": "event loop",
    "/flask/": "Flask",
    "/werkzeug/": "Werkzeug",
    "/marshmallow/": "marshmallow",
    "/json/": "JSON",
}


def part_of(file: str) -> str:
    """The part of the program that a file belongs to."""
    if file.startswith(OWN):
        return "sandbox: " + file.removeprefix(OWN).strip("/").split("/")[0]
    return next((part for piece, part in PARTS.items() if piece in file), "the rest of Python")


def profiled(server: Server, request: bytes) -> pstats.Stats:
    """A profile of the server's thread, while it answers requests."""
    listener: Any = server.listener  # there is no other way to reach its thread
    loop = listener._loop
    profiler, switched = cProfile.Profile(), Event()

    def switch(on: bool) -> None:
        (profiler.enable if on else profiler.disable)()
        switched.set()

    for on in (True, False):
        loop.call_soon_threadsafe(switch, on)
        switched.wait()
        switched.clear()
        if on:
            per_second(server.port, request, REQUESTS)
    return pstats.Stats(profiler)


def shares(stats: Any) -> dict[str, float]:
    """Seconds of each part; what is written in C counts for the part that calls it."""
    found: dict[str, float] = defaultdict(float)
    for (file, _, _), (_, _, own_seconds, _, callers) in stats.stats.items():
        if file != "~":
            found[part_of(file)] += own_seconds
            continue
        for (caller, _, _), (_, _, called_seconds, _) in callers.items():
            found[part_of(caller)] += called_seconds
    return found


def show(what: str, stats: pstats.Stats) -> None:
    """The parts, then the functions that take most by themselves."""
    found = shares(stats)
    whole = sum(found.values())
    print(f"\n{what}: {whole / REQUESTS * 1e6:.0f} us each while profiled")
    for part, taken in sorted(found.items(), key=lambda item: -item[1]):
        if taken / whole > 0.005:
            print(f"  {taken / whole:6.1%}  {part}")
    stats.sort_stats("tottime").print_stats(SLOWEST)


def main() -> None:
    """One server, warmed up; a read, then a creation."""
    with make_server(clock="frozen", seed=1, freeze_memory=True) as server:
        read = http_request("GET", f"/v1/orders/{made(server.port, CREATE)}/", b"", BASIC)
        for request in (read, CREATE):
            per_second(server.port, request, REQUESTS)
        show("A read", profiled(server, read))
        show("A creation", profiled(server, CREATE))


if __name__ == "__main__":
    main()
