"""A project restored from a snapshot continues as the original does."""

import json
import re
from collections.abc import Callable
from copy import deepcopy
from typing import Any

import pytest

from tests.support.driver import Sandbox, by, card, details, violations
from tests.support.shop import Shop


def fill(sandbox: Sandbox) -> None:
    """Create a record of every kind, many of them in progress."""
    sandbox.pay(sandbox.place(details(recurring_type="first")))
    order = sandbox.authorized(capture_mode="delayed", expiration_period="P7D")
    sandbox.take(order, "voids/amount", {"amount": 300})
    captured = sandbox.authorized()
    lines = {"order_lines": [{"merchant_order_line_id": "socks", "quantity": 1}]}
    sandbox.take(captured, "captures/orderlines", lines)
    sandbox.post(f"/v1/orders/{captured['id']}/refunds/", {"amount": 100})
    sandbox.post("/v1/bankqr/", {"amount": 5, "one_off": False})
    sandbox.place(card(), customer={"email_address": "pays@example.com"}, extra={"a": [1, None]})
    sandbox.place_with_lines("pay-later-a", amount=66602)
    sandbox.place(payment_methods=["wallet-qr"])
    sandbox.place(by("bank-transfer"))
    sandbox.put("/control/faults/", {"faults": [{"when": {"nth": 1000}, "then": {"status": 500}}]})
    sandbox.settle()


def continue_project(sandbox: Sandbox) -> str:
    """Continue the project and return the resulting responses without the project's IDs."""
    token = sandbox.get("/control/state/").json()["credentials"][0]["vault_token"]
    answers = [sandbox.create(details(recurring_type="recurring", vault_token=token))]
    sandbox.settle()  # otherwise an attempt could end either before or during the advance
    answers.append(sandbox.post("/control/clock/advance/", {"by": "P8D"}))
    answers.append(sandbox.create(by("bank-transfer"), by="x"))
    sandbox.settle()
    answers += [
        sandbox.get(f"/v1/orders/{item['id']}/") for item in sandbox.get("/control/state/").json()["orders"]
    ]
    answers.append(sandbox.get("/control/agenda/"))
    text = "".join(answer.text + str(answer.headers.get("ETag")) for answer in answers)
    return text.replace(sandbox.project["project_id"], "P").replace(sandbox.project["merchant_id"], "M")


@pytest.mark.rule("CTL-10")
def test_a_restored_project_continues_byte_for_byte(project: Callable[..., Sandbox], shop: Shop) -> None:
    """Agenda, pending webhooks, vault and random state are restored under the receiver's IDs and key."""
    shop.answer = lambda received: 500
    original, receiver = project(webhook_url=shop.url), project(mode="live")
    fill(original)
    state = original.get("/control/state/").json()
    answer = receiver.put("/control/state/", state)
    assert answer.status_code == 200, answer.text
    assert answer.json()["project_id"] == receiver.project["project_id"]
    assert receiver.get("/control/state/").json() == state
    assert continue_project(receiver) == continue_project(original)
    assert len(receiver.webhooks(state="failed")) == len(original.webhooks(state="failed")) > 0


@pytest.mark.rule("CTL-10")
def test_a_due_webhook_is_sent_after_the_restore(watched: Sandbox, shop: Shop) -> None:
    """A webhook without attempts is sent after the restore."""
    watched.place(by("bank-transfer"))
    watched.settle()
    state = watched.get("/control/state/").json()
    state["deliveries"][0] |= {"state": "pending", "attempts": []}
    watched.put("/control/state/", state)
    watched.settle()
    assert len(shop.received) == 2


def put(state: dict[str, Any], place: str, value: Any) -> None:
    """Set the value at a place, such as ``orders[0].status``."""
    *parents, key = (int(step) if step.isdigit() else step for step in re.findall(r"\w+", place))
    part: Any = state
    for step in parents:
        part = part[step]
    part[key] = value


REPORTED_AT_ITS_PLACE: list[tuple[str, Any]] = [
    ("format", "another/2"),
    ("now", "yesterday"),
    ("clock_mode", "stopped"),
    ("clock_rate", 0),
    ("sequence", True),
    ("settings.mode", "demo"),
    ("id_counts.order", "x"),
    ("orders[0].amount_cents", "5"),
    ("orders[0].sent", []),
    ("orders[0].refunds[0]", ["none", 5, []]),
    ("orders[0].transactions[0].events[0]", []),
    ("agenda[0].command.order_id", None),
    ("decisions[0].nearest", {"rule": 0}),
    ("deliveries[0]", {}),
]
WRONG_VALUES = [
    *((place, value, f"state.{place}") for place, value in REPORTED_AT_ITS_PLACE),
    ("more", 1, "state"),
    ("orders[0].more", 1, "state.orders[0]"),
    ("scenario", {"name": "x", "rules": 5}, "rules"),
    ("faults", {"faults": 5}, "faults"),
    ("agenda[0].command.kind", "party", "state.agenda[0].command"),
    ("rule_uses", [[1]], "state.rule_uses[0]"),
]


@pytest.mark.rule("CTL-11")
def test_a_bad_snapshot_is_refused_whole(sandbox: Sandbox) -> None:
    """The violation has the path of the invalid value, and the project is unchanged."""
    sandbox.settings(webhook_url="http://127.0.0.1:9/")
    order = sandbox.authorized(expiration_period="PT1M")
    sandbox.settle()
    sandbox.take(order, "captures/amount", {"amount": 5})
    sandbox.post(f"/v1/orders/{order['id']}/refunds/", {"amount": 1})
    sandbox.settle()
    state = sandbox.get("/control/state/").json()
    for place, value, path in WRONG_VALUES:
        bad = deepcopy(state)
        put(bad, place, value)
        assert path in violations(sandbox.put("/control/state/", bad)), place
    del bad["orders"]
    assert "state" in violations(sandbox.put("/control/state/", bad))
    assert "state" in violations(sandbox.put("/control/state/", []))
    assert sandbox.get("/control/state/").json() == state


@pytest.mark.rule("CTL-10")
def test_a_snapshot_with_a_setting_that_went_is_restored(sandbox: Sandbox) -> None:
    """A setting that only another version knows has no effect."""
    order = sandbox.place(card())
    state = sandbox.get("/control/state/").json()
    assert sandbox.put("/control/state/", {**state, "settings": {**state["settings"], "pigeons": True}}).ok
    assert sandbox.get("/control/state/").json() == {**state, "epoch": state["epoch"] + 1}
    assert "pigeons" not in sandbox.get("/control/project/").json()["settings"]
    assert sandbox.pay(order)["status"] == "completed"


def test_a_snapshot_may_be_over_a_mebibyte(sandbox: Sandbox) -> None:
    """Snapshots may have up to 256 MiB; other bodies are limited to 1 MiB."""
    order = sandbox.place(description="x" * 900_000)
    state = sandbox.get("/control/state/").json()
    state["orders"][0]["sent"]["description"] = "y" * 3_000_000
    assert sandbox.put("/control/state/", state).status_code == 200
    assert len(sandbox.read(order)["description"]) == 3_000_000
    assert sandbox.put("/control/scenario/", data=json.dumps(state)).status_code == 413
