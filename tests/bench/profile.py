"""Profiles a read and a creation, part by part, for ``make profile``.

Profiling slows down Python code but not C code, so the shares are only a guide; the benchmarks count.
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
from tests.bench.peers import BASIC, CREATE, create_object
from tests.support.servers import make_server

REQUESTS: Final = 4000
SLOWEST: Final = 12
PACKAGE: Final = str(Path(payment_sandbox.__file__).parent)
PARTS: Final = {
    "/asyncio/": "event loop",
    "/selectors.py": "event loop",
    "/flask/": "Flask",
    "/werkzeug/": "Werkzeug",
    "/marshmallow/": "marshmallow",
    "/json/": "JSON",
}


def part_of(file: str) -> str:
    """Return the part of the program that a file belongs to."""
    if file.startswith(PACKAGE):
        return "sandbox: " + file.removeprefix(PACKAGE).strip("/").split("/")[0]
    return next((part for fragment, part in PARTS.items() if fragment in file), "the rest of Python")


def profile(server: Server, request: bytes) -> pstats.Stats:
    """Profile the server's thread while it answers requests."""
    listener: Any = server.listener  # the public interface does not expose its thread
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


def seconds_by_part(stats: Any) -> dict[str, float]:
    """Return the seconds of each part; C functions count for the part that calls them."""
    totals: dict[str, float] = defaultdict(float)
    for (file, _, _), (_, _, own_seconds, _, callers) in stats.stats.items():
        if file != "~":
            totals[part_of(file)] += own_seconds
            continue
        for (caller, _, _), (_, _, called_seconds, _) in callers.items():
            totals[part_of(caller)] += called_seconds
    return totals


def show(title: str, stats: pstats.Stats) -> None:
    """Print the parts, then the functions with the most time of their own."""
    totals = seconds_by_part(stats)
    total = sum(totals.values())
    print(f"\n{title}: {total / REQUESTS * 1e6:.0f} us each while profiled")
    for part, taken in sorted(totals.items(), key=lambda item: -item[1]):
        if taken / total > 0.005:
            print(f"  {taken / total:6.1%}  {part}")
    stats.sort_stats("tottime").print_stats(SLOWEST)


def main() -> None:
    """Profile a read, then a creation, on a warmed-up server."""
    with make_server(clock="frozen", seed=1, freeze_memory=True) as server:
        read = http_request("GET", f"/v1/orders/{create_object(server.port, CREATE)}/", b"", BASIC)
        for request in (read, CREATE):
            per_second(server.port, request, REQUESTS)
        show("A read", profile(server, read))
        show("A creation", profile(server, CREATE))


if __name__ == "__main__":
    main()
