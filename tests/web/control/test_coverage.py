"""What a project has met, in the control API and on the dashboard."""

from typing import Any

from tests.support.dashboard import Dashboard
from tests.support.driver import Sandbox, by, card


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
    assert "No order yet" in browser.open("coverage/").text
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
