"""Each row of the table is planned where it should be, and changes what happens there."""

import re
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

import pytest
from flask import Flask, request

from payment_sandbox import PaymentSandbox
from payment_sandbox.judge.history import history
from payment_sandbox.testing.servers import PaymentSandboxServer
from payment_sandbox.testing.shops.submitting import set_observer
from pytest_payment_sandbox.rehearsal.judging import judge
from pytest_payment_sandbox.rehearsal.run import TestRun
from pytest_payment_sandbox.rehearsal.scenes import RESTART_FIXTURE, orders_of
from pytest_payment_sandbox.rehearsal.steps import UNCHANGED, plan
from pytest_payment_sandbox.rehearsal.variations import VARIATIONS, parse_change

CARD: Final = {"payment_method": "credit-card", "capture_mode": "manual"}
WALLET: Final = {"payment_method": "wallet-web"}
ROWS_MAX: Final = 40


class Shop:
    """A shop with a form, a webhook handler and, if wanted, a return page."""

    def __init__(self, sandbox: PaymentSandbox, *, has_return: bool = True) -> None:
        self.sandbox, self.has_return = sandbox, has_return
        self.app = Flask("shop")
        self.app.add_url_rule("/buy", view_func=self.buy, methods=["POST"])
        self.app.add_url_rule("/cancel/<order_id>", view_func=self.cancel, methods=["POST"])
        self.app.add_url_rule("/webhook", view_func=self.webhook, methods=["POST"])
        self.app.add_url_rule("/thanks", "thanks", lambda: "thanks")
        sandbox.deliver_to(self.app)
        self.attempts: list[dict[str, Any]] = []
        self.heard: list[str] = []

    def call(self, method: str, path: str = "", body: Any = None) -> Any:
        """Call the service."""
        url = f"{self.sandbox.base_url}/v1/orders/{path}"
        answer = self.sandbox.session.request(method, url, json=body, timeout=60)
        self.heard.append(f"answer to {method}")
        return answer.json()

    def buy(self) -> str:
        """Create an order for the count in the form."""
        amount = 1295 * int(request.form["count"])
        body = {"currency": "EUR", "amount": amount, "transactions": self.attempts}
        body |= {"return_url": "http://testserver/thanks"} if self.has_return else {}
        return str(self.call("POST", body={key: value for key, value in body.items() if value})["id"])

    def cancel(self, order_id: str) -> Any:
        """Cancel an order."""
        return self.call("DELETE", f"{order_id}/")

    def webhook(self) -> tuple[str, int]:
        """Read the order."""
        self.heard.append("webhook")
        self.call("GET", f"{request.get_json()['order_id']}/")
        return "", 204

    def restart(self) -> None:
        """Call the service as the shop does when it starts."""
        self.call("GET", "started/")

    def order(self, *attempts: dict[str, Any]) -> str:
        """Buy as the customer of the test, with a count in the form."""
        self.attempts = [*attempts]
        return self.sandbox.browser(self.app).post("/buy", data={"count": 2}).text


def hosted(shop: Shop) -> None:
    """Pay on the hosted page."""
    order_id = shop.order()
    shop.sandbox.act(order_id, action="choose", payment_method="credit-card")
    shop.sandbox.act(order_id)
    shop.sandbox.clock.advance("PT1H")


def captured(shop: Shop) -> None:
    """Authorize, and capture."""
    order_id = shop.order(CARD)
    shop.sandbox.act(order_id)
    transaction = shop.call("GET", f"{order_id}/")["transactions"][0]["id"]
    shop.call("POST", f"{order_id}/transactions/{transaction}/captures/", {})


def refunded(shop: Shop) -> None:
    """Pay, and refund."""
    order_id = shop.order(WALLET)
    shop.sandbox.act(order_id)
    shop.call("POST", f"{order_id}/refunds/", {"amount": 1295})


def transferred(shop: Shop) -> None:
    """Pay by bank transfer."""
    shop.sandbox.act(shop.order({"payment_method": "bank-transfer"}), "bank", "credit")


def tried_twice(shop: Shop) -> None:
    """Leave a first order open, give up a second one, pay a third one, and cancel the first one."""
    first = shop.order(WALLET)
    shop.sandbox.act(shop.order(WALLET), "customer", "fail")
    shop.sandbox.act(shop.order(WALLET))
    shop.sandbox.browser(shop.app).post(f"/cancel/{first}")


def screened(shop: Shop) -> None:
    """Pay later, after a screening."""
    line = {"type": "physical", "name": "socks", "amount": 1295, "currency": "EUR", "quantity": 1}
    line |= {"vat_percentage": 1900, "merchant_order_line_id": "1"}
    body = {"currency": "EUR", "amount": 1295, "order_lines": [line]}
    shop.call("POST", body={**body, "transactions": [{"payment_method": "pay-later-a"}]})


def renewed(shop: Shop) -> None:
    """Charge a stored card."""
    order_id = shop.order(
        {"payment_method": "credit-card", "payment_method_details": {"recurring_type": "first"}}
    )
    shop.sandbox.act(order_id)
    details = shop.call("GET", f"{order_id}/")["transactions"][0]["payment_method_details"]
    details = {"recurring_type": "recurring", "vault_token": details["vault_token"]}
    shop.order({"payment_method": "credit-card", "payment_method_details": details})


