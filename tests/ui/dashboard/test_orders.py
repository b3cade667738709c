"""The dashboard lists orders and shows each with buttons for the possible actions."""

from collections.abc import Callable
from typing import Any

import pytest

from payment_sandbox.client.client import SandboxClient
from payment_sandbox.client.triggers import TriggerImpossible, trigger
from payment_sandbox.operations.recipes import RECIPES
from payment_sandbox.serving.server import Server
from payment_sandbox.ui.dashboard.frame import VIEW_TITLES
from tests.support.dashboard import Dashboard
from tests.support.driver import NOBODY, Sandbox, by, card
from tests.support.shop import Shop


@pytest.mark.parametrize("view", VIEW_TITLES)
def test_every_view_shows_empty_and_busy_projects(watched: Sandbox, shop: Shop, view: str) -> None:
    """Every view works from the beginning, and with failed webhooks, faults, cards, codes and all kinds of rules."""
    browser = Dashboard(watched)
    page = browser.open(f"{view}/")
    assert page.language == "en"
    assert page.ids["now"] == "Sun 01 Mar 2026 12:00:00"
    assert "scenario-on" not in page.ids
    shop.answer = lambda received: 500
    watched.place(card(payment_method_details={"recurring_type": "first"}), merchant_order_id="<b>&")
    watched.pay(watched.place(card(payment_method_details={"recurring_type": "first"}), amount=700))
    watched.post("/v1/bankqr/", {"amount": 5})
    watched.put("/control/scenario/", {"name": "webhook-late"})
    watched.put("/control/faults/", {"faults": [{"when": {"nth": 9}, "then": {"status": 503}}]})
    watched.settle()
    page = browser.open(f"{view}/")
    assert "<b>&" not in page.answer.text
    assert "webhook-late is in use" in page.ids["scenario-on"]


def test_orders_are_filtered_and_paged(sandbox: Sandbox) -> None:
    """Orders can be filtered by a text, such as a status or a method, and by chips with their counts."""
    for number in range(52):
        sandbox.place(by("bank-transfer"), merchant_order_id=f"shop-{number}")
    sandbox.pay(sandbox.place(card(), merchant_order_id="paid"))
    browser = Dashboard(sandbox)
    first = browser.open()
    assert [first.ids[f"show-{name}"] for name in ("all", "paid", "unpaid")] == ["All53", "Paid1", "Unpaid52"]
    assert "show-failed" not in first.ids, "a chip without orders is hidden"
    rows = [name for name in first.ids if name.startswith("order-") and len(name) > 30]
    assert len(rows) == 50
    older = next(link for link in first.links if "before=" in link)
    assert "newest" not in first.ids
    page = browser.open(f"{sandbox.url}{older}")
    assert "newest" in page.ids, "a link to the newest orders"
    assert [number for number in range(4) if f"shop-{number}" in page.ids["orders"]] == [0, 1, 2]
    for query in ("text=PAID", "text=completed", "text=credit-card", "show=paid", "show=behind&text=paid"):
        page = browser.open(f"orders/?{query}")
        assert "paid" in page.ids["orders"]
        assert "shop-50" not in page.ids["orders"]
    assert "no-match" in browser.open("orders/?text=nothing").ids
    for wrong, remark in (("before=x", "no longer exists"), ("show=payed", "This filter does not exist")):
        page = browser.open(f"orders/?{wrong}")
        assert remark in page.ids["remark"]
        assert "shop-50" in page.ids["orders"], "the whole list"


def test_an_order_matches_common_spellings(sandbox: Sandbox) -> None:
    """Orders match by number, status, amount in any notation, and name without accents and strokes."""
    customer = {"first_name": "Łukasz", "last_name": "Søren", "email_address": "l@example.com"}
    match = sandbox.pay(sandbox.place(card(), amount=123_450, merchant_order_id="shop-1", customer=customer))
    other = sandbox.place(card(), amount=2300)
    for text in ("€1,234.50", "1234.50", "1234,50", "lukasz", "Łukasz", "soren", "shop-1", "completed"):
        page = Dashboard(sandbox).open(f"orders/?text={text}")
        assert (f"order-{match['id']}" in page.ids, f"order-{other['id']}" in page.ids) == (True, False), text


def refunded(sandbox: Sandbox) -> dict[str, Any]:
    """Return a refund that waits for the processor; its page is that of its order."""
    order = sandbox.pay(sandbox.place(card()))
    refund: dict[str, Any] = sandbox.post(f"/v1/orders/{order['id']}/refunds/", {"amount": 1}).json()
    return refund


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
    ("processor settle", refunded, "completed"),
]


