"""No output calls a webhook delivered that a fault withheld from the shop."""

from typing import Any, Final

import pytest
import requests

from payment_sandbox.client.client import SandboxClient
from payment_sandbox.web.pages.language import Language
from tests.support.commands import run
from tests.support.dashboard import Dashboard
from tests.support.driver import Sandbox, card
from tests.support.payer import Payer
from tests.support.shop import Shop

Order = dict[str, Any]
LOST: Final = {"drop": True}
LOSSES: Final[dict[str, dict[str, Any]]] = {"lost (fault)": LOST, "200 (fault)": {"answer": 200}}
"""Faults whose webhooks count as delivered although the shop receives none."""


def paid(sandbox: Sandbox, *effects: dict[str, Any], **when: Any) -> Order:
    """Create a paid order whose webhooks have these effects."""
    sandbox.put("/control/faults/", {"webhooks": [{"when": when, "then": effect} for effect in effects]})
    order = sandbox.place(card(), merchant_order_id="S-1001")
    paid = sandbox.acted(order, "customer pay")
    sandbox.settle()
    return paid


@pytest.mark.parametrize("loss", LOSSES)
def test_the_lists_have_a_third_outcome(watched: Sandbox, shop: Shop, loss: str) -> None:
    """Lost webhooks are shown as lost in both lists, and are among the undelivered ones."""
    order = paid(watched, LOSSES[loss])
    assert not shop.received
    row = watched.get("/control/orders/").json()["items"][0]["webhooks"]
    assert {name: row[name] for name in ("delivered", "lost", "pending", "failed")} == {
        "delivered": 0,
        "lost": 2,
        "pending": 0,
        "failed": 0,
    }
    browser = Dashboard(watched)
    assert "new · webhook lost (fault)" in browser.open().ids["orders"]
    page = browser.open("requests/?show=undelivered")
    assert page.ids["requests"].count("lost (fault)") == 2
    assert page.ids["requests"].count("your shop never received it") == 2
    assert "no-match" in browser.open("requests/?show=webhooks&text=delivered").ids
    (first, _) = watched.webhooks()
    assert "lost (fault)" in browser.open(f"requests/{first['id']}/").ids["webhook"]
    assert "lost (fault)" in browser.open(f"orders/{order['id']}/").ids["order-webhooks"]


def test_the_control_api_counts_it_as_delivered_and_says_that_it_was_lost(watched: Sandbox) -> None:
    """The state follows the contract; ``lost``, the attempt and the filter show the loss."""
    paid(watched, LOST, status="processing")
    lost, delivered = watched.webhooks()
    assert [(webhook["state"], webhook["lost"]) for webhook in (lost, delivered)] == [
        ("delivered", True),
        ("delivered", False),
    ]
    assert [webhook["attempts"][0]["fault"] for webhook in (lost, delivered)] == ["lost (fault)", None]
    assert watched.webhooks(state="lost") == [lost]
    assert watched.webhooks(state="delivered") == [lost, delivered]
    watched.put("/control/faults/", {})
    watched.post(f"/control/webhooks/{lost['id']}/redeliver/")
    assert watched.webhooks(state="lost") == []


@pytest.mark.parametrize("loss", LOSSES)
def test_the_picture_has_no_reply_of_the_shop(watched: Sandbox, loss: str) -> None:
    """The arrow ends halfway with a cross, in the Mermaid text, too."""
    order = paid(watched, LOSSES[loss])
    browser = Dashboard(watched)
    page = browser.open(f"orders/{order['id']}/")
    assert page.answer.text.count('class="cross"') == 2
    assert page.answer.text.count('<g class="row lost">') == 2
    assert page.ids["story"].count("Your shop → Service") == 1, "the creation of the order"
    assert f"completed · {loss}" in page.ids["told"]
    mermaid = browser.http.get(f"{browser.base}orders/{order['id']}/picture.mmd").text
    assert f"service-xshop: webhook, attempt 1: completed · {loss}" in mermaid


def test_the_page_says_that_the_shop_received_nothing(watched: Sandbox) -> None:
    """The page says that the shop received nothing, marks the difference and shows no success."""
    browser = Dashboard(watched)
    page = browser.open(f"orders/{paid(watched, LOST)['id']}/")
    assert page.ids["believed"] == "new · webhook lost (fault)"
    assert "verdict" not in page.ids
    heard = browser.open(f"orders/{paid(watched)['id']}/").ids["believed"]
    assert heard == "new · answered 200, did not read the order"


