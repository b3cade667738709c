"""The dashboard lists orders and shows each with buttons for the possible actions."""

from collections.abc import Callable
from typing import Any

import pytest
import requests

from payment_sandbox.ui.dashboard.frame import VIEW_TITLES as FRAME_VIEWS
from tests.support.dashboard import Dashboard
from tests.support.driver import NOBODY, Sandbox, by, card
from tests.support.shop import Shop

VIEW_TITLES = [f"{name}/" for name in FRAME_VIEWS]


@pytest.mark.parametrize("view", VIEW_TITLES)
def test_every_view_shows_empty_and_busy_projects(watched: Sandbox, shop: Shop, view: str) -> None:
    """Every view works from the beginning, and with failed webhooks, faults, cards, codes and all kinds of rules."""
    browser = Dashboard(watched)
    page = browser.open(view)
    assert page.language == "en"
    assert page.ids["now"] == "Sun 01 Mar 2026 12:00:00"
    shop.answer = lambda received: 500
    watched.place(card(payment_method_details={"recurring_type": "first"}), merchant_order_id="<b>&")
    watched.pay(watched.place(card(payment_method_details={"recurring_type": "first"}), amount=700))
    watched.post("/v1/bankqr/", {"amount": 5})
    watched.put("/control/scenario/", {"name": "everything-at-once"})
    watched.put("/control/faults/", {"faults": [{"when": {"nth": 9}, "then": {"status": 503}}]})
    watched.settle()
    assert "<b>&" not in browser.open(view).answer.text


def test_a_refund_counts_with_its_order(watched: Sandbox, shop: Shop) -> None:
    """A mistake of an order and its refunds is one order, in its number and in the list that it leads to."""
    shop.answer = lambda received: 500
    order = watched.place(card())
    watched.pay(order)
    for _ in range(2):
        watched.post(f"/v1/orders/{order['id']}/refunds/", {"amount": 100})
    watched.advance("PT30M")
    page = Dashboard(watched).open("orders/")
    assert "Show 3" not in page.answer.text
    assert ">1 order<" in page.answer.text


def test_the_first_page_leads_to_the_orders(sandbox: Sandbox) -> None:
    """The root redirects browsers to the dashboard and gives other clients working links."""
    browser = Dashboard(sandbox)
    page = browser.open(f"{sandbox.url}/")
    assert page.url.endswith("/dashboard/"), "this server has many projects"
    assert browser.base.removeprefix(sandbox.url) + "orders/" in page.links
    answer = sandbox.get("/")
    assert answer.status_code == 200
    assert answer.json().keys() == {"dashboard", "documentation", "openapi", "health"}
    assert [requests.get(link).status_code for link in answer.json().values()] == [200] * 4
    assert requests.head(sandbox.url).status_code == 200


def test_a_newcomer_pays_a_test_order(sandbox: Sandbox) -> None:
    """A button creates a test order, whose page links to its payment page."""
    browser = Dashboard(sandbox)
    empty = browser.open()
    assert "empty" in empty.ids
    form = next(form for form in empty.forms if form.action.endswith("orders/") and "token" in form.fields)
    page = browser.send(form, {}, empty)
    assert "12.95" in page.text
    (paying,) = {link for link in page.links if link.startswith("/pay/")}
    order_id = page.url.rstrip("/").rpartition("/")[2]
    assert order_id in paying
    assert "creates a test order" in page.text
    assert sandbox.get("/control/journal/?count=1").json() == {"count": 0}, "the shop made no request"
    assert sandbox.read(order_id)["status"] == "new"


def test_orders_are_filtered_and_paged(sandbox: Sandbox) -> None:
    """Orders can be filtered by a text, such as a status or a method, and by chips."""
    for number in range(52):
        sandbox.place(by("bank-transfer"), merchant_order_id=f"shop-{number}")
    sandbox.pay(sandbox.place(card(), merchant_order_id="paid"))
    browser = Dashboard(sandbox)
    first = browser.open()
    rows = [name for name in first.ids if name.startswith("order-") and len(name) > 30]
    assert len(rows) == 50
    older = next(link for link in first.links if "before=" in link)
    assert "newest" not in first.ids
    page = browser.open(f"{sandbox.url}{older}")
    assert "newest" in page.ids, "a link to the newest orders"
    shown = [number for number in range(4) if f"shop-{number}" in page.ids["orders"]]
    assert shown == [0, 1, 2]
    for query in ("text=PAID", "text=completed", "text=credit-card", "show=paid", "show=behind&text=paid"):
        page = browser.open(f"orders/?{query}")
        assert "paid" in page.ids["orders"]
        assert "shop-50" not in page.ids["orders"]
    assert "no-match" in browser.open("orders/?text=nothing").ids


Make = Callable[[Sandbox], dict[str, Any]]
ACTIONS: list[tuple[str, Make, str]] = [
    ("customer pay", lambda sandbox: sandbox.place(card()), "completed"),
    ("customer cancel", lambda sandbox: sandbox.place(by("wallet-web")), "cancelled"),
    ("customer fail", lambda sandbox: sandbox.place(card()), "error"),
    ("customer choose", lambda sandbox: sandbox.place(payment_methods=["wallet-web"]), "processing"),
    ("merchant cancel", lambda sandbox: sandbox.place(card()), "cancelled"),
    ("merchant capture", lambda sandbox: sandbox.authorized(), "completed"),
    ("merchant void", lambda sandbox: sandbox.authorized(), "cancelled"),
    ("merchant refund", lambda sandbox: sandbox.pay(sandbox.place(card())), "completed"),
    ("bank credit", lambda sandbox: sandbox.place(by("bank-transfer")), "completed"),
    ("screening decline", lambda sandbox: sandbox.place_with_lines("pay-later-a"), "cancelled"),
]