@pytest.mark.parametrize(("action", "make", "status"), ACTIONS, ids=[action for action, _, _ in ACTIONS])
def test_every_button_does_what_it_says(live: Sandbox, action: str, make: Make, status: str) -> None:
    """Each button performs its action and disappears when the action is no longer possible."""
    live.scenario(
        {"when": {"payment_method": "pay-later-a"}, "then": {"screening": "needs-time", "after": "PT1H"}},
        {"when": {"refund": True}, "then": {"processor": "settles", "after": "PT1H"}},
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


def test_part_of_an_authorization_is_captured(sandbox: Sandbox) -> None:
    """Captures take an amount in euros; an invalid amount is refused, at its field or above the page."""
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
    assert "notice" not in too_much.ids
    form, _ = browser.button(too_much, "merchant capture")
    assert form.fields["amount"] == "14,51"
    assert sandbox.get(f"/control/orders/{order['id']}/").json()["actions"]["merchant"] == possible
    browser.press(page, "merchant void", amount="14.50")
    late = browser.press(page, "merchant capture", amount="1.00")
    assert ("why-refused" in late.ids, "notice" in late.ids) == (False, True)


def test_an_order_shows_its_history(watched: Sandbox, shop: Shop) -> None:
    """The page shows the history in words and the webhooks, with links to headers and bodies; markup is text."""
    shop.answer = lambda received: 503
    shop.says = b"\x1b[31mdatabase is locked\x00 <b>&\x1b[0m \xf0\x9f\xa7\xa6"
    order = watched.acted(watched.place(card(), merchant_order_id="shop-7"), "customer visit")
    watched.post(f"/v1/orders/{order['id']}/refunds/", {"amount": 1})
    watched.settle()
    for invalid_amount in (10**4000, -(10**4000), True, "x", None, [1]):
        watched.post(f"/v1/orders/{order['id']}/refunds/", {"amount": invalid_amount})
    browser = Dashboard(watched)
    page = browser.open(f"orders/{order['id']}/")
    for words in ("creates the order · €10.00", "refunds · €0.01", "409 · ", "503", "database is locked"):
        assert words in page.text, words
    assert "<b>&" not in page.answer.text
    steps = ("creates the order", "opens the payment page", "webhook, attempt 1")
    positions = [page.ids["story"].index(words) for words in steps]
    assert positions == sorted(positions), "the history has the order of the timeline"
    request = next(link for link in page.links if "/requests/request-" in link)
    assert "Content-Type" in browser.open(f"{watched.url}{request}").text
    delivery = watched.webhooks(order_id=order["id"])[0]["id"]
    webhook = next(link for link in page.links if link.endswith(f"/requests/{delivery}/"))
    assert "database is locked" in browser.open(f"{watched.url}{webhook}").text
    assert "No webhook was sent" not in page.text


def test_unknown_records_have_an_error_page(sandbox: Sandbox) -> None:
    """An unknown order, request, webhook or page has an error page of the dashboard with status 404."""
    browser = Dashboard(sandbox)
    for path in (f"orders/{NOBODY}/", "requests/request-9/", "requests/none/", "webhooks/"):
        assert "refused" in browser.open(path, 404).ids
    browser.open(f"{sandbox.url}/dashboard/{NOBODY}/orders/", 404)


@pytest.mark.parametrize("name", sorted(RECIPES))
def test_an_order_in_a_state(server: Server, shop: Shop, name: str) -> None:
    """Each recipe gives the same order as the ``trigger`` command."""
    sandbox = Sandbox(server, mode=RECIPES[name].mode or "test", webhook_url=shop.url)
    browser = Dashboard(sandbox)
    page = browser.press(browser.open(), f"recipe={name}")
    newest = sandbox.get("/control/orders/?limit=1").json()["items"][0]["id"]
    assert page.url.rstrip("/").endswith(newest)
    triggered = trigger(SandboxClient(sandbox.url, sandbox.key), name)["order"]["id"]
    by_button, by_command = (common_facts(sandbox.read(order_id)) for order_id in (newest, triggered))
    assert by_button == by_command


def common_facts(order: dict[str, Any]) -> tuple[Any, ...]:
    """Return the facts that orders of one recipe share."""
    names = ("payment_method", "status", "reason", "is_fully_captured")
    attempts = [[attempt.get(name) for name in names] for attempt in order["transactions"]]
    return order["status"], order["amount"], order["flags"], attempts


def test_a_paid_order_does_not_expire_by_a_trigger(sandbox: Sandbox) -> None:
    """The trigger refuses a paid order, although its authorization could expire days later."""
    order = sandbox.authorized(expiration_period="P7D")
    with pytest.raises(TriggerImpossible, match="can no longer expire"):
        trigger(SandboxClient(sandbox.url, sandbox.key), "expired", order["id"])
    assert sandbox.read(order["id"])["status"] == "completed"
