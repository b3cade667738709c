"""The control API and the dashboard show which cases a project has covered."""

from typing import Any

from tests.support.dashboard import Dashboard
from tests.support.driver import Sandbox, by, card
from tests.support.shop import Received, Shop


def read_cells(sandbox: Sandbox) -> dict[str, dict[str, Any]]:
    """Return the covered cells of each row, with the IDs of their orders or requests."""
    rows = sandbox.get("/control/coverage/").json()["items"]
    return {
        row["name"]: {cell["what"]: cell["met_by"] for cell in row["cells"] if cell["count"]} for row in rows
    }


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


def test_each_cell_names_its_orders(sandbox: Sandbox) -> None:
    """A cell lists its orders, or the refused requests."""
    paid, second = sandbox.place(card()), sandbox.place(card())
    for order in (paid, second):
        sandbox.pay(order)
    declined = sandbox.place(by("wallet-web"))
    sandbox.acted(declined, "customer fail")
    sandbox.post(f"/v1/orders/{declined['id']}/refunds/", {"amount": 5})
    (refused,) = sandbox.get("/control/journal/?status=409").json()["items"]
    covered = read_cells(sandbox)
    assert covered["credit-card"] == {"paid": [second["id"], paid["id"]]}
    assert covered["wallet-web"] == {"declined": [declined["id"]]}
    assert covered["refusals"] == {"SET-49": [refused["id"]]}
    coverage = sandbox.get("/control/coverage/").json()
    count = sum(len(row["cells"]) for row in coverage["items"] if row["group"] == "method")
    assert coverage["percent"] == round(100 * 2 / count, 1)
    assert coverage["is_chosen"] is False


def test_enabled_methods_count_if_they_are_chosen(sandbox: Sandbox) -> None:
    """If the project enables a list of methods, unused ones count, too."""
    sandbox.patch("/control/project/", {"payment_methods": ["credit-card", "wallet-qr"]})
    sandbox.place(card())
    coverage = sandbox.get("/control/coverage/").json()
    assert [row["name"] for row in coverage["items"] if row["group"] == "method"] == [
        "credit-card",
        "wallet-qr",
    ]
    assert (coverage["percent"], coverage["is_chosen"]) == (0, True)


def test_the_dashboard_links_covered_cells(sandbox: Sandbox) -> None:
    """A covered case links to its newest order or request; a missing case says how it comes about."""
    browser = Dashboard(sandbox)
    assert "There are no orders yet" in browser.open("mistakes/").text
    order = sandbox.place(card())
    sandbox.pay(order)
    sandbox.post(f"/v1/orders/{order['id']}/refunds/", {"amount": 5000})
    page = browser.open("mistakes/")
    assert f"{browser.base.removeprefix(sandbox.url)}orders/{order['id']}/" in page.links
    assert "✓ paid" in page.text
    assert "✓ SET-49" in page.text
    assert "✓ declined" not in page.text
    assert "Choose Declined on the payment page" in page.text
    (request,) = {link for link in page.links if "/requests/request-" in link}
    assert "SET-49" in browser.open(f"{sandbox.url}{request}").text


def read_cell(sandbox: Sandbox, row: str, what: str) -> dict[str, Any]:
    """Return one cell."""
    (cells,) = (
        each["cells"] for each in sandbox.get("/control/coverage/").json()["items"] if each["name"] == row
    )
    (cell,) = (each for each in cells if each["what"] == what)
    return {name: cell[name] for name in ("met_by", "count", "wrong", "by_hand")}


def test_a_case_with_a_mistake_is_not_covered(watched: Sandbox, shop: Shop) -> None:
    """A case with a mistake is not covered until the shop handles it correctly; it links to its order."""
    order = watched.acted(watched.place(card()), "customer pay")
    watched.settle()
    wrong = {"met_by": [], "count": 0, "wrong": [order["id"]], "by_hand": []}
    assert read_cell(watched, "credit-card", "paid") == wrong
    assert read_cell(watched, "webhooks", "delivered") == wrong
    assert watched.get("/control/coverage/").json()["percent"] == 0
    browser = Dashboard(watched)
    page = browser.open("mistakes/")
    assert "✗ paid: a mistake" in page.text
    assert "0% of the cases" in page.text

    def read(received: Received) -> int:
        watched.read(received.body["order_id"])
        return 200

    shop.answer = read
    second_order = watched.acted(watched.place(card()), "customer pay")
    watched.settle()
    assert read_cell(watched, "credit-card", "paid") == {**wrong, "met_by": [second_order["id"]], "count": 1}
    assert "✓ paid" in browser.open("mistakes/").text


def test_a_refusal_counts_unless_it_is_the_mistake(sandbox: Sandbox) -> None:
    """A late capture is a mistake and does not count; a refused refund counts."""
    late = sandbox.authorized(expiration_period="PT30M")
    sandbox.advance("PT1H")
    sandbox.take(late, "captures/amount", {"amount": 500})
    sandbox.post(f"/v1/orders/{sandbox.place(card())['id']}/refunds/", {"amount": 5})
    assert read_cell(sandbox, "refusals", "CAP-04")["count"] == 0
    assert len(read_cell(sandbox, "refusals", "CAP-04")["wrong"]) == 1
    assert read_cell(sandbox, "refusals", "SET-49")["count"] == 1


def test_actions_by_hand_are_listed_separately(sandbox: Sandbox) -> None:
    """Orders and refunds made by hand are listed separately."""
    paid = sandbox.pay(sandbox.place(card()))
    browser = Dashboard(sandbox)
    browser.press(browser.open(f"orders/{paid['id']}/"), "merchant refund", amount="1.00")
    page = browser.press(browser.open(), "recipe=declined")
    order_by_hand = sandbox.get("/control/orders/").json()["items"][0]["id"]
    by_hand = {"met_by": [], "count": 0, "wrong": []}
    assert read_cell(sandbox, "credit-card", "declined") == {**by_hand, "by_hand": [order_by_hand]}
    assert read_cell(sandbox, "credit-card", "refunded in part") == {**by_hand, "by_hand": [paid["id"]]}
    assert read_cell(sandbox, "credit-card", "paid")["met_by"] == [paid["id"]]
    page = browser.open("mistakes/")
    assert page.ids["by-hand"] == "played by hand, 12:00"
    assert "Cases that you play by hand do not count." in page.text
