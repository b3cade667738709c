"""Lists: filters, search, counts; the first steps; and what a test of the webhook address says."""

import os
import shutil
import subprocess
import sys

import pytest

from payment_sandbox.web.dashboard.orders import FIRST_CALLS, first_calls
from tests.support.dashboard import Dashboard
from tests.support.driver import Sandbox, card
from tests.support.ports import free_port
from tests.support.shop import Shop


@pytest.mark.parametrize("text", ["12.95", "zoe", "ZOË", "shop-1", "completed"])
def test_orders_are_found(sandbox: Sandbox, text: str) -> None:
    """By amount, and without accents or capitals."""
    found = sandbox.pay(
        sandbox.place(card(), amount=1295, merchant_order_id="shop-1", customer={"first_name": "Zoë"})
    )
    other = sandbox.place(card(), amount=2000)
    page = Dashboard(sandbox).open(f"orders/?text={text}")
    assert f"order-{found['id']}" in page.ids
    assert f"order-{other['id']}" not in page.ids


def test_orders_are_counted(sandbox: Sandbox) -> None:
    """Beside the title."""
    for _ in range(3):
        sandbox.place(card())
    assert "Orders 3" in " ".join(Dashboard(sandbox).open("orders/").text.split())


def test_the_way_back_to_the_newest_orders(sandbox: Sandbox) -> None:
    """From an older page of the list."""
    orders = [sandbox.place(card()) for _ in range(2)]
    assert "newest" in Dashboard(sandbox).open(f"orders/?before={orders[1]['id']}").ids
    assert "newest" not in Dashboard(sandbox).open("orders/").ids


@pytest.mark.parametrize(
    ("query", "shown"),
    [
        ("", ["201", "404", "409"]),
        ("status=4xx", ["404", "409"]),
        ("status=409", ["409"]),
        ("method=GET", ["404"]),
        ("text=captures", ["409"]),
        ("text=end-0", []),
        ("text=order-unknown", ["404"]),
        ("status=4xx&method=POST", ["409"]),
    ],
)
def test_the_journal_is_filtered(sandbox: Sandbox, query: str, shown: list[str]) -> None:
    """By status, method, and a text in path, order or rule."""
    order = sandbox.place(card())
    attempt = order["transactions"][0]["id"]
    sandbox.get("/v1/orders/order-unknown/")
    sandbox.post(f"/v1/orders/{order['id']}/transactions/{attempt}/captures/")
    page = Dashboard(sandbox).open(f"journal/?{query}")
    rows = page.ids.get("journal", "")
    assert [status for status in ("201", "404", "409") if f"{status} " in rows] == shown
    assert ("no-match" in page.ids) == (not shown)


def test_the_first_steps_tick_themselves_off(sandbox: Sandbox, shop: Shop) -> None:
    """And go once all are done."""
    browser = Dashboard(sandbox)
    assert browser.open("orders/").ids["steps"].count("still to do") == 3
    assert f"{sandbox.url}/v1/orders/" in browser.open("orders/").ids["calls"]
    sandbox.pay(sandbox.place(card(), webhook_url=shop.url))
    sandbox.settle()
    steps = browser.open("orders/").ids["steps"]
    assert "Answer its first webhook: done" in steps
    assert steps.count("still to do") == 1
    sandbox.advance("PT1M")
    assert "steps" not in browser.open("orders/").ids


def test_a_test_of_the_webhook_address(sandbox: Sandbox, shop: Shop) -> None:
    """It says what the shop answered, or why nobody did."""
    browser = Dashboard(sandbox)
    assert "send-a-test" not in browser.open("webhooks/").ids
    shop.answer = lambda received: 204
    for address, said in (
        (shop.url, "your shop answered 204 in "),
        (f"http://127.0.0.1:{free_port()}/", "nothing listens"),
    ):
        sandbox.patch("/control/project/", {"webhook_url": address})
        page = browser.open("webhooks/")
        (form,) = [form for form in page.forms if form.action.endswith("/test/")]
        assert said in browser.send(form, {}, page).ids["notice"]


RUNNERS = {
    "curl": ["sh", "-c"],
    "Python": [sys.executable, "-c"],
    "Node": ["node", "--input-type=module", "-e"],
    "PHP": ["php", "-r"],
    "Ruby": ["ruby", "-rnet/http", "-e"],
}


@pytest.mark.prove
@pytest.mark.parametrize("language", FIRST_CALLS)
def test_the_first_call_works_as_pasted(sandbox: Sandbox, language: str) -> None:
    """In each language that this machine has."""
    command = RUNNERS[language]
    if shutil.which(command[0]) is None:
        pytest.skip(f"{command[0]} is not installed")
    call = first_calls(sandbox.url)[language]
    if language == "Python":
        call = f"import os, requests; {call}.raise_for_status()"
    environment = {**os.environ, "SANDBOX_API_KEY": sandbox.key}
    ran = subprocess.run(
        [*command, call], env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    assert ran.returncode == 0, ran.stderr
    assert [order["amount"] for order in sandbox.get("/control/orders/").json()["items"]] == [1295]
