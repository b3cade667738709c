"""Requests and webhooks: their list, their progress, resends with changes, and webhooks that a fault withheld."""

from typing import Any, Final

import pytest

from payment_sandbox.client.client import SandboxClient
from payment_sandbox.ui.pages.language import Language
from tests.judge.test_judge import pays
from tests.support.commands import run
from tests.support.dashboard import Dashboard, run_in_shell
from tests.support.driver import Sandbox, card
from tests.support.payer import Form, Page, Payer
from tests.support.shop import Shop


def test_the_requests_are_filtered(sandbox: Sandbox) -> None:
    """Requests can be filtered by kind, and by a text; refusals have their reason in a sentence."""
    order = sandbox.authorized(merchant_order_id="S-77", amount=1295)
    sandbox.get("/v1/orders/order-unknown/")
    sandbox.take(order, "captures/amount", {"amount": 99_900})
    browser = Dashboard(sandbox)
    rows = browser.open("requests/").ids["requests"]
    for words in ("Sunday 1 March 2026", "12:00:00.000", "Creates the order · €12.95", "S-77"):
        assert words in rows
    assert "€999.00 is too much: €12.95 are left to capture" in rows
    for query, statuses in {
        "show=calls": ["201", "404", "409"],
        "show=refused": ["404", "409"],
        "text=nowhere": [],
        "show=payed": ["201", "404", "409"],
        "text=409": ["409"],
        "text=order-unknown": ["404"],
        "show=refused&text=POST": ["409"],
    }.items():
        page = browser.open(f"requests/?{query}")
        shown = [status for status in ("201", "404", "409") if f">{status}</span>" in page.answer.text]
        assert shown == statuses, query
        assert ("no-match" in page.ids) == (not statuses)
        assert ("remark" in page.ids) == (query == "show=payed")


def test_a_request_leads_to_its_neighbours(sandbox: Sandbox) -> None:
    """A request links to the previous and the next one, and its command repeats it."""
    order = sandbox.place(card(), merchant_order_id="it's S-6")
    sandbox.get(f"/v1/orders/{order['id']}/?fields[]=amount_details")
    browser = Dashboard(sandbox)
    newest, oldest = (link for link in browser.open("requests/").links if "/requests/request-" in link)
    page = browser.open(f"{sandbox.url}{newest}")
    assert ("older" in page.ids, "newer" in page.ids) == (True, False)
    assert "newer" in browser.open(f"{sandbox.url}{oldest}").ids
    for address, status in ((newest, "200"), (oldest, "201")):
        command = browser.open(f"{sandbox.url}{address}").ids["request-curl"]
        assert run_in_shell(f"{command} -s -o /dev/null -w '%{{http_code}}'", sandbox.key) == status
    entries = sandbox.get("/control/journal/").json()["items"]
    assert entries[0]["request"] == entries[-1]["request"]
    assert entries[1]["query"] == entries[-2]["query"]


def test_a_request_of_any_depth_breaks_no_page(sandbox: Sandbox) -> None:
    """A deeply nested request is refused, and all pages still work."""
    deep = b'{"merchant_order_id": ' + b"[" * 30_000 + b"]" * 30_000 + b"}"
    headers = {"Content-Type": "application/json"}
    url, auth = f"{sandbox.url}/v1/orders/", (sandbox.key, "")
    assert sandbox.http.post(url, data=deep, headers=headers, auth=auth).status_code == 400
    (entry,) = sandbox.get("/control/journal/?summary=1").json()["items"]
    for path in ("orders/", "mistakes/", "requests/", f"requests/{entry['id']}/"):
        Dashboard(sandbox).open(path)
    assert sandbox.get("/control/review/").status_code == 200


def test_webhooks_show_their_progress(watched: Sandbox, shop: Shop) -> None:
    """The list and the webhook's page show its progress; a button advances to the next attempt."""
    shop.answer = lambda received: 500
    shop.says = b'{"error": "no such order"}'
    watched.acted(watched.place(card(), merchant_order_id="S-7"), "customer visit")
    watched.settle()
    browser = Dashboard(watched)
    assert "Pending: 1 of 10 attempts failed" in browser.open("requests/").ids["requests"]
    assert "no such order" in browser.open("requests/?show=undelivered&text=s-7").ids["requests"]
    assert "no-match" in browser.open("requests/?text=S-8").ids
    webhook = watched.webhooks()[0]["id"]
    page = browser.open(f"requests/{webhook}/")
    assert page.ids["summary"] == "Pending: 1 of 10 attempts failed, next at 12:02."
    page = browser.press(page, next(value for value in page.buttons if value.endswith("12:02:00+00:00")))
    assert page.ids["summary"] == "Pending: 2 of 10 attempts failed, next at 12:04."
    assert page.text.index("Attempt 2") < page.text.index("Attempt 1"), "the newest is first"
    watched.advance("PT1H")
    page = browser.open(f"requests/{webhook}/")
    assert page.ids["summary"].startswith("Failed after 10 attempts: your shop answered 500 in ")
    shop.answer = lambda received: 204
    page = browser.open("requests/?show=undelivered&text=failed")
    browser.send(page.form_to(f"{webhook}/redeliver/"), {}, page)
    page = browser.open(f"requests/{webhook}/")
    assert page.ids["summary"].startswith("Delivered on attempt 11: your shop answered 204 in ")


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
    numbers = [attempt["number"] for attempt in watched.webhooks()[0]["attempts"]]
    assert numbers.count(0) == 2, "changed resends do not count"
    assert "resent with changes" in browser.open(f"orders/{webhook['order_id']}/").text


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


