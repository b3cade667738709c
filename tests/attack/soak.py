"""A long run of ordinary calls: memory, threads and files stay where they are."""

from concurrent.futures import ThreadPoolExecutor
from typing import Final

from tests.attack import Report
from tests.attack.probe import probing
from tests.attack.served import Project, Served, Use, served
from tests.support.driver import by

CLIENTS: Final = 4
CALLS_EACH: Final = 8  # calls per order
ROUNDS: Final = 10
MEMORY_GROWTH_MIB: Final = 60
SPARE: Final = 24


def attack(report: Report) -> None:
    """Orders, payments, captures, refunds and reads in projects that come and go."""
    calls = report.size.count(300_000, 2400)
    with served() as server:
        _round(server, calls // ROUNDS)  # what is loaded and cached once
        before = after = server.use()
        with probing(server, report, "soak"):
            for number in range(1, ROUNDS):
                _round(server, calls // ROUNDS)
                after = server.use()
                if report.size.strict:
                    report.note(f"after {(number + 1) * calls // ROUNDS} calls", _shown(after))
        report.limit("memory grown", after.memory_mib - before.memory_mib, MEMORY_GROWTH_MIB, "MiB")
        report.limit("threads grown", after.threads - before.threads, SPARE)
        report.limit("files grown", after.files - before.files, SPARE)


def _shown(use: Use) -> str:
    return f"{use.memory_mib:.0f} MiB, {use.threads} threads, {use.files} files"


def _round(server: Served, calls: int) -> None:
    with ThreadPoolExecutor(CLIENTS) as many:
        list(many.map(lambda _: _trade(server, calls // CLIENTS // CALLS_EACH), range(CLIENTS)))


def _trade(server: Served, orders: int) -> None:
    with server.project(clock="frozen") as project:
        for _ in range(orders):
            _order(project)
        project.expect("DELETE", "/control/project/")


def _order(project: Project) -> None:
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
