"""A long run of ordinary calls, during which memory, threads and files must not grow."""

from concurrent.futures import ThreadPoolExecutor
from typing import Final

import pytest

from tests.attack import FULL, limit, note, scaled
from tests.attack.probe import probing
from tests.attack.server_process import Project, ServerProcess, Usage, run_server
from tests.support.driver import by

CLIENTS: Final = 4
CALLS_EACH: Final = 8  # calls per order
ROUNDS: Final = 10
MEMORY_GROWTH_MIB: Final = 60
GROWTH_MAX: Final = 24


@pytest.mark.timeout(3600)
def test_nothing_grows_in_a_long_run() -> None:
    """Orders, payments, captures and refunds in projects that are created and deleted leave nothing behind."""
    calls = scaled(300_000, 2400)
    with run_server() as server:
        _round(server, calls // ROUNDS)  # warm up: load and cache what the first calls need
        before = after = server.usage()
        with probing(server, "soak"):
            for number in range(1, ROUNDS):
                _round(server, calls // ROUNDS)
                after = server.usage()
                if FULL:
                    note(f"after {(number + 1) * calls // ROUNDS} calls", _summarize(after))
        limit("memory growth", after.memory_mib - before.memory_mib, MEMORY_GROWTH_MIB, "MiB")
        limit("growth of threads", after.threads - before.threads, GROWTH_MAX)
        limit("growth of files", after.files - before.files, GROWTH_MAX)


def _summarize(usage: Usage) -> str:
    return f"{usage.memory_mib:.0f} MiB, {usage.threads} threads, {usage.files} files"


def _round(server: ServerProcess, calls: int) -> None:
    with ThreadPoolExecutor(CLIENTS) as pool:
        list(pool.map(lambda _: _complete_orders(server, calls // CLIENTS // CALLS_EACH), range(CLIENTS)))


def _complete_orders(server: ServerProcess, orders: int) -> None:
    with server.project(clock="frozen") as project:
        for _ in range(orders):
            _complete_order(project)
        project.expect("DELETE", "/control/project/")


def _complete_order(project: Project) -> None:
    order = project.order(by("credit-card", capture_mode="manual"))
    path = f"/v1/orders/{order['id']}"
    project.expect("POST", f"/control/orders/{order['id']}/act/", {"actor": "customer", "action": "pay"})
    project.expect("GET", f"{path}/")
    captures = f"{path}/transactions/{order['transactions'][0]['id']}/captures/amount/"
    project.expect("POST", captures, {"amount": 600})
    project.expect("POST", f"{path}/refunds/", {"amount": 100})
    project.expect("GET", f"{path}/?fields[]=amount_details")
    project.expect("POST", "/control/clock/advance/", {"by": "PT1M"})
    project.expect("GET", "/control/webhooks/")