def test_a_test_webhook_that_was_lost(watched: Sandbox) -> None:
    """The notice reports the loss, and the shop knows nothing of the order."""
    watched.put("/control/faults/", {"webhooks": [{"then": LOST}]})
    browser = Dashboard(watched)
    page = browser.open("requests/")
    (form,) = (form for form in page.forms if form.action.endswith("/requests/test/"))
    notice = browser.send(form, {}, page).ids["notice"]
    assert "A test order was paid, but your shop received no webhook: lost (fault)." in notice
    (order,) = watched.get("/control/orders/").json()["items"]
    assert browser.open(f"orders/{order['id']}/").ids["believed"] == "nothing · webhook lost (fault)"


def test_a_comparison_shows_the_difference(watched: Sandbox) -> None:
    """Delivered and lost webhooks of two orders are shown as a difference."""
    arrived, lost = paid(watched), paid(watched, LOST)
    page = Dashboard(watched).open(f"orders/{arrived['id']}/beside/{lost['id']}/")
    rows = page.answer.text.partition("<tbody>")[2].split("<tr")
    apart = [row for row in rows if 'data-testid="apart"' in row]
    assert any("completed · lost (fault)" in row for row in apart)


def test_coverage_does_not_count_it_as_delivered(watched: Sandbox) -> None:
    """A lost webhook does not cover the case "delivered"."""
    paid(watched, {"answer": 200})
    (cells,) = (
        row["cells"] for row in watched.get("/control/coverage/").json()["items"] if row["group"] == "webhook"
    )
    assert {cell["what"]: cell["count"] for cell in cells}["delivered"] == 0


def test_the_commands_show_lost_webhooks(watched: Sandbox) -> None:
    """The commands for webhooks, one order and all orders show the loss."""
    order = paid(watched, LOST)
    environment = {"SANDBOX_URL": watched.url, "SANDBOX_API_KEY": watched.key}
    listed = run("webhooks", "--state", "lost", **environment).stdout
    assert listed.count("lost (fault)") == listed.count("lost      ") == 2
    assert run("webhooks", "--state", "delivered", **environment).stdout.strip() == "no webhooks"
    assert "is lost (fault), attempts: 1" in run("order", order["id"], **environment).stdout
    assert "0 of 2" in run("orders", **environment).stdout


def test_events_and_reports_show_lost_webhooks(watched: Sandbox) -> None:
    """The event of the attempt and the timeline in the report show the loss."""
    order = paid(watched, LOST)
    report = SandboxClient(watched.url, watched.key).report()
    assert report.count(f" for {order['id']}, attempt 1: lost (fault), never sent to http") == 2
    project = watched.project_in_process
    events = [event for event in project.events.events_after(0) if event.kind == "webhook"]
    assert [event.data["fault"] for event in events] == ["lost (fault)"] * 2
    assert all(event.data["label"].endswith("lost (fault)") for event in events)


@pytest.mark.parametrize("effect", ["reset", "hang"])
def test_a_lost_response_ends_halfway(watched: Sandbox, effect: str) -> None:
    """The arrow of a lost response ends halfway, and the shop does not know its content."""
    value: Any = True if effect == "reset" else 0.01
    watched.put(
        "/control/faults/",
        {"faults": [{"when": {"method": "DELETE"}, "then": {effect: value, "phase": "after"}}]},
    )
    order = watched.place(card())
    with pytest.raises(requests.ConnectionError):
        watched.delete(f"/v1/orders/{order['id']}/")
    page = Dashboard(watched).open(f"orders/{order['id']}/")
    assert page.answer.text.count('<g class="row lost">') == 1
    assert "200 · lost (fault)" in page.ids["story"]
    assert page.ids["believed"].startswith("new")


def test_a_slow_response_is_a_response(watched: Sandbox) -> None:
    """A delayed response is neither red nor lost, and the shop knows its content."""
    watched.put("/control/faults/", {"faults": [{"when": {"method": "GET"}, "then": {"latency": 0.01}}]})
    order = paid(watched)
    watched.put("/control/faults/", {"faults": [{"when": {"method": "GET"}, "then": {"latency": 0.01}}]})
    watched.read(order)
    page = Dashboard(watched).open(f"orders/{order['id']}/")
    assert page.ids["believed"].startswith("completed")
    assert '<g class="row failed">' not in page.answer.text.partition('data-testid="story"')[0]


@pytest.mark.parametrize("loss", LOSSES)
def test_the_result_page_does_not_say_that_the_shop_was_notified(watched: Sandbox, loss: str) -> None:
    """The page shows the loss to testers and claims no notification to customers."""
    order = paid(watched, LOSSES[loss])
    page = Payer(watched).open(f"{watched.url}/pay/{watched.project['project_id']}/{order['id']}/result/")
    assert page.ids["webhooks"] == f"0 / 2: {loss}"
    assert Language("en-GB").say("paid_text") not in page.text
