"""The order's page names mistakes of the shop with their reasons, and confirms correct handling."""

import re
from typing import Any

from tests.judge.test_judge import handling, pays, reads
from tests.support.dashboard import Dashboard
from tests.support.driver import Sandbox, card
from tests.support.shop import Shop

Order = dict[str, Any]
FAULTS = {
    "faults": [{"when": {"nth": 9}, "then": {"status": 503}}],
    "webhooks": [{"then": {"answer": 500}}],
}


def test_both_orders_of_a_basket_show_the_mistake(watched: Sandbox) -> None:
    """Both orders with the same number show the mistake."""
    orders = [watched.place(card(), merchant_order_id=number) for number in ("shop-1", "shop-1", "shop-2")]
    has_verdict = ["verdict" in Dashboard(watched).open(f"orders/{order['id']}/").ids for order in orders]
    assert has_verdict == [True, True, False]


def test_only_a_paid_order_looks_like_success(watched: Sandbox, shop: Shop) -> None:
    """Correct handling of a payment is confirmed in one line; other endings are not green."""
    handling(watched, shop, reads)
    browser = Dashboard(watched)
    page = browser.open(f"orders/{pays(watched)['id']}/")
    assert "good-verdict" in page.answer.text
    assert page.ids["verdict"] == "Your shop knows that the order is paid."
    assert page.ids["nav-mistakes"] == "Mistakes"
    assert "marked" not in page.ids
    others = [
        watched.acted(watched.place(card()), "customer fail"),
        watched.authorized(),
        watched.place(card()),
    ]
    watched.settle()
    watched.advance("PT31M")
    for order in others:
        assert "good-verdict" not in browser.open(f"orders/{order['id']}/").answer.text


def test_findings_are_counted_and_marked(watched: Sandbox) -> None:
    """Findings are counted in the navigation and marked in the list; equal ones share a card."""
    orders = [pays(watched) for _ in range(3)]
    browser = Dashboard(watched)
    page = browser.open("mistakes/")
    assert page.ids["nav-mistakes"] == "Mistakes1"
    assert page.answer.text.count('data-testid="finding"') == 1
    assert "3 orders" in page.text
    for order in orders:
        assert order["id"] in page.answer.text
    assert browser.open("orders/").answer.text.count('data-testid="marked"') == 3


def test_equal_retries_are_one_row(watched: Sandbox, shop: Shop) -> None:
    """Equal retries are one step of the history but separate in the list below."""
    shop.answer = lambda received: 500
    order = watched.place(card())
    watched.acted(order, "customer visit")
    watched.settle()
    watched.advance("PT25M")
    page = Dashboard(watched).open(f"orders/{order['id']}/")
    assert page.ids["story"].count("webhook, attempt") == 2
    assert "attempts 3 to 10 like these, until 12:18:00" in page.ids["story"]
    assert page.ids["told"].count("webhook, attempt") == 10


def test_the_bar_shows_coming_events_and_faults(sandbox: Sandbox) -> None:
    """The bar shows the next event, the offset from real time and active faults."""
    browser = Dashboard(sandbox)
    page = browser.open("requests/")
    assert page.ids["clock-next"] == "▶ Next event"
    assert page.ids["ahead"].endswith((" ahead", " behind"))
    assert "faults-on" not in page.ids
    sandbox.place(card())
    sandbox.put("/control/faults/", FAULTS)
    page = browser.open("requests/")
    assert page.ids["clock-next"] == "▶ Next: expiry 12:30"
    assert page.ids["faults-on"] == "2 faults on: switch off"
    assert "faults-on" not in browser.press(page, "none").ids
    sandbox.authorized(expiration_period="P3D")
    sandbox.advance("PT30M")
    assert browser.open().ids["clock-next"] == "▶ Next: authorization expiry 4 Mar 12:00"
    assert sandbox.get("/control/faults/").json() == {"faults": [], "webhooks": []}


def test_a_request_of_any_depth_breaks_no_page(sandbox: Sandbox) -> None:
    """A deeply nested request is refused, and all pages still work."""
    deep = b'{"merchant_order_id": ' + b"[" * 30_000 + b"]" * 30_000 + b"}"
    headers = {"Content-Type": "application/json"}
    answer = sandbox.http.post(
        f"{sandbox.url}/v1/orders/", data=deep, headers=headers, auth=(sandbox.key, "")
    )
    assert answer.status_code == 400
    order = sandbox.place(card())
    browser = Dashboard(sandbox)
    (entry, *_) = sandbox.get("/control/journal/?summary=1").json()["items"]
    for path in ("orders/", f"orders/{order['id']}/", "mistakes/", "requests/", f"requests/{entry['id']}/"):
        browser.open(path)
    assert sandbox.get("/control/review/").status_code == 200


def test_findings_have_anchors(watched: Sandbox) -> None:
    """Links of the review lead to existing sections about mistakes and rules."""
    pays(watched)
    watched.post(f"/v1/orders/{watched.place(card())['id']}/refunds/", {})
    browser = Dashboard(watched)
    links = {link for link in browser.open("mistakes/").links if "/docs/" in link and "#" in link}
    assert {link.partition("#")[0] for link in links} == {"/docs/mistakes/", "/docs/fidelity/"}
    for link in links:
        shown = browser.http.get(f"{watched.url}{link}").text
        assert f'id="{link.partition("#")[2]}"' in shown