@pytest.mark.parametrize(("action", "make", "status"), ACTIONS, ids=[action for action, _, _ in ACTIONS])
def test_every_button_does_what_it_says(live: Sandbox, action: str, make: Make, status: str) -> None:
    """Each button performs its action and disappears when the action is no longer possible."""
    live.scenario(
        {"when": {"payment_method": "pay-later-a"}, "then": {"screening": "needs-time", "after": "PT1H"}}
    )
    order = make(live)
    browser = Dashboard(live)
    page = browser.press(browser.open(f"orders/{order['id']}/"), action)
    assert live.read(order)["status"] == status
    assert status in page.text
    entry = live.get("/control/actions/", params={"order_id": order["id"]}).json()["items"][-1]
    assert (f"{entry['actor']} {entry['action']}", entry["via"]) == (action, "control")
    if action not in ("customer choose", "bank credit"):  # a transfer may arrive again
        assert action not in page.buttons


def test_a_refund_is_settled_on_the_page_of_its_order(sandbox: Sandbox) -> None:
    """The processor has a button, too, and the page of a refund is that of its order."""
    sandbox.scenario({"when": {"refund": True}, "then": {"processor": "settles", "after": "PT1H"}})
    order = sandbox.pay(sandbox.place(card()))
    refund = sandbox.post(f"/v1/orders/{order['id']}/refunds/", {"amount": 1}).json()
    browser = Dashboard(sandbox)
    page = browser.press(browser.open(f"orders/{order['id']}/"), "processor settle")
    assert sandbox.read(refund["id"])["status"] == "completed"
    assert page.ids["refund"] == "Refund of €0.01completed"
    assert page.url.endswith(f"{order['id']}/")
    assert browser.open(f"orders/{refund['id']}/").url == page.url


def test_part_of_an_authorization_is_captured(sandbox: Sandbox) -> None:
    """Captures take an amount in euros; an invalid amount is refused."""
    order = sandbox.authorized()
    browser = Dashboard(sandbox)
    page = browser.open(f"orders/{order['id']}/")
    browser.press(page, "merchant capture", amount="5,50")
    possible = sandbox.get(f"/control/orders/{order['id']}/").json()["actions"]["merchant"]
    assert {"action": "capture", "amount_max": 1450} in possible
    for wrong in ("5.505", "five", "-1", "99999999999999999", "٣"):
        refused = browser.press(page, "merchant capture", amount=wrong)
        assert "ust be an amount in euros" in refused.ids["why-refused"]
    too_much = browser.press(page, "merchant capture", amount="14,51")
    assert too_much.ids["why-refused"].startswith("€14.51 is too much: €14.50 are left to capture")
    form, _ = browser.button(too_much, "merchant capture")
    assert form.fields["amount"] == "14,51"
    assert sandbox.get(f"/control/orders/{order['id']}/").json()["actions"]["merchant"] == possible


def test_an_order_shows_its_history(watched: Sandbox, shop: Shop) -> None:
    """The page shows the history and the webhooks, with links to headers and bodies."""
    shop.answer = lambda received: 503
    shop.says = b"database is locked"
    order = watched.acted(watched.place(card(), merchant_order_id="shop-7"), "customer visit")
    watched.post(f"/v1/orders/{order['id']}/refunds/", {"amount": 1})
    watched.settle()
    browser = Dashboard(watched)
    page = browser.open(f"orders/{order['id']}/")
    for words in ("creates the order", "opens the payment page", "webhook, attempt 1", "503", "409 · "):
        assert words in page.text, words
    steps = ("creates the order", "opens the payment page", "webhook, attempt 1")
    positions = [page.ids["story"].index(words) for words in steps]
    assert positions == sorted(positions), "the history has the order of the timeline"
    request = next(link for link in page.links if "/requests/request-" in link)
    assert "Content-Type" in browser.open(f"{watched.url}{request}").text
    delivery = watched.webhooks(order_id=order["id"])[0]["id"]
    webhook = next(link for link in page.links if link.endswith(f"/requests/{delivery}/"))
    shown = browser.open(f"{watched.url}{webhook}").text
    assert "database is locked" in shown
    assert order["id"] in shown
    assert "No webhook was sent" not in page.text


def test_a_response_breaks_no_page(watched: Sandbox, shop: Shop) -> None:
    """The markup and control characters of a shop's response are text in the history."""
    shop.answer = lambda received: 500
    shop.says = b"\x1b[31mTypeError\x00 <b>&\x1b[0m \xf0\x9f\xa7\xa6"
    order = watched.pay(watched.place(card()))
    watched.settle()
    page = Dashboard(watched).open(f"orders/{order['id']}/")
    assert "TypeError" in page.ids["story"]
    assert "<b>&" not in page.answer.text


def test_unknown_records_have_an_error_page(sandbox: Sandbox) -> None:
    """An unknown order, request, webhook or page has an error page of the dashboard with status 404."""
    browser = Dashboard(sandbox)
    for path in (f"orders/{NOBODY}/", "requests/request-9/", "requests/none/", "webhooks/"):
        assert "refused" in browser.open(path, 404).ids
    browser.open(f"{sandbox.url}/dashboard/{NOBODY}/orders/", 404)
