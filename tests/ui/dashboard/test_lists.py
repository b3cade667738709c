"""Lists can be filtered, searched and counted, and guide newcomers through the first steps."""

import re

import pytest
import requests

from tests.support.dashboard import Dashboard, run_in_shell
from tests.support.driver import Sandbox, card
from tests.support.payer import HTML, Page
from tests.support.ports import free_port
from tests.support.servers import make_server
from tests.support.shop import Shop


def test_chips_count_the_orders(sandbox: Sandbox) -> None:
    """Each chip shows how many orders it selects, and a chip without orders is hidden."""
    for _ in range(3):
        sandbox.place(card())
    page = Dashboard(sandbox).open("orders/")
    chips = {name: text for name, text in page.ids.items() if name.startswith("show-")}
    assert chips == {"show-all": "All3", "show-unpaid": "Unpaid3"}


@pytest.mark.parametrize(
    ("query", "statuses"),
    [
        ("", ["201", "404", "409"]),
        ("show=calls", ["201", "404", "409"]),
        ("show=refused", ["404", "409"]),
        ("show=webhooks", []),
        ("text=409", ["409"]),
        ("text=GET", ["404"]),
        ("text=captures", ["409"]),
        ("text=end-0", []),
        ("text=order-unknown", ["404"]),
        ("show=refused&text=POST", ["409"]),
    ],
)
def test_requests_are_filtered(sandbox: Sandbox, query: str, statuses: list[str]) -> None:
    """Requests can be filtered by kind, and by a text, such as a status or a path."""
    order = sandbox.place(card())
    attempt = order["transactions"][0]["id"]
    sandbox.get("/v1/orders/order-unknown/")
    sandbox.post(f"/v1/orders/{order['id']}/transactions/{attempt}/captures/")
    page = Dashboard(sandbox).open(f"requests/?{query}")
    rows = page.answer.text
    assert [status for status in ("201", "404", "409") if f">{status}</span>" in rows] == statuses
    assert ("no-match" in page.ids) == (not statuses)


def test_the_requests_are_a_table(sandbox: Sandbox) -> None:
    """Each row has time, call and order, and each day has a heading."""
    sandbox.place(card(), merchant_order_id="S-5", amount=1295)
    sandbox.advance("P1D")
    sandbox.get("/v1/orders/nobody/")
    page = Dashboard(sandbox).open("requests/")
    rows = page.ids["requests"]
    assert rows.index("Monday 2 March 2026") < rows.index("nobody") < rows.index("Sunday 1 March 2026")
    assert "12:00:00.000" in rows
    assert "Creates the order · €12.95" in rows
    assert re.search(r"S-5\s*[0-9.]+ ms", rows)
    assert not any(link.endswith("/orders/nobody/") for link in page.links), "there is no such order"


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
    page = browser.open(f"requests/{watched.webhooks()[0]['id']}/")
    assert page.ids["summary"] == "Pending: 1 of 10 attempts failed, next at 12:02."
    page = browser.press(page, next(value for value in page.buttons if value.endswith("12:02:00+00:00")))
    assert page.ids["summary"] == "Pending: 2 of 10 attempts failed, next at 12:04."
    assert page.text.index("Attempt 2") < page.text.index("Attempt 1"), "the newest is first"
    watched.advance("PT1H")
    assert "Failed after 10 attempts" in browser.open("requests/?text=failed").ids["requests"]
    page = browser.open(f"requests/{watched.webhooks()[0]['id']}/")
    assert page.ids["summary"].startswith("Failed after 10 attempts: your shop answered 500 in ")
    shop.answer = lambda received: 204
    page = browser.open("requests/?show=undelivered&text=failed")
    webhook = watched.webhooks()[0]["id"]
    browser.send(page.form_to(f"{webhook}/redeliver/"), {}, page)
    page = browser.open(f"requests/{webhook}/")
    assert page.ids["summary"].startswith("Delivered on attempt 11: your shop answered 204 in ")
    page = browser.press(page, "redeliver")
    assert page.ids["summary"].startswith("Delivered on attempt 12: ")


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


def test_the_first_steps_tick_themselves_off(sandbox: Sandbox, shop: Shop) -> None:
    """The steps are marked as done, and disappear with the first payment."""
    browser = Dashboard(sandbox)
    first_page = browser.open("orders/")
    assert first_page.ids["steps"].count("still to do") == 3
    assert "show-key" not in first_page.ids, "the key of this project is not known to the page"
    order = sandbox.acted(sandbox.place(card(), webhook_url=shop.url), "customer visit")
    sandbox.settle()
    steps = browser.open("orders/").ids["steps"]
    assert "Answer its first webhook: done" in steps
    assert steps.count("still to do") == 1
    sandbox.pay(order)
    assert "first-payment" not in browser.open("orders/").ids


def test_a_test_of_the_webhook_address(sandbox: Sandbox, shop: Shop) -> None:
    """The notice shows the shop's response or the reason for its absence."""
    browser = Dashboard(sandbox)
    assert "send-a-test" not in browser.open("requests/").ids
    shop.answer = lambda received: 204
    for address, message in (
        (shop.url, "your shop answered 204 in "),
        (f"http://127.0.0.1:{free_port()}/", "no server listens"),
    ):
        sandbox.patch("/control/project/", {"webhook_url": address})
        page = browser.open("requests/")
        assert message in browser.send(page.form_to("/test/"), {}, page).ids["notice"]


def test_the_first_project_shows_its_well_known_key() -> None:
    """Both commands of a new server's first page work as pasted, without any further knowledge."""
    with make_server() as server:
        page = Page(requests.get(f"{server.url}/", headers=HTML))
        created = run_in_shell(f"{page.ids['key']}\n{page.ids['first-call']} -sS --fail")
        assert '"amount": 1295' in created.replace('":', '": ').replace('":  ', '": ')
