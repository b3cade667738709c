"""Snapshots and scenarios with random changes are refused, or work completely."""

import json
import random  # noqa: TID251 (seeded: every run is the same)
from collections.abc import Iterator
from itertools import chain
from typing import Any, Final
from urllib.parse import urlsplit

import pytest

from payment_sandbox.delivery.receivers import destination_of
from payment_sandbox.methods import METHOD_NAMES
from payment_sandbox.projects.registry import FIRST_API_KEY
from payment_sandbox.serving.server import Server
from payment_sandbox.ui.dashboard.frame import VIEW_TITLES
from payment_sandbox.web.call import ConnectionCut
from tests.attack import note, scaled
from tests.attack.changes import mutate
from tests.support.blocks import differs
from tests.support.driver import CUSTOMER, LINES, LINES_TOTAL, by
from tests.support.servers import make_server
from tests.support.shop import ShopInServer

SEED: Final = 12
ORDER: Final = {"currency": "EUR", "amount": LINES_TOTAL, "order_lines": LINES, "customer": CUSTOMER}
LIMITS: Final = {"max_events": 200, "timeout": 5}
ValuePath = tuple[str | int, ...]


class Caller:
    """Calls an application without sockets, receives its webhooks, and records internal errors."""

    def __init__(self, server: Server, key: str = FIRST_API_KEY) -> None:
        project = server.registry.find(key)
        if project is not None:
            destination_of(project).receiver = ShopInServer()
        self._client = server.app.test_client()
        self._key = key
        self.failures: list[str] = []

    def call(self, method: str, path: str, body: Any = None, **headers: str) -> Any:
        """Return the parsed answer, or its text."""
        try:
            answer = self._client.open(
                path,
                method=method,
                data=json.dumps(body) if body is not None else None,
                content_type="application/json" if body is not None else None,
                auth=(self._key, ""),
                headers=headers,
            )
        except ConnectionCut:  # a fault of the scenario
            return {}
        text = answer.get_data(as_text=True)
        answer.close()  # sends the webhooks
        if answer.status_code == 500:  # other 5xx statuses may be configured faults
            self.failures.append(f"{method} {path}: {answer.status_code}")
        self.status = answer.status_code
        return json.loads(text) if answer.mimetype == "application/json" else text


@pytest.fixture
def server() -> Iterator[Server]:
    """A separate server, with the same ids in each run."""
    with make_server(clock="frozen", seed=3) as separate_server:
        yield separate_server


def _busy_snapshot(caller: Caller) -> Any:
    """Return the snapshot of a project with all kinds of orders, payments and records."""
    caller.call("PATCH", "/control/project/", {"mode": "live", "webhook_url": "http://127.0.0.1:9/"})
    rules = [{"when": {"refund": True}, "then": {"processor": "settles", "after": "P1D"}}]
    faults = [{"when": {"path": "/v1/nothing/"}, "then": {"status": 503}}]
    caller.call("PUT", "/control/scenario/", {"name": "mine", "rules": rules, "faults": faults})
    caller.call("PUT", "/control/faults/", {"webhooks": [{"when": {"attempt": 9}, "then": {"drop": True}}]})
    orders = [
        caller.call("POST", "/v1/orders/", {**ORDER, "transactions": [by(name)]}) for name in METHOD_NAMES
    ]
    manual = by("credit-card", capture_mode="manual", payment_method_details={"one_click_type": "first"})
    delayed = by("credit-card", capture_mode="delayed", expiration_period="P1D")
    returning = {"return_url": "https://shop.example/paid", "extra": {"note": [1, "ü"]}}
    orders += [
        caller.call("POST", "/v1/orders/", {**ORDER, **returning, "transactions": [transaction]})
        for transaction in (manual, delayed, manual)
    ]
    orders.append(caller.call("POST", "/v1/orders/", ORDER))
    for order in orders:
        act = f"/control/orders/{order['id']}/act/"
        caller.call("POST", act, {"actor": "customer", "action": "pay"})
        caller.call("POST", act, {"actor": "screening", "action": "approve"})
        caller.call("POST", act, {"actor": "bank", "action": "credit", "amount": 700})
    lines = {"order_lines": [{"merchant_order_line_id": "socks", "quantity": 1}]}
    for order, operation, body in (
        (orders[-4], "orderlines", lines),
        (orders[-2], "amount", {"amount": 300}),
    ):
        path = f"/v1/orders/{order['id']}/transactions/{order['transactions'][0]['id']}"
        caller.call("POST", f"{path}/captures/{operation}/", body)
        caller.call("POST", f"{path}/voids/{operation}/", body)
    caller.call("POST", f"/v1/orders/{orders[-2]['id']}/refunds/", {"amount": 100})
    code = caller.call("POST", "/v1/bankqr/", {"amount": 500, "description": "Coffee"})
    caller.call("POST", f"/control/bankqr/{code['id']}/scan/", {"issuer_id": "SBXANL2A"})
    caller.call("POST", "/v1/bankqr/", {"amount": 500, "amount_changeable": True, "amount_max": 900})
    assert not caller.failures, caller.failures
    return caller.call("GET", "/control/state/")


