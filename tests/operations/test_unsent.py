"""Webhooks without an address are listed as not sent, and are delivered later to an address."""

from collections.abc import Callable

import pytest
from click.testing import CliRunner

from payment_sandbox.cli.main import commands
from tests.support.dashboard import Dashboard
from tests.support.driver import Sandbox, card
from tests.support.shop import Shop


def test_unsent_webhooks_are_listed_on_request(sandbox: Sandbox) -> None:
    """The list of deliveries is as before; the state "unsent" lists what was not sent, also for one order."""
    order = sandbox.pay(sandbox.place(card()))
    other = sandbox.pay(sandbox.place(card()))
    assert sandbox.webhooks() == []
    unsent = sandbox.webhooks(state="unsent", order_id=order["id"])
    assert [(each["status"], each["url"], each["attempts"]) for each in unsent] == [
        ("processing", "", []),
        ("completed", "", []),
    ]
    assert [each["order_id"] for each in sandbox.webhooks(state="unsent")] == [order["id"]] * 2 + [
        other["id"]
    ] * 2


def test_all_unsent_webhooks_are_delivered_to_an_address(sandbox: Sandbox, shop: Shop) -> None:
    """Each is sent once, with the body of a webhook, and is a delivery with attempts and retries from then on."""
    order = sandbox.pay(sandbox.place(card()))
    shop.answer = lambda received: 204 if len(shop.received) > 1 else 500
    answer = sandbox.post("/control/webhooks/deliver/", {"webhook_url": shop.url})
    assert [each["status"] for each in answer.json()["items"]] == ["processing", "completed"]
    assert [received.body["order_id"] for received in shop.received] == [order["id"]] * 2
    assert sandbox.webhooks(state="unsent") == []
    assert [each["state"] for each in sandbox.webhooks()] == ["pending", "delivered"]
    sandbox.advance("PT2M")
    assert [each["state"] for each in sandbox.webhooks()] == ["delivered", "delivered"]
    assert sandbox.post("/control/webhooks/deliver/", {"webhook_url": shop.url}).json()["items"] == []
    assert sandbox.call("POST", "/control/webhooks/deliver/", {"webhook_url": "nowhere"}).status_code == 400


def test_a_return_to_new_is_unsent_too(sandbox: Sandbox, shop: Shop) -> None:
    """Only the creation of an order has no webhook; each status is sent once, also if it repeats."""
    sandbox.scenario({"then": {"screening": "needs-time"}})
    order = sandbox.place_with_lines("pay-later-a")
    sandbox.acted(order, "screening approve")
    sandbox.pay(order)
    statuses = [each["status"] for each in sandbox.webhooks(state="unsent")]
    assert statuses == ["processing", "new", "processing", "completed"]
    answer = sandbox.post("/control/webhooks/deliver/", {"webhook_url": shop.url})
    assert [each["status"] for each in answer.json()["items"]] == statuses
    assert sandbox.webhooks(state="unsent") == []


@pytest.mark.rule("CTL-10")
def test_a_snapshot_keeps_unsent_webhooks(project: Callable[..., Sandbox], shop: Shop) -> None:
    """They are listed after a restore, and delivered to an address."""
    original, receiver = project(), project()
    original.pay(original.place(card()))
    state = original.get("/control/state/").json()
    assert receiver.put("/control/state/", state).status_code == 200
    assert receiver.get("/control/state/").json() == state
    unsent = receiver.webhooks(state="unsent")
    assert [each["status"] for each in unsent] == ["processing", "completed"]
    receiver.post("/control/webhooks/deliver/", {"webhook_url": shop.url})
    assert len(shop.received) == 2


def test_the_review_counts_unsent_changes_until_they_are_delivered(sandbox: Sandbox, shop: Shop) -> None:
    """The finding about a missing address goes with its webhooks."""
    sandbox.pay(sandbox.place(card()))
    rules = [each["rule"] for each in sandbox.get("/control/review/").json()["items"]]
    assert "HOOK-03" in rules
    sandbox.post("/control/webhooks/deliver/", {"webhook_url": shop.url})
    rules = [each["rule"] for each in sandbox.get("/control/review/").json()["items"]]
    assert "HOOK-03" not in rules


def test_the_dashboard_has_an_inbox(sandbox: Sandbox, shop: Shop) -> None:
    """A newcomer sees the first webhook with its body and headers, and delivers it to an address."""
    order = sandbox.pay(sandbox.place(card(), merchant_order_id="S-1"))
    browser = Dashboard(sandbox)
    page = browser.open("requests/?show=webhooks")
    assert page.ids["requests"].count("Not sent: no address was set.") == 2
    assert "2 webhooks were not sent" in page.ids["no-address"]
    webhook = sandbox.webhooks(state="unsent")[-1]
    shown = browser.open(f"requests/{webhook['id']}/")
    assert order["id"] in shown.ids["unsent-body"]
    assert "User-Agent" in shown.text
    assert "redeliver" not in shown.ids
    form = next(form for form in shown.forms if form.action.endswith("/requests/deliver/"))
    refused = browser.send(form, {"webhook_url": "nowhere"}, shown)
    assert "Must be a web address" in refused.ids["notice"]
    page = browser.send(form, {"webhook_url": shop.url}, shown)
    assert page.ids["notice"] == "Sent 2 webhooks. New webhooks will go to the same address."
    assert len(shop.received) == 2
    assert "no-match" in browser.open("requests/?text=not sent").ids


def test_the_commands_list_and_deliver_unsent_webhooks(sandbox: Sandbox, shop: Shop) -> None:
    """The list has them at its end; ``redeliver --to`` delivers all."""
    sandbox.pay(sandbox.place(card()))

    def run(*arguments: str) -> str:
        environment = {"SANDBOX_URL": sandbox.url, "SANDBOX_API_KEY": sandbox.key}
        return str(CliRunner().invoke(commands, arguments, env=environment, catch_exceptions=False).output)

    assert run("webhooks").count("not sent: no address") == 2
    assert run("webhooks", "--state", "unsent").count("unsent ") == 2
    delivered = run("redeliver", "--to", shop.url.removeprefix("http://"))
    assert delivered.count("delivered ") == len(shop.received) == 2
    assert run("webhooks", "--state", "unsent").strip() == "no webhooks"
