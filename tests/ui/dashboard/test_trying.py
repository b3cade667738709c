"""The dashboard resends webhooks with changes, creates orders from recipes, and stops clock moves."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from payment_sandbox.client.client import SandboxClient
from payment_sandbox.client.triggers import TriggerImpossible, trigger
from payment_sandbox.operations.recipes import RECIPES
from payment_sandbox.serving.server import Server
from payment_sandbox.ui.dashboard.order_page import ROWS_MAX
from tests.support.dashboard import Dashboard
from tests.support.driver import Sandbox, card
from tests.support.payer import Form, Page
from tests.support.shop import Shop


def read_newest(sandbox: Sandbox) -> dict[str, Any]:
    """Return the newest order."""
    order: dict[str, Any] = sandbox.get("/control/orders/?limit=1").json()["items"][0]
    return order


def open_resend(sandbox: Sandbox) -> tuple[Dashboard, Page, Form]:
    """Open the page of the first webhook; return the browser, the page and its form for a resend."""
    browser = Dashboard(sandbox)
    page = browser.open(f"requests/{sandbox.webhooks()[0]['id']}/")
    return browser, page, page.form_of("url")


def test_a_webhook_is_resent_with_changes(watched: Sandbox, shop: Shop) -> None:
    """A webhook can be resent to another address or with another body, now or later."""
    shop.answer = lambda received: 500 if received.body.get("event") == "status_changed" else 204
    watched.acted(watched.place(card()), "customer visit")
    watched.settle()
    webhook = watched.webhooks()[0]
    browser, page, form = open_resend(watched)
    assert f'"order_id": "{webhook["order_id"]}"' in page.text
    body = '{"event": "something_else"}'
    page = browser.send(form, {"url": f"{shop.url}?try=2", "body": body}, page)
    resent = watched.webhooks()[0]
    assert (resent["state"], len(resent["attempts"])) == ("pending", 2)
    assert resent["attempts"][1]["request"]["url"] == f"{shop.url}?try=2"
    assert resent["attempts"][1]["response"]["status"] == 204
    assert shop.received[-1].raw == body.encode()
    later = browser.send(form, {"body": body, "after": "PT1H"}, page)
    assert "in an hour of sandbox time" in later.ids["notice"]
    received_count = len(shop.received)
    events = watched.advance("PT1H")
    assert shop.received[-1].raw == body.encode()
    assert len(shop.received) == received_count + sum(event["kind"] == "webhook" for event in events)
    assert sum(received.raw == body.encode() for received in shop.received) == 2
    assert "Must be a web address" in browser.send(form, {"url": "localhost"}, page).ids["notice"]
    assert watched.call("GET", "/control/state/").status_code == 200


def test_a_deferred_resend_survives_a_snapshot(watched: Sandbox, shop: Shop) -> None:
    """A deferred resend is on the agenda and in snapshots; a dropped webhook is not resent."""
    watched.pay(watched.place(card()))
    watched.settle()
    browser, page, form = open_resend(watched)
    webhook = watched.webhooks()[0]
    browser.send(form, {"body": '{"a": 1}', "after": "PT10M"}, page)
    state = watched.get("/control/state/").json()
    assert [due["command"]["kind"] for due in state["agenda"]].count("resend") == 1
    assert watched.call("PUT", "/control/state/", state).status_code == 200
    watched.advance("PT10M")
    assert shop.received[-1].raw == b'{"a": 1}'
    state["deliveries"] = [each for each in state["deliveries"] if each["id"] != webhook["id"]]
    assert watched.call("PUT", "/control/state/", state).status_code == 200
    watched.advance("PT10M")
    assert webhook["id"] not in [stored["id"] for stored in watched.webhooks()]


@pytest.mark.parametrize("name", sorted(RECIPES))
def test_an_order_in_a_state(server: Server, shop: Shop, name: str) -> None:
    """Each recipe gives the same order as the ``trigger`` command."""
    sandbox = Sandbox(server, mode=RECIPES[name].mode or "test", webhook_url=shop.url)
    browser = Dashboard(sandbox)
    page = browser.press(browser.open(), f"recipe={name}")
    newest = read_newest(sandbox)["id"]
    assert page.url.rstrip("/").endswith(newest)
    triggered = trigger(SandboxClient(sandbox.url, sandbox.key), name)["order"]["id"]
    by_button, by_command = (common_facts(sandbox.read(order_id)) for order_id in (newest, triggered))
    assert by_button == by_command


def common_facts(order: dict[str, Any]) -> tuple[Any, ...]:
    """Return the facts that orders of one recipe share."""
    names = ("payment_method", "status", "reason", "is_fully_captured")
    attempts = [[attempt.get(name) for name in names] for attempt in order["transactions"]]
    return order["status"], order["amount"], order["flags"], attempts


def test_only_possible_recipes_are_offered(sandbox: Sandbox) -> None:
    """A bank transfer is offered in live mode only."""
    browser = Dashboard(sandbox)
    page = browser.open()
    form, _ = browser.button(page, "recipe=paid")
    refused = browser.send(form, {"recipe": "transfer"}, page)
    assert "Must be one of: hosted, new, paid" in refused.ids["notice"]


def test_a_move_is_stopped(watched: Sandbox, shop: Shop) -> None:
    """Another tab can stop a move, which reports its result."""
    watched.pay(watched.place(card()))
    watched.settle()
    watched.place(card(), expiration_period="PT1M")
    is_waiting, may_answer = shop.hold(204)
    browser = Dashboard(watched)
    page = browser.open()
    assert "moving" not in page.ids
    with ThreadPoolExecutor(1) as pool:
        moving = pool.submit(lambda: Dashboard(watched).press(page, "P1D"))
        assert is_waiting.wait(20)
        meanwhile = browser.open()
        assert "so far" in meanwhile.ids["moving"]
        form = meanwhile.form_to("/clock/stop/")
        assert "was stopped" in browser.send(form, {}, meanwhile).ids["notice"]
        moved = moving.result(20)
    may_answer.set()
    assert "as you asked" in moved.ids["notice"]
    assert watched.get("/control/clock/").json()["now"] < "2027"
    assert "had already stopped" in browser.send(form, {}, meanwhile).ids["notice"]


def test_a_long_history_can_be_shown_in_full(sandbox: Sandbox) -> None:
    """The line that counts omitted entries links to the full list."""
    order = sandbox.place(card())
    for number in range(ROWS_MAX):
        sandbox.call("GET", f"/v1/orders/{order['id']}/?n={number}")
    browser = Dashboard(sandbox)
    page = browser.open(f"orders/{order['id']}/")
    assert "earlier entries" in page.ids["whole"]
    whole = browser.open(f"orders/{order['id']}/?rows=all")
    assert "earlier entries" not in whole.text
    assert "whole" not in whole.ids


def test_changed_resends_do_not_count(watched: Sandbox, shop: Shop) -> None:
    """A changed resend has attempt number 0 and does not affect review or state."""
    order = watched.place(card())
    watched.pay(order)
    watched.settle()
    watched.get(f"/v1/orders/{order['id']}/")
    reviewed = watched.get("/control/review/").json()
    webhook = watched.webhooks()[0]
    shop.answer = lambda received: 400
    browser, page, form = open_resend(watched)
    assert "Manual resend" in browser.send(form, {"body": "bad"}, page).text
    resent = watched.webhooks()[0]
    assert (resent["state"], [attempt["number"] for attempt in resent["attempts"]]) == ("delivered", [1, 0])
    assert watched.get("/control/review/").json() == reviewed
    watched.post(f"/control/webhooks/{webhook['id']}/redeliver/")
    assert watched.webhooks()[0]["attempts"][-1]["number"] == 2
    assert "resent with changes" in browser.open(f"orders/{order['id']}/").text


def test_a_masked_address_is_called_unmasked(sandbox: Sandbox, shop: Shop) -> None:
    """A masked, unchanged address is called unmasked, and a refused form keeps its values."""
    url = f"{shop.url}?verification_code=9172"
    sandbox.pay(sandbox.place(card(), webhook_url=url))
    sandbox.settle()
    webhook = sandbox.webhooks()[0]
    assert webhook["url"] != url
    browser, page, form = open_resend(sandbox)
    browser.send(form, {}, page)
    assert shop.received[-1].path.endswith("?verification_code=9172")
    assert sandbox.webhooks()[0]["attempts"][-1]["number"] == 2
    refused = browser.send(form, {"url": "nowhere", "body": '{"mine": 1}', "after": "PT1H"}, page)
    assert '{"mine": 1}' in refused.text
    assert refused.form_of("url").fields["url"] == "nowhere"


def test_the_form_shows_the_forwarding_address(watched: Sandbox, shop: Shop) -> None:
    """The form shows the forwarding address; the webhook's own address can be entered."""
    watched.pay(watched.place(card()))
    watched.settle()
    webhook = watched.webhooks()[0]
    watched.project_in_process.forward_webhooks(f"{shop.url}?elsewhere")
    browser, page, form = open_resend(watched)
    assert form.fields["url"] == f"{shop.url}?elsewhere"
    browser.send(form, {"url": webhook["url"]}, page)
    assert watched.webhooks()[0]["attempts"][-1]["request"]["url"] == webhook["url"]
    assert shop.received[-1].body["order_id"] == webhook["order_id"]


def test_a_paid_order_does_not_expire_by_a_trigger(sandbox: Sandbox) -> None:
    """The trigger refuses a paid order, although its authorization could expire days later."""
    order = sandbox.authorized(expiration_period="P7D")
    with pytest.raises(TriggerImpossible, match="can no longer expire"):
        trigger(SandboxClient(sandbox.url, sandbox.key), "expired", order["id"])
    assert sandbox.read(order["id"])["status"] == "completed"
