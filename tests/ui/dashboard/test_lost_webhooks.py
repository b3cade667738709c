"""No output calls a webhook delivered that a fault withheld from the shop."""

from contextlib import nullcontext
from typing import Any, Final

import pytest
import requests

from payment_sandbox.client.client import SandboxClient
from payment_sandbox.ui.pages.language import Language
from tests.judge.test_judge import pays
from tests.support.commands import run
from tests.support.dashboard import Dashboard
from tests.support.driver import Sandbox
from tests.support.payer import Payer
from tests.support.shop import Shop

Order = dict[str, Any]
LOST: Final = {"drop": True}
LOSSES: Final[dict[str, dict[str, Any]]] = {"lost (fault)": LOST, "200 (fault)": {"answer": 200}}
"""Faults whose webhooks count as delivered although the shop receives none."""


def paid(sandbox: Sandbox, *effects: dict[str, Any], **when: Any) -> Order:
    """Create a paid order whose webhooks have these effects."""
    sandbox.put("/control/faults/", {"webhooks": [{"when": when, "then": effect} for effect in effects]})
    return pays(sandbox, merchant_order_id="S-1001")


@pytest.mark.parametrize("loss", LOSSES)
def test_all_pages_have_a_third_outcome(watched: Sandbox, shop: Shop, loss: str) -> None:
    """Lists, histories and the result page show a loss: neither delivered, nor known to the shop."""
    order = paid(watched, LOSSES[loss])
    assert not shop.received
    counts = watched.get("/control/orders/").json()["items"][0]["webhooks"]
    assert counts == {"pending": 0, "delivered": 0, "lost": 2, "failed": 0, "attempts": 2}
    browser = Dashboard(watched)
    assert "new · webhook lost (fault)" in browser.open().ids["orders"]
    page = browser.open("requests/?show=undelivered")
    assert page.ids["requests"].count("lost (fault)") == 2
    assert page.ids["requests"].count("your shop never received it") == 2
    assert "no-match" in browser.open("requests/?show=webhooks&text=delivered").ids
    assert "lost (fault)" in browser.open(f"requests/{watched.webhooks()[0]['id']}/").ids["webhook"]
    page = browser.open(f"orders/{order['id']}/")
    assert "lost (fault)" in page.ids["order-webhooks"]
    assert page.ids["believed"] == "new · webhook lost (fault)"
    assert "verdict" not in page.ids
    assert page.answer.text.count('<li class="lost"') == 2
    assert page.ids["story"].count("Your shop → Service") == 1, "the creation of the order"
    assert f"completed · {loss}" in page.ids["told"]
    page = Payer(watched).open(f"{watched.url}/pay/{watched.project['project_id']}/{order['id']}/result/")
    assert page.ids["webhooks"] == f"0 / 2: {loss}"
    assert Language("en-GB").say("paid_text") not in page.text


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


def test_a_test_webhook_that_was_lost(watched: Sandbox) -> None:
    """The notice reports the loss, and the shop knows nothing of the order."""
    watched.put("/control/faults/", {"webhooks": [{"then": LOST}]})
    browser = Dashboard(watched)
    page = browser.open("requests/")
    notice = browser.send(page.form_to("/requests/test/"), {}, page).ids["notice"]
    assert "A test order was paid, but your shop received no webhook: lost (fault)." in notice
    (order,) = watched.get("/control/orders/").json()["items"]
    assert browser.open(f"orders/{order['id']}/").ids["believed"] == "nothing · webhook lost (fault)"


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


@pytest.mark.parametrize(
    ("effect", "is_lost"),
    [
        ({"reset": True, "phase": "after"}, True),
        ({"hang": 0.01, "phase": "after"}, True),
        ({"latency": 0.01}, False),
    ],
)
def test_a_lost_response_is_marked(watched: Sandbox, effect: dict[str, Any], is_lost: bool) -> None:
    """A lost response is marked, and the shop does not know its content; a slow one arrives."""
    order = paid(watched)
    watched.put("/control/faults/", {"faults": [{"when": {"method": "GET"}, "then": effect}]})
    with pytest.raises(requests.ConnectionError) if is_lost else nullcontext():
        watched.read(order)
    page = Dashboard(watched).open(f"orders/{order['id']}/")
    assert page.answer.text.count('<li class="lost"') == is_lost
    assert ("200 · lost (fault)" in page.ids["story"]) is is_lost
    assert page.ids["believed"].startswith("new" if is_lost else "completed")
    assert '<li class="failed"' not in page.answer.text