def read_often(shop: Shop) -> None:
    """Read five times."""
    for _ in range(5):
        shop.call("GET", "unknown/")


PLANNED: Final[dict[Callable[[Shop], None], str]] = {
    hosted: """
        webhook:2:twice webhook:2:together webhook:2:lost webhook:2:late webhook:2:lost-and-unread
        create:1:answer-lost create:1:unavailable create:1:refused read:1:unavailable-twice press:1:twice
        press:1:again-later press:1:another-pays press:1:one-less press:1:in-parts action:2:fails
        action:2:opens-page action:2:returns-first action:2:returns-unpaid action:2:fails-then-pays
        action:2:last-moment action:2:cancels action:2:restarted time:1:restarted
    """,
    renewed: """
        create:2:early attempt:2:charge-declined attempt:2:charge-later
    """,
    captured: """
        change:1:answer-lost change:1:refused change:1:captured change:1:voided action:1:lapses
    """,
    refunded: """
        change:1:unavailable attempt:2:fails-later attempt:2:settles-later
    """,
    tried_twice: """
        change:1:early action:1:pays-later action:2:other-tab action:2:pays-both action:2:cancels-later
    """,
    transferred: """
        action:1:too-late action:1:short action:1:surplus action:1:walks-away
    """,
    screened: """
        attempt:1:declined
    """,
}
"""Where each row must be planned: kind of step, number and name, by the test of a shop."""
ROWS: Final = [(flow, change) for flow, changes in PLANNED.items() for change in changes.split()]


def planned(sandbox: PaymentSandbox, flow: Callable[[Shop], None], **options: bool) -> list[str]:
    """Return the changes that a rehearsal of a flow plans."""
    run = TestRun(None, None, lambda name: None, lambda: True, judge)
    run.attach(sandbox)
    set_observer(run)
    flow(Shop(sandbox, **options))
    set_observer(None)
    return [change.name for change in plan(run.steps, VARIATIONS, can_restart=True)]


def test_the_table_has_at_most_forty_rows_and_each_has_its_place() -> None:
    """No row is without a place in this module."""
    assert len(VARIATIONS) <= ROWS_MAX
    rows = {f"{kind} {row.name}" for row in VARIATIONS for kind in row.kinds}
    assert rows == {re.sub(r":\d+:", " ", change) for _, change in ROWS}


Story = tuple[list[str], list[tuple[Any, ...]], list[tuple[int, int]]]


def story(server: PaymentSandboxServer, flow: Callable[[Shop], None], change: str) -> Story:
    """Return what the shop hears, what happens in a flow with a change, and what becomes of the money."""
    with server.project({"mode": "live", "seed": 1, "clock": "frozen@2026-06-01T10:00:00Z"}) as sandbox:
        shop = Shop(sandbox)
        fixtures = {RESTART_FIXTURE: shop.restart}
        run = TestRun(parse_change(change), None, fixtures.get, lambda: True, judge)
        run.attach(sandbox)
        set_observer(run)
        with suppress(Exception):  # the shop expects no changes
            flow(shop)
        set_observer(None)
        assert run.is_applied is (change != UNCHANGED)
        sandbox.clock.advance("P3D")
        entries = history(run.project.epoch)
        happened = [(each.at - entries[0].at, each.kind, each.label, each.failed) for each in entries]
        money = [(each.amount_cents, each.received_cents) for each in orders_of(run.project)]
        return shop.heard, happened, money


@pytest.fixture(scope="module")
def usual(payment_sandbox_server: PaymentSandboxServer) -> dict[Callable[[Shop], None], Story]:
    """The story of each flow without a change, which is the same each time."""
    first, second = (
        {flow: story(payment_sandbox_server, flow, UNCHANGED) for flow in PLANNED} for _ in range(2)
    )
    assert first == second
    return first


@pytest.mark.payment_settings(mode="live")
@pytest.mark.parametrize(("flow", "change"), ROWS)
def test_a_row_is_planned_and_changes_what_happens(
    payment_sandbox: PaymentSandbox,
    payment_sandbox_server: PaymentSandboxServer,
    usual: dict[Callable[[Shop], None], Story],
    flow: Callable[[Shop], None],
    change: str,
) -> None:
    """The rehearsal of a small test plans the row, which is not without effect."""
    assert change in planned(payment_sandbox, flow)
    assert usual[flow] != story(payment_sandbox_server, flow, change)


def test_a_page_that_customers_open_needs_no_return_page(payment_sandbox: PaymentSandbox) -> None:
    """Only the acts that need a return page are left out without one, and splitting needs a number."""
    names = planned(payment_sandbox, hosted, has_return=False)
    assert "action:2:opens-page" in names
    assert not [name for name in names if "returns" in name]


def test_each_label_has_its_first_and_its_last_step(payment_sandbox: PaymentSandbox) -> None:
    """A row is planned at the first and the last step of a label, in the order of the table."""
    names = planned(payment_sandbox, read_often)
    assert names == ["read:1:unavailable-twice", "read:5:unavailable-twice"]
