"""Many orders: what each keeps, whether they slow each other, and how long the longest wait is."""

import gc
import tracemalloc
from statistics import median
from time import perf_counter
from typing import Any

from tests.bench import report
from tests.bench.bodies import ORDER
from tests.bench.peers import ORDER as ORDER_SENT
from tests.support.servers import make_server

ORDERS = 100_000
MEASURED = 10_000
JOURNAL_FULL = 11_000


def creations(count: int) -> list[float]:
    """Create orders through the application, without sockets; seconds for each."""
    server = make_server(clock="frozen", seed=1, freeze_memory=True)
    client = server.app.test_client()
    options: dict[str, Any] = {"json": ORDER, "auth": ("sandbox-key", "")}
    taken = []
    for _ in range(count):
        begun = perf_counter()
        client.post("/v1/orders/", **options).close()
        taken.append(perf_counter() - begun)
    server.stop()
    return taken


def kept_kib() -> float:
    """Memory per stored order with a customer and a line; what is limited in all, such as the journal, left out."""
    server = make_server(clock="frozen", seed=1)
    client = server.app.test_client()
    options: dict[str, Any] = {
        "data": ORDER_SENT,
        "auth": ("sandbox-key", ""),
        "content_type": "application/json",
    }
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
    """Memory, steadiness and stalls."""
    report("KiB kept per stored order / 1.5 KiB", kept_kib() / 1.5, "<= 1")
    gc.collect()
    taken = creations(ORDERS)
    # the first hundred warm up; windows of a thousand, by their medians, so that one stall is no slope
    first, last = median(taken[100:1100]), median(taken[-1000:])
    report(f"creation rate at {ORDERS} orders / that of the first 1,000", first / last, ">= 0.95")
    report("longest creation on the way / 25 ms", max(taken) / 0.025, "<= 1")
