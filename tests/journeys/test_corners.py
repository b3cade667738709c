"""Combinations of two features."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from typing import Any

import pytest
import requests

from tests.support.driver import CUSTOMER, LINES, LINES_TOTAL, Sandbox, by, card, details, refused, violations
from tests.support.shop import Received, Shop


def test_a_refunds_amount_stands(sandbox: Sandbox) -> None:
    """The amount of a refund cannot be changed; its description can."""
    order = sandbox.pay(sandbox.place(by("bank-redirect-nl")))
    record = sandbox.post(f"/v1/orders/{order['id']}/refunds/", {"amount": 100}).json()
    path = f"/v1/orders/{record['id']}/"
    refused(sandbox.put(path, {"amount": 999}), 409, "OrderNotUpdatable")
    assert sandbox.put(path, {"description": "x"}).json()["amount"] == 100


def test_texts_can_change_whatever_became_of_the_method(sandbox: Sandbox) -> None:
    """The method is validated again only when a field that it depends on changes."""
    order = sandbox.place(by("wallet-web"))
    sandbox.settings(payment_methods=["credit-card"])
    path = f"/v1/orders/{order['id']}/"
    assert sandbox.put(path, {"description": "x"}).status_code == 200
    assert "not enabled" in str(violations(sandbox.put(path, {"amount": 7})))


@pytest.mark.parametrize("answer", ["declined", "error", "passed"])
def test_a_hosted_order_ends_when_its_page_is_over(sandbox: Sandbox, answer: str) -> None:
    """An order expires with its page, whatever the screening answers later."""
    sandbox.scenario({"then": {"screening": "needs-time", "then": answer, "after": "PT10M"}})
    order = sandbox.place(expiration_period="PT5M", amount=LINES_TOTAL, order_lines=LINES, customer=CUSTOMER)
    sandbox.acted(order, "customer choose", payment_method="pay-later-a")
    sandbox.advance("PT6M")
    refused(sandbox.act(order, "customer choose", payment_method="credit-card"), 409, "ActionNotPossible")
    sandbox.advance(until="idle")
    assert sandbox.read(order)["status"] == "expired"


@pytest.mark.parametrize("local", ["pays", "fails", "cancels"])
def test_a_customers_plan_is_none_of_a_stored_cards(sandbox: Sandbox, local: str) -> None:
    """A one-click payment completes at once, whatever a trigger customer does on pages."""
    first = sandbox.pay(sandbox.place(details(one_click_type="first")))
    token = first["transactions"][0]["payment_method_details"]["vault_token"]
    order = sandbox.place(
        details(one_click_type="one-click", vault_token=token, cvc="123"),
        customer={"email_address": f"{local}@example.com"},
    )
    assert order["status"] == "completed"


def test_a_reset_frees_the_clock_at_once(watched: Sandbox, shop: Shop) -> None:
    """After a reset, advances and webhooks do not wait for a receiver from before the reset."""
    arrived, released = Event(), Event()

    def block(received: Received) -> int:
        if len(shop.received) == 1:
            arrived.set()
            released.wait(4)
        return 200

    shop.answer = block
    watched.place(card())
    other = Sandbox.__new__(Sandbox)
    other.__dict__.update(watched.__dict__, http=requests.Session())
    with ThreadPoolExecutor(1) as thread:
        advance = thread.submit(other.post, "/control/clock/advance/", {"by": "PT1H"})
        assert arrived.wait(60)
        watched.post("/control/reset/")
        watched.place(by("bank-transfer"))
        watched.advance("PT1M")
        assert len(shop.received) == 2
        released.set()
        assert advance.result().json()["stopped"] is True
    assert watched.now() == "2026-03-01T12:01:00.000000+00:00"
    other.http.close()


def test_before_the_response_holds_for_many_at_once(project: Callable[..., Sandbox], shop: Shop) -> None:
    """Each of forty creations by eight clients returns after its webhook, though handlers call the API."""
    sandbox = project(webhook_url=shop.url, webhook_timing="before_response")

    def read_back(received: Received) -> int:
        answer = requests.get(f"{sandbox.url}/v1/orders/{received.body['order_id']}/", auth=(sandbox.key, ""))
        return answer.status_code

    shop.answer = read_back

    def create(_: int) -> bool:
        body = {"currency": "EUR", "amount": 1, "transactions": [by("bank-transfer")]}
        answer = requests.post(f"{sandbox.url}/v1/orders/", json=body, auth=(sandbox.key, ""))
        return answer.json()["id"] in shop.orders()

    with ThreadPoolExecutor(8) as threads:
        assert list(threads.map(create, range(40))) == [True] * 40


def test_identifiers_are_not_reused_after_a_reset(project: Callable[..., Sandbox]) -> None:
    """Ids are never reused after a reset; the same seed and history give the same ids."""
    histories = []
    for _ in range(2):
        sandbox = project(seed=5)
        ids = []
        for _ in range(3):
            order = sandbox.place(card())
            ids += [order["id"], order["transactions"][0]["id"]]
            sandbox.post("/control/reset/")
        assert len(set(ids)) == 6
        histories.append(ids)
    assert histories[0] == histories[1]


def test_an_etag_of_before_a_restore_is_no_etag_of_after(sandbox: Sandbox) -> None:
    """An ETag from before a restore does not match an order with the same id and version after it."""
    state = sandbox.get("/control/state/").json()
    before = sandbox.create(amount=100)
    assert sandbox.put("/control/state/", state).status_code == 200
    path = f"/v1/orders/{before.json()['id']}/"
    assert sandbox.get(path).status_code == 404, "the restore deletes later orders"
    after = sandbox.create(amount=200)
    assert after.json()["id"] == before.json()["id"]
    assert sandbox.get(path, headers={"If-None-Match": before.headers["ETag"]}).status_code == 200


def test_only_a_scan_makes_a_qr_order(sandbox: Sandbox) -> None:
    """A merchant's extra can neither set nor remove the mark of a scan."""
    forged = sandbox.place(extra={"bankqr_id": "zz"})
    assert (forged["flags"], forged["extra"]) == (["is-test"], {"bankqr_id": "zz"})
    request = sandbox.post("/v1/bankqr/", {"amount": 5}).json()
    order = sandbox.post(f"/control/bankqr/{request['id']}/scan/", {}).json()
    updated = sandbox.put(f"/v1/orders/{order['id']}/", {"extra": {"a": 1}}).json()
    assert updated["extra"] == {"a": 1, "bankqr_id": request["id"]}
    assert "from-bankqr" in updated["flags"]


