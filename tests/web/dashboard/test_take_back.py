"""Undoing a clock move restores the previous state, except webhooks that were already sent."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from payment_sandbox.operations.bank_qr import scan
from tests.support.dashboard import Dashboard
from tests.support.driver import Sandbox, card
from tests.support.payer import Form, Page
from tests.support.servers import make_server
from tests.support.shop import Shop

DAY = "P1D"


def test_a_move_is_undone(watched: Sandbox, shop: Shop) -> None:
    """Orders, agenda, clock and journal are restored, and the same move has the same effects again."""
    order = watched.pay(watched.place(card()))
    open_order = watched.place(card())
    watched.settle()
    before = {path: watched.get(path).json() for path in PATHS}
    browser = Dashboard(watched)
    moved = browser.press(browser.open("orders/"), DAY)
    assert watched.read(open_order)["status"] == "expired"
    assert browser.open(f"orders/{open_order['id']}/").ids["told"].count("expiry") == 1
    page = browser.send(undo_form(moved), {}, moved)
    assert page.ids["notice"] == (
        "Undone: it is 12:00:00 again. One webhook had been sent, which cannot be undone."
        " One request since then was removed from the journal."
    )
    assert {path: watched.get(path).json() for path in PATHS} == before
    assert browser.open(f"orders/{open_order['id']}/").ids["told"].count("expiry") == 0
    assert watched.read(order)["status"] == "completed"
    browser.press(browser.open("orders/"), DAY)
    watched.settle()
    assert shop.orders().count(open_order["id"]) == 2


PATHS = (
    "/control/agenda/",
    "/control/webhooks/",
    "/control/clock/",
    "/control/orders/",
    "/control/timeline/",
)


def undo_form(page: Page) -> Form:
    """Return the form that undoes a move."""
    (form,) = [form for form in page.forms if form.action.endswith("/clock/back/")]
    return form


Losses = list[tuple[str, Callable[[Sandbox, dict[str, Any]], object], str]]

LOSSES: Losses = [
    ("an order", lambda own, order: own.place(card()), "order {new} (created)"),
    ("a payment", lambda own, order: own.pay(order), "order {order} (customer pay)"),
    ("a visit", lambda own, order: own.acted(order, "customer visit"), "order {order} (customer visit)"),
    ("an update", lambda own, order: own.put(ORDER.format(order["id"]), {"description": "x"}), "order {order} (changed)"),
    ("a cancellation", lambda own, order: own.delete(ORDER.format(order["id"])), "order {order} (changed)"),
    ("a refund", lambda own, order: own.post(REFUNDS.format(vars(own)["old_order"]["id"]), {"amount": 1}), "refund "),
    ("a QR request", lambda own, order: own.post("/v1/bankqr/", {"amount": 5}), "QR request"),
    ("an address", lambda own, order: own.patch(PROJECT, {"webhook_url": "http://127.0.0.1:9/"}), "setting webhook_url"),
    ("a scenario", lambda own, order: own.scenario({"then": {"customer": "fails"}}), "scenario"),
    ("a fault", lambda own, order: own.put("/control/faults/", {"webhooks": [{"then": {"drop": True}}]}), "faults (replaced)"),
    ("a further move", lambda own, order: own.advance("PT1M"), "the clock (moved or set again)"),
    ("a clock that runs", lambda own, order: own.patch("/control/clock/", {"mode": "running"}), "the clock"),
]  # fmt: skip
ORDER = "/v1/orders/{}/"
REFUNDS = "/v1/orders/{}/refunds/"
PROJECT = "/control/project/"


@pytest.mark.parametrize(("_", "change", "loss"), LOSSES, ids=[name for name, _, _ in LOSSES])
def test_a_move_is_not_undone_if_changes_would_be_lost(
    sandbox: Sandbox, _: str, change: Callable[[Sandbox, dict[str, Any]], Any], loss: str
) -> None:
    """The refusal names the loss, and repeated attempts change nothing."""
    old = sandbox.__dict__["old_order"] = sandbox.pay(sandbox.place(card()))
    order = sandbox.place(card())
    browser = Dashboard(sandbox)
    moved = browser.press(browser.open("orders/"), "PT1M")
    change(sandbox, order)
    state = sandbox.get("/control/state/").json()
    for _attempt in range(2):
        page = browser.send(undo_form(moved), {}, moved)
        newest = sandbox.get("/control/orders/?limit=1").json()["items"][0]["id"]
        expected = loss.format(order=order["id"][:8], old=old["id"][:8], new=newest[:8])
        assert page.ids["notice"].startswith("The move cannot be undone, because that would discard: ")
        assert expected in page.ids["notice"]
    assert _without_time(sandbox.get("/control/state/").json()) == _without_time(state)


def _without_time(state: dict[str, Any]) -> dict[str, Any]:
    """Return a state without the time of a running clock."""
    return {name: value for name, value in state.items() if name != "now" or state["clock_mode"] == "frozen"}


def test_what_a_shop_does_during_a_move_is_not_lost(watched: Sandbox, shop: Shop) -> None:
    """A move during which the shop created an order cannot be undone."""
    watched.place(card())
    shop.answer = lambda received: 200 if watched.place(card()) else 500
    browser = Dashboard(watched)
    moved = browser.press(browser.open("orders/"), DAY)
    page = browser.send(undo_form(moved), {}, moved)
    assert page.ids["notice"].count("(created)") >= 1
    assert watched.get("/control/orders/").json()["items"][1:]


def test_actions_of_a_scenario_are_undone(sandbox: Sandbox) -> None:
    """A scenario's actions during a move are undone with it, even after a refused move."""
    sandbox.scenario({"then": {"customer": "pays", "after": "PT20M"}})
    order = sandbox.place(card())
    browser = Dashboard(sandbox)
    moved = browser.press(browser.open("orders/"), "PT30M")
    assert sandbox.read(order)["status"] == "completed"
    form, _ = browser.button(moved, "PT30M")
    browser.send(form, {"to": "2026-03-01T11:00"}, moved)
    browser.send(undo_form(moved), {}, moved)
    assert sandbox.read(order)["status"] == "new"


