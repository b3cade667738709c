"""Quotas of a server: 429 for one project too many, 507 for data beyond a quota (SET-08)."""

from collections.abc import Callable, Iterator
from typing import Any, Final

import pytest
import requests

from payment_sandbox.projects.quotas import MEGABYTE, Quotas
from payment_sandbox.serving.server import Server
from tests.support.driver import LINES, LINES_TOTAL, Sandbox, by, card
from tests.support.servers import make_server
from tests.support.shop import Shop

LIMIT: Final = 60_000
FULL: Final = 507


@pytest.fixture
def small_server() -> Iterator[Server]:
    """A server with a low storage quota per project."""
    with make_server(quotas=Quotas(orders=60, bytes=LIMIT)) as server:
        yield server


def refusal_message(answer: requests.Response) -> str:
    """Assert a refusal by a quota; return its message."""
    error = answer.json()["error"]
    assert (answer.status_code, error["type"]) == (FULL, "InsufficientStorage")
    assert "reset or delete a project" in error["value"]
    return str(error["value"])


def fill(sandbox: Sandbox, length: int = 2000) -> None:
    """Create smaller and smaller orders until nothing fits any more."""
    while length:
        if sandbox.create(card(), description="x" * length).status_code == FULL:
            length //= 2
    assert "(--max-megabytes)" in refusal_message(sandbox.create(card()))


def test_quotas() -> None:
    """Existing projects and orders still work, and a reset makes room."""
    with make_server(quotas=Quotas(projects=2, orders=1)) as server:
        sandbox = Sandbox(server)
        order = sandbox.place(card())
        assert "this one has 1, and this change would add 1" in refusal_message(sandbox.create(card()))
        assert sandbox.pay(order)["status"] == "completed"
        refusal_message(sandbox.post(f"/v1/orders/{order['id']}/refunds/", {"amount": 1}))
        project = requests.post(f"{server.url}/control/projects/", timeout=60)
        assert project.status_code == 429
        assert "--max-projects" in project.json()["error"]["value"]
        sandbox.post("/control/reset/")
        assert sandbox.create(card()).status_code == 201
        sandbox.delete("/control/project/")
        assert requests.post(f"{server.url}/control/projects/", timeout=60).status_code == 201


def test_quotas_of_a_server() -> None:
    """Projects share the quota; new projects are refused, too, and a deletion makes room."""
    with make_server(quotas=Quotas(total_bytes=LIMIT)) as server:
        first, second = Sandbox(server), Sandbox(server)
        while first.create(card(), description="x" * 5000).status_code == 201:
            pass
        large = {"description": "x" * 20_000}
        assert "(--max-megabytes-in-all)" in refusal_message(second.create(card(), **large))
        url = f"{server.url}/control/projects/"
        refusal_message(requests.post(url, json={"aliases": MANY}, timeout=60))
        first.delete("/control/project/")
        assert second.create(card(), **large).status_code == 201


@pytest.mark.parametrize(
    ("quotas", "option"),
    [(Quotas(orders=5), "--max-orders"), (Quotas(bytes=MEGABYTE), "--max-megabytes")],
    ids=["orders", "bytes"],
)
def test_a_snapshot_beyond_a_quota_is_refused_whole(sandbox: Sandbox, quotas: Quotas, option: str) -> None:
    """A snapshot beyond a quota changes nothing; one that fits is restored."""
    for _ in range(40):
        sandbox.place(card(), description="x" * 50_000)
    with make_server(quotas=quotas) as server:
        receiver = Sandbox(server)
        receiver.place(card())
        before = receiver.get("/control/state/").json()
        assert f"({option})" in refusal_message(
            receiver.put("/control/state/", sandbox.get("/control/state/").json())
        )
        assert receiver.get("/control/state/").json() == before
        assert receiver.put("/control/state/", before).status_code == 200


MANY: Final = {f"button-{number:03}-{'x' * 39}": "credit-card" for number in range(1000)}
BIG: Final = {
    "name": "big",
    "rules": [{"when": {"merchant_order_id": "x" * 900}, "then": {"customer": "pays"}}] * 90,
}
Call = Callable[[Sandbox, dict[str, Any]], requests.Response]
STORING_CALLS: Final[dict[str, Call]] = {
    "an order": lambda sandbox, order: sandbox.create(card(), description="x" * LIMIT),
    "an update": lambda sandbox, order: sandbox.put(
        f"/v1/orders/{order['id']}/", {"description": "x" * LIMIT}
    ),
    "a capture": lambda sandbox, order: sandbox.take(
        order, "captures/amount", {"amount": 1, "description": "x" * LIMIT}
    ),
    "a QR request": lambda sandbox, order: sandbox.post(
        "/v1/bankqr/", {"amount": 100, "description": "x" * LIMIT}
    ),
    "settings": lambda sandbox, order: sandbox.patch("/control/project/", {"aliases": MANY}),
    "a scenario": lambda sandbox, order: sandbox.put("/control/scenario/", BIG),
    "faults": lambda sandbox, order: sandbox.put(
        "/control/faults/", {"faults": [{"when": {"path": "/v1/" + "x" * 900}, "then": {"status": 503}}] * 90}
    ),
    "a reason": lambda sandbox, order: sandbox.act(order, "customer fail", reason="x" * LIMIT),
}