@pytest.mark.timeout(3600)
def test_a_changed_snapshot_is_refused_or_harms_only_its_project(server: Server) -> None:
    """Snapshots with null for each value, and with random changes, are refused, or harm no other project."""
    neighbour = Caller(server)
    random_source, snapshot = random.Random(SEED), _busy_snapshot(neighbour)
    count, accepted = scaled(6000, 120), 0
    without_a_value = (with_null(snapshot, path) for path in value_paths(snapshot))
    for mutated in chain(without_a_value, (mutate(snapshot, random_source) for _ in range(count))):
        project, key = server.registry.create({"clock": "frozen"})
        caller = Caller(server, key)
        caller.call("PUT", "/control/state/", mutated)
        assert not caller.failures, f"{caller.failures} after {differs(snapshot, mutated)}"
        if caller.status == 200:
            accepted += 1
            _exercise(caller)
            caller.call("POST", "/control/reset/")
            assert caller.status == 200, f"no reset after {differs(snapshot, mutated)}"
        _exercise_server(neighbour)
        assert not neighbour.failures, f"{neighbour.failures[:3]} after {differs(snapshot, mutated)}"
        server.registry.delete(project)
    note("changed snapshots, restored snapshots", f"{count}, {accepted}")


def value_paths(value: Any, path: ValuePath = ()) -> Iterator[ValuePath]:
    """Yield the path of each value; the first item of a list, and the first four orders, stand for all."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from value_paths(inner, (*path, key))
    elif isinstance(value, list):
        for index, inner in enumerate(value[: 4 if path == ("orders",) else 1]):
            yield from value_paths(inner, (*path, index))
    elif value is not None:
        yield path


def with_null(document: Any, path: ValuePath) -> Any:
    """Return a copy of a document with null at the path."""
    if not path:
        return None
    copy: Any = dict(document) if isinstance(document, dict) else list(document)
    copy[path[0]] = with_null(document[path[0]], path[1:])
    return copy


def _exercise(caller: Caller) -> None:
    """Read everything, act as the customers, and advance the clock."""
    snapshot = caller.call("GET", "/control/state/")
    if "error" in snapshot:
        return
    for path in ("agenda", "webhooks", "project", "scenario", "faults", "clock", "journal"):
        caller.call("GET", f"/control/{path}/")
    project_id = caller.call("GET", "/control/project/")["project_id"]
    for view in VIEW_TITLES:
        caller.call("GET", f"/dashboard/{project_id}/{view}/")
    for order in snapshot["orders"]:
        order_id = order["id"]
        caller.call("GET", f"/dashboard/{project_id}/orders/{order_id}/")
        shown = caller.call(
            "GET", f"/v1/orders/{order_id}/?fields[]=amount_details&fields[]=order_line_details"
        )
        pages = [
            shown.get("order_url"),
            *(attempt.get("payment_url") for attempt in shown.get("transactions", ())),
        ]
        for page in filter(None, pages):
            caller.call("GET", urlsplit(page if "://" in page else f"//{page}").path)
        caller.call("POST", f"/control/orders/{order_id}/act/", {"actor": "customer", "action": "pay"})
        caller.call("POST", f"/v1/orders/{order_id}/refunds/", {"amount": 1})
    caller.call("POST", "/control/clock/advance/", {"by": "P8D", **LIMITS})
    for order in snapshot["orders"]:
        caller.call("GET", f"/v1/orders/{order['id']}/")
    caller.call("GET", "/control/state/")


def _exercise_server(caller: Caller) -> None:
    """Create an order, and read the pages and lists of all projects."""
    caller.call("POST", "/v1/orders/", {**ORDER, "transactions": [by("wallet-qr")]})
    assert caller.status == 201
    for path in ("/dashboard/", "/control/projects/", "/control/projects/review/"):
        caller.call("GET", path)
        assert caller.status == 200, path


@pytest.mark.timeout(3600)
def test_a_changed_scenario_is_refused_or_works(server: Server) -> None:
    """Ready scenarios with random changes are refused, or decide an order."""
    random_source, caller = random.Random(SEED), Caller(server)
    scenarios = [
        server.registry.catalogue.find(name).document for name in server.registry.catalogue.scenarios
    ]
    count, accepted = scaled(6000, 200), 0
    for _ in range(count):
        scenario = mutate(random_source.choice(scenarios), random_source)
        if any(word in json.dumps(scenario) for word in ("hang", "latency")):
            continue  # these faults take real time
        caller.call("PUT", "/control/scenario/", scenario)
        if caller.status == 200:
            accepted += 1
            order = caller.call("POST", "/v1/orders/", _order(random_source))
            if "id" in order:
                caller.call(
                    "POST", f"/control/orders/{order['id']}/act/", {"actor": "customer", "action": "pay"}
                )
            caller.call("POST", "/control/clock/advance/", {"by": "PT1H", **LIMITS})
            caller.call("POST", "/control/reset/")
    caller.call("DELETE", "/control/scenario/")
    note("changed scenarios, activated scenarios", f"{count}, {accepted}")
    assert not caller.failures, caller.failures[:5]


def _order(random_source: random.Random) -> Any:
    return {**ORDER, "transactions": [by(random_source.choice(METHOD_NAMES))]}
