"""What a project has met, in the control API and on the dashboard."""

from typing import Any

from tests.support.dashboard import Dashboard
from tests.support.driver import Sandbox, by, card
from tests.support.shop import Received, Shop


def cells(sandbox: Sandbox) -> dict[str, dict[str, Any]]:
    """The cells of each row that were met, with where."""
    rows = sandbox.get("/control/coverage/").json()["items"]
    return {
        row["name"]: {cell["what"]: cell["met_by"] for cell in row["cells"] if cell["count"]} for row in rows
    }


def test_each_cell_names_its_orders(sandbox: Sandbox) -> None:
    """Or the requests that were refused."""
    paid, again = sandbox.place(card()), sandbox.place(card())
    for order in (paid, again):
        sandbox.pay(order)
    declined = sandbox.place(by("wallet-web"))
    sandbox.acted(declined, "customer fail")
    sandbox.post(f"/v1/orders/{declined['id']}/refunds/", {"amount": 5})
    (refused,) = sandbox.get("/control/journal/?status=409").json()["items"]
    found = cells(sandbox)
    assert found["credit-card"] == {"paid": [again["id"], paid["id"]]}
    assert found["wallet-web"] == {"declined": [declined["id"]]}
    assert found["refusals"] == {"SET-49": [refused["id"]]}
    told = sandbox.get("/control/coverage/").json()
    count = sum(len(row["cells"]) for row in told["items"] if row["group"] == "method")
    assert told["percent"] == round(100 * 2 / count, 1)
    assert told["is_chosen"] is False


def test_enabled_methods_count_if_they_are_chosen(sandbox: Sandbox) -> None:
    """Also those that nobody has used."""
    sandbox.patch("/control/project/", {"payment_methods": ["credit-card", "wallet-qr"]})
    sandbox.place(card())
    told = sandbox.get("/control/coverage/").json()
    assert [row["name"] for row in told["items"] if row["group"] == "method"] == ["credit-card", "wallet-qr"]
    assert (told["percent"], told["is_chosen"]) == (0, True)


def test_the_dashboard_links_what_was_met(sandbox: Sandbox) -> None:
    """To the newest order, or to the request; what was never met is plain."""
    browser = Dashboard(sandbox)
    assert "There are no orders yet" in browser.open("coverage/").text
    order = sandbox.place(card())
    sandbox.pay(order)
    sandbox.post(f"/v1/orders/{order['id']}/refunds/", {"amount": 5000})
    page = browser.open("coverage/")
    assert f"{browser.base.removeprefix(sandbox.url)}orders/{order['id']}/" in page.links
    assert "✓ paid" in page.text
    assert "✓ SET-49" in page.text
    assert "✓ declined" not in page.text
    assert "declined" in page.text
    (request,) = [link for link in page.links if "/requests/" in link]
    assert "SET-49" in browser.open(f"{sandbox.url}{request}").text


def one(sandbox: Sandbox, row: str, what: str) -> dict[str, Any]:
    """One cell."""
    (cells,) = (
        each["cells"] for each in sandbox.get("/control/coverage/").json()["items"] if each["name"] == row
    )
    (cell,) = (each for each in cells if each["what"] == what)
    return {name: cell[name] for name in ("met_by", "count", "wrong", "by_hand")}


def test_what_the_shop_answered_wrongly_does_not_count(watched: Sandbox, shop: Shop) -> None:
    """Until it meets the same without a mistake; the mistake leads to its order."""
    order = watched.acted(watched.place(card()), "customer pay")
    watched.settle()
    wrong = {"met_by": [], "count": 0, "wrong": [order["id"]], "by_hand": []}
    assert one(watched, "credit-card", "paid") == wrong
    assert one(watched, "webhooks", "delivered") == wrong
    assert watched.get("/control/coverage/").json()["percent"] == 0
    browser = Dashboard(watched)
    page = browser.open("coverage/")
    assert "✗ paid: a mistake" in page.text
    assert "0% of the cases" in page.text

    def read(received: Received) -> int:
        watched.read(received.body["order_id"])
        return 200

    shop.answer = read
    again = watched.acted(watched.place(card()), "customer pay")
    watched.settle()
    assert one(watched, "credit-card", "paid") == {**wrong, "met_by": [again["id"]], "count": 1}
    assert "✓ paid" in browser.open("coverage/").text


def test_a_refusal_counts_unless_it_is_the_mistake(sandbox: Sandbox) -> None:
    """A capture that came too late, and a refund of nothing."""
    late = sandbox.authorized(expiration_period="PT30M")
    sandbox.advance("PT1H")
    sandbox.take(late, "captures/amount", {"amount": 500})
    sandbox.post(f"/v1/orders/{sandbox.place(card())['id']}/refunds/", {"amount": 5})
    assert one(sandbox, "refusals", "CAP-04")["count"] == 0
    assert len(one(sandbox, "refusals", "CAP-04")["wrong"]) == 1
    assert one(sandbox, "refusals", "SET-49")["count"] == 1


def test_what_a_person_played_stands_apart(sandbox: Sandbox) -> None:
    """An order made by hand, and a refund by hand of the shop's own order."""
    paid = sandbox.pay(sandbox.place(card()))
    browser = Dashboard(sandbox)
    browser.press(browser.open(f"orders/{paid['id']}/"), "merchant refund", amount="1.00")
    page = browser.press(browser.open(f"orders/{paid['id']}/"), "again=declined")
    played = sandbox.get("/control/orders/").json()["items"][0]["id"]
    by_hand = {"met_by": [], "count": 0, "wrong": []}
    assert one(sandbox, "credit-card", "declined") == {**by_hand, "by_hand": [played]}
    assert one(sandbox, "credit-card", "refunded in part") == {**by_hand, "by_hand": [paid["id"]]}
    assert one(sandbox, "credit-card", "paid")["met_by"] == [paid["id"]]
    page = browser.open("coverage/")
    assert "declined played by hand, 12:00" in page.text
    assert "A case is covered once your shop has handled it without an open review finding" in page.text