@pytest.mark.parametrize("call", STORING_CALLS.values(), ids=STORING_CALLS)
def test_all_stored_data_counts(small_server: Server, call: Call) -> None:
    """Each call that stores data is refused before it changes anything."""
    sandbox = Sandbox(small_server)
    order = sandbox.place(by("pay-later-a"), amount=LINES_TOTAL, order_lines=LINES)
    if call is STORING_CALLS["a capture"]:
        order = sandbox.pay(order)
    before = sandbox.get("/control/state/").json()
    refusal_message(call(sandbox, order))
    assert sandbox.get("/control/state/").json() == before


def test_resent_webhooks_count(small_server: Server, shop: Shop) -> None:
    """A resend beyond the quota is refused, and the stored data stays within the quota."""
    sandbox = Sandbox(small_server, webhook_url=shop.url)
    shop.says = b"x" * 4000
    for _ in range(3):
        sandbox.place(by("bank-transfer"))
    sandbox.settle()
    webhooks = [each["id"] for each in sandbox.get("/control/webhooks/").json()["items"]]
    answers = [sandbox.post(f"/control/webhooks/{each}/redeliver/") for each in webhooks * 20]
    assert {answer.status_code for answer in answers} == {200, FULL}
    assert len(shop.received) == 3 + sum(answer.status_code == 200 for answer in answers)
    assert len(sandbox.get("/control/state/").content) < LIMIT + 15_000  # with spaces, scenario and counters


def test_due_entries_run_in_a_full_project(small_server: Server, shop: Shop) -> None:
    """Expiries and webhooks run in a full project; old finished webhooks are dropped for them."""
    sandbox = Sandbox(small_server)
    first = [sandbox.place(by("bank-transfer"), webhook_url=shop.url) for _ in range(5)]
    sandbox.settle()
    fill(sandbox)
    shop.says, shop.answer = b"y" * 4000, lambda received: 500
    orders = [each["id"] for each in sandbox.get("/control/orders/?limit=100").json()["items"]]
    advanced = sandbox.post("/control/clock/advance/", {"by": "P31D"}).json()
    assert not advanced.get("stopped")
    assert not [event for event in advanced["events"] if event.get("failed")]
    assert {sandbox.read(order)["status"] for order in orders} == {"expired"}
    order_ids = [received.body["order_id"] for received in shop.received]
    assert [order_ids.count(order["id"]) for order in first] == [11] * 5  # one was answered, ten were not
    listed = sandbox.get("/control/webhooks/").json()
    assert listed["dropped"] + len(listed["items"]) == 10
    assert listed["dropped"] >= 5
    assert [each for each in listed["items"] if each["state"] == "pending"] == []
    assert len(sandbox.get("/control/state/").content) < LIMIT + 60_000


def test_due_entries_stay_within_the_quota_of_the_server(shop: Shop) -> None:
    """Finished webhooks are dropped for later ones within the quota of the server, too."""
    with make_server(quotas=Quotas(total_bytes=LIMIT)) as server:
        sandbox = Sandbox(server, webhook_url=shop.url)
        orders = [sandbox.place(by("bank-transfer")) for _ in range(12)]
        sandbox.settle()
        shop.says = b"y" * 4000  # the orders alone stay within the quota, whenever their webhooks finish
        sandbox.post("/control/clock/advance/", {"by": "P31D"})
        assert {sandbox.read(order)["status"] for order in orders} == {"expired"}
        assert len(shop.received) == 24
        assert sandbox.get("/control/webhooks/").json()["dropped"] > 0
        assert len(sandbox.get("/control/state/").content) < LIMIT + 15_000


def test_shrinking_changes_are_never_refused(small_server: Server) -> None:
    """In a full project, faults and scenario can be deleted and an earlier state restored.

    The faults take more room than an order, so that there is room for one when they are deleted.
    """
    sandbox = Sandbox(small_server)
    state = sandbox.get("/control/state/").json()
    faults = [{"when": {"path": "/x/" + "x" * number}, "then": {"status": 503}} for number in range(60)]
    sandbox.put("/control/faults/", {"faults": faults})
    fill(sandbox)
    assert sandbox.delete("/control/faults/").status_code == 200
    sandbox.put("/control/state/", state)
    sandbox.put("/control/faults/", {"faults": faults[:1] * 60})
    fill(sandbox)
    assert sandbox.delete("/control/faults/").status_code == 200
    assert sandbox.create(card()).status_code == 201
    assert sandbox.delete("/control/scenario/").status_code == 200
    assert sandbox.put("/control/state/", state).status_code == 200
    assert sandbox.create(card(), description="x" * 20_000).status_code == 201
