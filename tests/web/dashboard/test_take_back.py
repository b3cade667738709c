"""A move of the clock is taken back: all that it did is undone, except what the shop was told."""

from pathlib import Path

from payment_sandbox.serving.server import Server
from tests.support.dashboard import Dashboard
from tests.support.driver import Sandbox, card
from tests.support.payer import Form, Page
from tests.support.shop import Shop

DAY = "P1D"


def test_a_move_is_taken_back(watched: Sandbox, shop: Shop) -> None:
    """Orders, agenda, clock and journal are what they were, and the same move does the same again."""
    order = watched.pay(watched.place(card()))
    open_one = watched.place(card())
    watched.settle()
    before = {path: watched.get(path).json() for path in PATHS}
    browser = Dashboard(watched)
    moved = browser.press(browser.open("orders/"), DAY)
    assert watched.read(open_one)["status"] == "expired"
    assert browser.open(f"orders/{open_one['id']}/").ids["told"].count("expiry") == 1
    page = browser.send(take_back(moved), {}, moved)
    assert page.ids["notice"] == "Back at 12:00:00. One webhook was sent meanwhile, and stays sent."
    assert {path: watched.get(path).json() for path in PATHS} == before
    assert browser.open(f"orders/{open_one['id']}/").ids["told"].count("expiry") == 0
    assert watched.read(order)["status"] == "completed"
    browser.press(browser.open("orders/"), DAY)
    watched.settle()
    assert shop.orders().count(open_one["id"]) == 2


PATHS = (
    "/control/agenda/",
    "/control/webhooks/",
    "/control/clock/",
    "/control/orders/",
    "/control/timeline/",
)


def take_back(page: Page) -> Form:
    """The form that takes a move back."""
    (form,) = [form for form in page.forms if form.action.endswith("/clock/back/")]
    return form


def test_a_move_stays_if_orders_came_after_it(sandbox: Sandbox) -> None:
    """They would be lost; it is said beside, and nothing changes."""
    browser = Dashboard(sandbox)
    moved = browser.press(browser.open("orders/"), DAY)
    order = sandbox.place(card())
    page = browser.send(take_back(moved), {}, moved)
    assert "orders were made since" in page.ids["notice"].lower()
    assert sandbox.read(order)["status"] == "new"


def test_only_the_last_move_and_once(sandbox: Sandbox) -> None:
    """Not after a reset, either."""
    browser = Dashboard(sandbox)
    moved = browser.press(browser.open("orders/"), DAY)
    now = browser.send(take_back(moved), {}, moved).ids["now"]
    again = browser.send(take_back(moved), {}, moved)
    assert "no move was made here" in again.ids["notice"].lower()
    assert again.ids["now"] == now
    moved = browser.press(browser.open("orders/"), DAY)
    sandbox.post("/control/reset/")
    refused = browser.send(take_back(moved), {}, moved)
    assert "reset" in refused.ids["notice"]


def test_a_move_is_taken_back_in_the_state_file(tmp_path: Path) -> None:
    """A restart does not bring it back, and the journal of before is there."""
    path = tmp_path / "state.db"
    with Server(state=path, clock="frozen@2026-03-01T12:00:00Z") as server:
        sandbox = Sandbox(server)
        order = sandbox.place(card())
        browser = Dashboard(sandbox)
        moved = browser.press(browser.open("orders/"), DAY)
        browser.send(take_back(moved), {}, moved)
        timeline = sandbox.get("/control/timeline/").json()
        key = sandbox.key
    with Server(state=path) as server:
        project = server.registry.find(key)
        assert project is not None
        assert project.find_order(order["id"]).status == "new"
        assert len(list(project.epoch.journal.entries())) == len(
            [item for item in timeline["items"] if item["kind"] == "request"]
        )