def test_the_money_is_shown_in_words_and_as_a_bar(sandbox: Sandbox) -> None:
    """The page shows authorized, captured, refunded and reserved amounts; the bar's parts are in proportion."""
    order = sandbox.authorized()
    browser = Dashboard(sandbox)
    page = browser.open(f"orders/{order['id']}/")
    assert page.ids["second-status"] == "authorized, not captured"
    page = browser.press(page, "merchant capture", amount="10.00")
    assert page.ids["second-status"] == "captured in part"
    for words in (
        "€20.00 authorized",
        "€10.00 captured",
        "€10.00 still reserved",
        "expires in 30 min, 12:30",
    ):
        assert words in page.ids["money"]
    page = browser.press(page, "merchant refund", amount="5.00")
    for words in ("€5.00 refunded", "€5.00 left", "expires in 30 min, 12:30"):
        assert words in page.ids["money"]
    bar = page.answer.text.partition('data-testid="money-bar"')[2].partition("</svg>")[0]
    assert re.findall(r'class="of-(\w+)" x="([\d.]+)" width="([\d.]+)"', bar) == [
        ("received", "0.0", "25.0"),
        ("refunded", "25.0", "25.0"),
        ("reserved", "50.0", "50.0"),
    ]


def test_two_cards_compare_the_shop_with_the_service(watched: Sandbox) -> None:
    """The cards show the shop's belief and the service's status, as the list and the control API do."""
    order = pays(watched)
    browser = Dashboard(watched)
    page = browser.open(f"orders/{order['id']}/")
    assert page.ids["beliefs"].endswith("newcompleted≠")
    assert page.ids["believed"] == "new · answered 200, did not read the order"
    assert page.ids["known"] == "completed"
    assert "apart-card" in page.answer.text
    watched.read(order)
    page = browser.open(f"orders/{order['id']}/")
    assert page.ids["beliefs"].endswith("completedcompleted")
    assert page.ids["believed"] == "completed"
    assert "apart-card" not in page.answer.text
    row = watched.get("/control/orders/").json()["items"][0]
    assert (row["service"], row["shop"], row["shop_status"]) == ("completed", "completed", "completed")


def test_a_long_history_is_reviewed_at_first_sight(watched: Sandbox) -> None:
    """The first view of a project with a long journal shows its mistakes, also to a user without scripts."""
    order = pays(watched)
    for _ in range(1001):
        watched.http.get(f"{watched.url}/v1/issuers/", auth=(watched.key, ""))
    dashboard = Dashboard(watched)
    opened = watched.http.get(f"{dashboard.base}orders/").text
    assert 'data-testid="marked"' in opened
    assert "did not read the order" in dashboard.open("mistakes/").answer.text
    assert "did not read the order" in dashboard.open(f"orders/{order['id']}/").ids["verdict"]


def test_missing_reads_are_shown(watched: Sandbox, shop: Shop) -> None:
    """Each answered webhook shows a missing read until the shop reads the current status."""
    order = pays(watched)
    browser = Dashboard(watched)
    first_page = browser.open(f"orders/{order['id']}/")
    assert first_page.answer.text.count('<li class="missing"') == 2
    assert "your shop did not read the order" in first_page.answer.text
    watched.read(order)
    refund = watched.post(f"/v1/orders/{order['id']}/refunds/", {"amount": 500}).json()
    watched.settle()
    page = browser.open(f"orders/{order['id']}/").answer.text
    assert page.count('<li class="missing"') == 1
    assert "your shop did not read the refund" in page
    watched.read(refund)
    watched.read(order)
    assert '<li class="missing"' not in browser.open(f"orders/{order['id']}/").answer.text


def test_calls_are_described_in_words(watched: Sandbox) -> None:
    """The history describes each call in words, with its amount."""
    order = watched.authorized()
    attempt = watched.read(order)["transactions"][0]["id"]
    base = f"/v1/orders/{order['id']}/"
    watched.post(f"{base}transactions/{attempt}/captures/amount/", {"amount": 500, "description": "x"})
    watched.post(f"{base}refunds/", {"amount": 100})
    for invalid_amount in (10**4000, -(10**4000), True, "x", None, [1]):
        watched.post(f"{base}refunds/", {"amount": invalid_amount})
    history = Dashboard(watched).open(f"orders/{order['id']}/").ids["told"]
    for words in ("creates the order · €20.00", "reads the order", "captures · €5.00", "refunds · €1.00"):
        assert words in history


def test_the_groups_of_mistakes_are_those_of_the_first_page(watched: Sandbox, shop: Shop) -> None:
    """The review groups its findings by mistake, with the orders and the sum, as the first page shows them."""
    shop.answer = lambda received: 500
    orders = [watched.pay(watched.place(card(), amount=amount)) for amount in (1000, 250)]
    watched.settle()
    groups = watched.get("/control/review/").json()["groups"]
    (group,) = [each for each in groups if each["is_open"]]
    assert sorted(group["orders"]) == sorted(order["id"] for order in orders)
    assert (group["amount"], group["last_seen"][:19]) == (1250, watched.now()[:19])
    text = Dashboard(watched).open().ids[f"mistake-{group['name']}"]
    for words in (group["advice"], "2 orders", "€12.50"):
        assert words in text
