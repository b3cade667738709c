"""Concurrent operations on shared orders keep the amounts of all orders consistent."""

import random  # noqa: TID251 (seeded: every run is the same)
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import requests

from tests.attack import Report
from tests.attack.probe import probing
from tests.attack.server_process import Project, ServerProcess, run_server
from tests.support.driver import by

CLIENTS: Final = 8
ORDERS: Final = 12
AMOUNT: Final = 1000
ALLOWED_STATUSES: Final = (200, 201, 400, 404, 409, 412)


def attack(report: Report) -> None:
    """Attack in memory and with a state file; the clients of two projects know each other's orders."""
    with run_server() as server, probing(server, report, "chaos"):
        _run_operations(server, report)
    with TemporaryDirectory() as folder, run_server("--state", str(Path(folder) / "state.db")) as server:
        _run_operations(server, report)


def _run_operations(server: ServerProcess, report: Report) -> None:
    steps = report.size.count(12_000, 400)
    with server.project(mode="live", clock="frozen") as one, server.project(clock="frozen") as other:
        orders = [_place_order(project) for project in (one, one, other) for _ in range(ORDERS)]
        with ThreadPoolExecutor(CLIENTS) as pool:
            tasks = [(one, orders, seed, steps // CLIENTS, report) for seed in range(CLIENTS - 2)]
            tasks += [(other, orders, seed, steps // CLIENTS, report) for seed in range(CLIENTS - 2, CLIENTS)]
            list(pool.map(lambda task: _client(*task), tasks))
        report.note("operations on shared orders", steps)
        for project in (one, other):
            _check_books(project, report)


def _place_order(project: Project) -> Any:
    return {**project.order(by("credit-card", capture_mode="manual"), amount=AMOUNT), "of": project.key}


def _client(project: Project, orders: list[Any], seed: int, steps: int, report: Report) -> None:
    source = random.Random(seed)
    with Project(project.url, project.key) as own:
        for _ in range(steps):
            order = source.choice(orders)
            answer = _step(own, source, order)
            is_own = order["of"] == own.key
            exchange = (answer.request.method, answer.request.url, answer.status_code, answer.text[:200])
            report.expect("every operation is answered", answer.status_code in ALLOWED_STATUSES, exchange)
            is_shown = answer.status_code < 300 and order["id"] in answer.text
            report.expect("no client reaches an order of another project", is_own or not is_shown, exchange)


def _step(own: Project, source: random.Random, order: Any) -> requests.Response:
    path, transaction = f"/v1/orders/{order['id']}", order["transactions"][0]["id"]
    amount = {"amount": source.choice((1, 100, 300, 999))}
    calls: list[tuple[str, str, Any]] = [
        ("GET", f"{path}/", None),
        ("POST", f"/control/orders/{order['id']}/act/", {"actor": "customer", "action": "pay"}),
        ("POST", f"{path}/transactions/{transaction}/captures/amount/", amount),
        ("POST", f"{path}/transactions/{transaction}/captures/", {}),
        ("POST", f"{path}/transactions/{transaction}/voids/amount/", amount),
        ("POST", f"{path}/refunds/", amount),
        ("PUT", f"{path}/", {"description": "changed"}),
        ("DELETE", f"{path}/", None),
        ("POST", "/control/clock/advance/", {"by": "PT1M"}),
    ]
    weights = (4, 2, 3, 0.2, 2, 4, 1, 0.2, 0.5)
    ((method, call_path, body),) = source.choices(calls, weights)
    return own.call(method, call_path, body)


def _check_books(project: Project, report: Report) -> None:
    """Check that the captured, voided and refunded amounts of every order add up."""
    checked = 0
    state = project.expect("GET", "/control/state/")
    by_id = {order["id"]: order for order in state["orders"]}
    for order in state["orders"]:
        refunded = sum(by_id[entry["refund_id"]]["amount_cents"] for entry in order["refunds"])
        for attempt in order["transactions"]:
            authorization = attempt["authorization"]
            if authorization is None:
                continue
            checked += 1
            entries = authorization["entries"]
            captured = sum(entry["amount_cents"] for entry in entries if entry["taken"] == "captured")
            voided = sum(entry["amount_cents"] for entry in entries if entry["taken"] == "voided")
            report.expect("no more is taken than was authorized", captured + voided <= AMOUNT, order["id"])
            report.expect("no more is refunded than was captured", refunded <= captured, order["id"])
        shown = project.expect("GET", f"/v1/orders/{order['id']}/?fields[]=amount_details")
        if order["refund_of_order_id"] is None:
            amounts = shown["amount_details"]
            report.expect("no amount is negative", amounts and min(amounts.values()) >= 0, amounts)
    report.expect("there are authorizations to check", checked > 0)
