"""A snapshot with a missing value is either refused or works on every page."""

import copy
import re
from collections.abc import Iterator
from typing import Any

import pytest
import requests

from tests.support.driver import LINES, LINES_TOTAL, Sandbox, by, card

Path = tuple[str | int, ...]


def place_orders(sandbox: Sandbox) -> list[str]:
    """Place orders in many states; return their ids."""
    orders = [
        sandbox.place(),  # hosted and open
        sandbox.place(card(capture_mode="manual"), amount=LINES_TOTAL, order_lines=LINES),
        sandbox.place(by("bank-transfer")),
        sandbox.place(card(payment_method_details={"one_click_type": "first"})),
    ]
    for order in (orders[1], orders[3]):
        sandbox.acted(order, "customer pay")
    sandbox.post(f"/v1/orders/{orders[3]['id']}/refunds/", {"amount": 5})
    return [str(order["id"]) for order in orders]


def scalar_paths(value: Any, path: Path = ()) -> Iterator[Path]:
    """Yield the path of each scalar value; the first item of a list stands for all of its items."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from scalar_paths(inner, (*path, key))
    elif isinstance(value, list):
        for index, inner in enumerate(value[:4] if path == ("orders",) else value[:1]):
            yield from scalar_paths(inner, (*path, index))
    elif value is not None:
        yield path


def with_null(snapshot: Any, path: Path) -> Any:
    """Return a copy of the snapshot with null at the path."""
    damaged = copy.deepcopy(snapshot)
    parent = damaged
    for step in path[:-1]:
        parent = parent[step]
    parent[path[-1]] = None
    return damaged


def problems(sandbox: Sandbox, orders: list[str]) -> Iterator[str]:
    """Yield the pages and calls that fail."""
    project_id = sandbox.get("/control/project/").json()["project_id"]
    pages = [
        f"/dashboard/{project_id}/{view}/"
        for view in ("orders", "requests", "mistakes", "simulate", "settings")
    ]
    calls = [f"/control/{name}/" for name in ("timeline", "agenda", "webhooks", "cards", "orders", "state")]
    for order_id in orders:
        pages += [f"/dashboard/{project_id}/orders/{order_id}/", f"/pay/{project_id}/{order_id}/"]
        calls += [f"/v1/orders/{order_id}/?fields[]=order_line_details&fields[]=amount_details"]
        calls += [f"/control/orders/{order_id}/"]
    for path in (*pages, *calls):
        accept = {"Accept": "text/html" if path in pages else "*/*"}
        answer = requests.get(f"{sandbox.url}{path}", auth=(sandbox.key, ""), headers=accept)
        if answer.status_code >= 500:
            yield f"{path}: {answer.status_code}"
    advanced = sandbox.post("/control/clock/advance/", {"by": "P40D"})
    if advanced.status_code >= 500 or any("failed" in event for event in advanced.json().get("events", ())):
        yield f"advance: {advanced.text[:300]}"


def test_an_order_without_an_expiry_is_refused(sandbox: Sandbox) -> None:
    """An order without an expiry is refused."""
    sandbox.place()
    snapshot = sandbox.get("/control/state/").json()
    snapshot["orders"][0]["expires_at"] = None
    answer = requests.put(f"{sandbox.url}/control/state/", json=snapshot, auth=(sandbox.key, ""))
    assert answer.status_code == 400
    assert [violation["path"] for violation in answer.json()["error"]["violations"]] == [
        "state.orders[0].expires_at"
    ]


@pytest.mark.prove
def test_damaged_snapshots_fail_on_no_page(sandbox: Sandbox) -> None:
    """With any value of the snapshot replaced by null, no page fails."""
    orders = place_orders(sandbox)
    snapshot = sandbox.get("/control/state/").json()
    attempted, restored, failures = 0, 0, []
    for path in scalar_paths(snapshot):
        attempted += 1
        answer = requests.put(
            f"{sandbox.url}/control/state/",
            json=with_null(snapshot, path),
            auth=(sandbox.key, ""),
        )
        if answer.status_code != 200:
            if answer.status_code >= 500:
                failures.append(f"{path}: {answer.status_code}")
            continue
        restored += 1
        failures += [
            f"{'.'.join(map(str, path))} is null: {problem}" for problem in problems(sandbox, orders)
        ]
    assert (attempted > 150, restored > 10, re.sub(", ", "\n", str(failures))) == (True, True, "[]")