def test_swapping_all_webhooks_delivers_all(watched: Sandbox, shop: Shop) -> None:
    """Every second webhook is sent first; a last one without a successor is sent when the project is idle."""
    watched.scenario(webhooks=[{"then": {"swap": True}}])
    orders = []
    for _ in range(3):
        orders.append(watched.place(by("bank-transfer"))["id"])
        watched.settle()
    assert shop.orders() == [orders[1], orders[0]]
    watched.advance(until="idle")
    assert {item["state"] for item in watched.webhooks()} == {"delivered"}


def test_copies_of_a_webhook_count_once(watched: Sandbox, shop: Shop) -> None:
    """Ten attempts in eighteen minutes are sent twice each."""
    shop.answer = lambda received: 500
    watched.scenario(webhooks=[{"then": {"duplicate": 2}}])
    watched.place(by("bank-transfer"))
    watched.advance("PT16M")
    assert watched.webhooks()[0]["state"] == "pending"
    watched.advance("PT1H")
    (failed,) = watched.webhooks(state="failed")
    assert [attempt["number"] for attempt in failed["attempts"]] == sorted([*range(1, 11)] * 2)


def test_a_webhook_is_taken_by_its_status(watched: Sandbox, shop: Shop) -> None:
    """A 200 with an unreadable body counts as delivered."""
    shop.answer = lambda received: (200, {"Content-Length": "500"})
    watched.place(by("bank-transfer"))
    watched.settle()
    (delivery,) = watched.webhooks(state="delivered")
    assert "body" in delivery["attempts"][0]["warning"]


def test_a_late_customer_is_late_on_a_fast_clock(project: Callable[..., Sandbox]) -> None:
    """Entries that are due on a running clock run before the next request."""
    sandbox = project(clock="running")
    order = sandbox.place(card(expiration_period="PT1S"))
    sandbox.patch("/control/clock/", {"mode": "running", "rate": 1_000_000})
    sandbox.get("/control/clock/")
    refused(sandbox.act(order, "customer pay"), 409, "ActionNotPossible")


def test_an_advance_by_a_period_takes_exactly_that(project: Callable[..., Sandbox]) -> None:
    """An advance by a period is exact, also on a running clock."""
    answer = project(clock="running").post("/control/clock/advance/", {"by": "PT1H"}).json()
    assert (answer["from"][14:], answer["from"][:10]) == (answer["to"][14:], answer["from"][:10])


def test_the_journal_keeps_strays_and_broken_bodies(sandbox: Sandbox) -> None:
    """The journal records unknown paths, wrong methods and invalid JSON."""
    sandbox.get("/v1/nowhere/")
    sandbox.patch("/v1/orders/", {})
    sandbox.post("/v1/orders/", data=b'{"amount": NaN', headers={"Content-Type": "application/json"})
    items = sandbox.get("/control/journal/").json()["items"]
    assert [(item["path"], item["status"]) for item in items] == [
        ("/v1/nowhere/", 404), ("/v1/orders/", 405), ("/v1/orders/", 400)
    ]  # fmt: skip
    assert items[2]["request"] == '{"amount": NaN'


def test_patterns_are_in_json_schemas_dialect(sandbox: Sandbox) -> None:
    """Patterns are anchored at both ends, without Python's extensions."""
    described = sandbox.get("/openapi.json").text
    assert "\\\\Z" not in described
    assert '"pattern": "^(?:[0-9]{3,4})$"' in described


def test_an_update_leaves_a_method_that_can_pay(sandbox: Sandbox) -> None:
    """An update cannot remove the lines that the only allowed method needs."""
    order = sandbox.place(amount=LINES_TOTAL, order_lines=LINES, payment_methods=["pay-later-a"])
    path = f"/v1/orders/{order['id']}/"
    assert set(violations(sandbox.put(path, {"order_lines": []}))) == {"payment_methods"}
    assert sandbox.put(path, {"amount": 1}).status_code == 200


def test_money_that_came_in_is_not_given_up(live: Sandbox) -> None:
    """After a partial credit, no other method can be chosen; the remainder can still arrive."""
    order = live.place(amount=1000)
    live.acted(order, "customer choose", payment_method="bank-transfer")
    live.acted(order, "bank credit", amount=400)
    refused(live.act(order, "customer choose", payment_method="credit-card"), 409, "ActionNotPossible")
    assert live.acted(order, "bank credit", amount=600)["status"] == "completed"


@pytest.mark.parametrize("lines", [[{}], [{"amount": 1}], ["x"], [[]], [{"a": 1}]])
def test_wrong_lines_in_an_update_are_named(sandbox: Sandbox, lines: Any) -> None:
    """Wrong lines in an update have the same violations as in a creation."""
    order = sandbox.place(card())
    messages = violations(sandbox.put(f"/v1/orders/{order['id']}/", {"order_lines": lines, "description": 5}))
    assert "description" in messages
    assert any(path.startswith("order_lines[0]") for path in messages)
