"""Many orders: what each keeps, whether they slow each other, and how long the longest wait is."""

import gc
import tracemalloc
from statistics import median
from time import perf_counter
from typing import Any

from payment_sandbox.serving.server import Server
from tests.bench import report
from tests.bench.bodies import ORDER

ORDERS = 100_000
MEASURED = 20_000


def creations(count: int) -> list[float]:
    """Create orders through the application, without sockets; seconds for each."""
    server = Server(clock="frozen", seed=1, freeze_memory=True)
    client = server.app.test_client()
    options: dict[str, Any] = {"json": ORDER, "auth": ("sandbox-key", "")}
    taken = []
    for _ in range(count):
        begun = perf_counter()
        client.post("/v1/orders/", **options)
        taken.append(perf_counter() - begun)
    server.stop()
    return taken


def kept_kib() -> float:
    """Memory per stored order, its answer's bytes included, the journal's fixed share left out."""
    server = Server(clock="frozen", seed=1)
    client = server.app.test_client()
    options: dict[str, Any] = {"json": ORDER, "auth": ("sandbox-key", "")}
    for _ in range(10_000):  # the journal is full then, and grows no more
        client.post("/v1/orders/", **options)
    gc.collect()
    tracemalloc.start()
    for _ in range(MEASURED):
        client.post("/v1/orders/", **options)
    gc.collect()
    kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    server.stop()
    return kept / MEASURED / 1024


def main() -> None:
    """Memory, steadiness and stalls."""
    report("KiB kept per stored order / 5 KiB", kept_kib() / 5, "<= 1")
    gc.collect()
    taken = creations(ORDERS)
    # the first hundred warm up; windows of a thousand, by their medians, so that one stall is no slope
    first, last = median(taken[100:1100]), median(taken[-1000:])
    report(f"creation rate at {ORDERS} orders / that of the first 1,000", first / last, ">= 0.95")
    report("median creation / 1 ms", 1000 * median(taken), "<= 1")
    report("longest creation on the way / 50 ms", max(taken) / 0.05, "<= 1")
