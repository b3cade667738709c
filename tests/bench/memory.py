"""Benchmark of many orders: memory per order, the effect of their number, and the longest response time."""

import gc
import tracemalloc
from statistics import median
from time import perf_counter
from typing import Any

from werkzeug.test import Client

from payment_sandbox.cli.server_process import bound_pauses
from tests.bench import report
from tests.bench.bodies import ORDER, ORDER_WITH_LINE
from tests.support.servers import make_server

ORDERS = 100_000
MEASURED = 10_000
JOURNAL_FULL = 11_000


def creations(count: int) -> list[float]:
    """Create orders through the application, without sockets; return the seconds of each."""
    server = make_server(clock="frozen", seed=1)
    client = Client(server.app)
    options: dict[str, Any] = {"json": ORDER, "auth": ("sandbox-key", "")}
    durations = []
    for _ in range(count):
        started = perf_counter()
        client.post("/v1/orders/", **options).close()
        durations.append(perf_counter() - started)
    server.stop()
    return durations


def kib_per_order() -> float:
    """Return KiB per stored order with a customer and a line, without bounded data such as the journal."""
    server = make_server(clock="frozen", seed=1)
    client = Client(server.app)
    options: dict[str, Any] = {"json": ORDER_WITH_LINE, "auth": ("sandbox-key", "")}
    tracemalloc.start()
    for _ in range(JOURNAL_FULL):
        client.post("/v1/orders/", **options).close()
    gc.collect()
    before, _ = tracemalloc.get_traced_memory()
    for _ in range(MEASURED):
        client.post("/v1/orders/", **options).close()
    gc.collect()
    after, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    server.stop()
    return (after - before) / MEASURED / 1024


def main() -> None:
    """Report memory, slowdown and stalls."""
    report("KiB kept per stored order / 3 KiB", kib_per_order() / 3, "<= 1")
    bound_pauses()
    durations = creations(ORDERS)
    # without a warm-up of a hundred; medians of a thousand, so that a single stall does not count
    first, last = median(durations[100:1100]), median(durations[-1000:])
    report(f"creation rate at {ORDERS} orders / that of the first 1,000", first / last, ">= 0.95")
    report("longest creation on the way / 25 ms", max(durations) / 0.025, "<= 1")