def test_a_masked_address_is_called_unmasked(sandbox: Sandbox, shop: Shop) -> None:
    """A masked, unchanged address is called unmasked, and a refused form keeps its values."""
    url = f"{shop.url}?verification_code=9172"
    sandbox.pay(sandbox.place(card(), webhook_url=url))
    sandbox.settle()
    assert sandbox.webhooks()[0]["url"] != url
    browser, page, form = open_resend(sandbox)
    browser.send(form, {}, page)
    assert shop.received[-1].path.endswith("?verification_code=9172")
    assert sandbox.webhooks()[0]["attempts"][-1]["number"] == 2
    refused = browser.send(form, {"url": "nowhere", "body": '{"mine": 1}', "after": "PT1H"}, page)
    assert '{"mine": 1}' in refused.text
    assert refused.form_of("url").fields["url"] == "nowhere"


LOSSES: Final[dict[str, dict[str, Any]]] = {"lost (fault)": {"drop": True}, "200 (fault)": {"answer": 200}}
"""Faults whose webhooks count as delivered although the shop receives none."""


def lose(sandbox: Sandbox, effect: dict[str, Any], **when: str) -> dict[str, Any]:
    """Return a paid order whose webhooks have this effect."""
    sandbox.put("/control/faults/", {"webhooks": [{"when": when, "then": effect}]})
    return pays(sandbox, merchant_order_id="S-1001")


@pytest.mark.parametrize("loss", LOSSES)
def test_all_pages_have_a_third_outcome(watched: Sandbox, shop: Shop, loss: str) -> None:
    """Lists, histories and the result page show a loss: neither delivered, nor known to the shop."""
    order = lose(watched, LOSSES[loss])
    assert not shop.received
    counts = watched.get("/control/orders/").json()["items"][0]["webhooks"]
    assert counts == {"pending": 0, "delivered": 0, "lost": 2, "failed": 0, "attempts": 2}
    browser = Dashboard(watched)
    assert "new · webhook lost (fault)" in browser.open().ids["orders"]
    page = browser.open("requests/?show=undelivered")
    assert page.ids["requests"].count("your shop never received it") == 2
    assert "no-match" in browser.open("requests/?show=webhooks&text=delivered").ids
    page = browser.open(f"orders/{order['id']}/")
    assert "lost (fault)" in page.ids["order-webhooks"]
    assert page.ids["believed"] == "new · webhook lost (fault)"
    assert "verdict" not in page.ids
    assert page.answer.text.count('<li class="lost"') == 2
    assert f"completed · {loss}" in page.ids["told"]
    page = Payer(watched).open(f"{watched.url}/pay/{watched.project['project_id']}/{order['id']}/result/")
    assert page.ids["webhooks"] == f"0 / 2: {loss}"
    assert Language("en-GB").say("paid_text") not in page.text


def test_the_control_api_counts_it_as_delivered_and_says_that_it_was_lost(watched: Sandbox) -> None:
    """The state follows the contract; ``lost``, attempt, filter, event, report and commands show the loss."""
    order = lose(watched, {"drop": True}, status="processing")
    lost, delivered = watched.webhooks()
    assert [(webhook["state"], webhook["lost"]) for webhook in (lost, delivered)] == [
        ("delivered", True),
        ("delivered", False),
    ]
    assert [webhook["attempts"][0]["fault"] for webhook in (lost, delivered)] == ["lost (fault)", None]
    assert watched.webhooks(state="lost") == [lost]
    report = SandboxClient(watched.url, watched.key).report()
    assert f" for {order['id']}, attempt 1: lost (fault), never sent to http" in report
    events = watched.project_in_process.events.events_after(0)
    first, second = (event.data for event in events if event.kind == "webhook")
    assert (first["fault"], first["label"][-12:], second["fault"]) == ("lost (fault)", "lost (fault)", None)
    environment = {"SANDBOX_URL": watched.url, "SANDBOX_API_KEY": watched.key}
    assert run("webhooks", "--state", "lost", **environment).stdout.count("lost (fault)") == 1
    watched.put("/control/faults/", {})
    watched.post(f"/control/webhooks/{lost['id']}/redeliver/")
    assert watched.webhooks(state="lost") == []