def test_many_losses_are_counted(sandbox: Sandbox) -> None:
    """The newest losses are named, and the others are counted."""
    browser = Dashboard(sandbox)
    moved = browser.press(browser.open("orders/"), DAY)
    for _ in range(25):
        sandbox.place()
    page = browser.send(undo_form(moved), {}, moved)
    assert "would discard: 5 earlier changes, order " in page.ids["notice"]


def test_a_form_of_a_code_still_creates_one_order(sandbox: Sandbox) -> None:
    """A form sent before the move and again after its undo creates one order."""
    project = sandbox.server.registry.find(sandbox.key)
    assert project is not None
    request = sandbox.post("/v1/bankqr/", {"amount": 5, "one_off": False}).json()
    scanned = scan(project, request["id"], None, None, "form-1")
    browser = Dashboard(sandbox)
    moved = browser.press(browser.open("orders/"), DAY)
    browser.send(undo_form(moved), {}, moved)
    assert scan(project, request["id"], None, None, "form-1").id == scanned.id


def test_only_the_last_move_can_be_undone_once(sandbox: Sandbox) -> None:
    """Only the last move can be undone, only once, and not after a reset."""
    browser = Dashboard(sandbox)
    moved = browser.press(browser.open("orders/"), DAY)
    now = browser.send(undo_form(moved), {}, moved).ids["now"]
    repeated = browser.send(undo_form(moved), {}, moved)
    assert "nothing to undo" in repeated.ids["notice"].lower()
    assert repeated.ids["now"] == now
    moved = browser.press(browser.open("orders/"), DAY)
    sandbox.post("/control/reset/")
    refused = browser.send(undo_form(moved), {}, moved)
    assert "reset" in refused.ids["notice"]


def test_a_move_is_undone_in_the_state_file(tmp_path: Path) -> None:
    """A restart does not redo the move, and the earlier journal is restored."""
    path = tmp_path / "state.db"
    with make_server(state=path, clock="frozen@2026-03-01T12:00:00Z") as server:
        sandbox = Sandbox(server)
        order = sandbox.place(card())
        browser = Dashboard(sandbox)
        moved = browser.press(browser.open("orders/"), DAY)
        browser.send(undo_form(moved), {}, moved)
        timeline = sandbox.get("/control/timeline/").json()
        key = sandbox.key
    with make_server(state=path) as server:
        project = server.registry.find(key)
        assert project is not None
        assert project.find_order(order["id"]).status == "new"
        assert len(list(project.epoch.journal.entries())) == len(
            [item for item in timeline["items"] if item["kind"] == "request"]
        )
