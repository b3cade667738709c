"""Methods of a TestCase are rehearsed, too: the class tells its books."""

from pathlib import Path

from tests.rehearsal.test_rehearsing import rehearsed, rehearsed_until, tries_many
from tests.support.suites import passed, suite

CASES = """
import unittest

from payment_sandbox import PaymentSandboxMixin


class TestShop(PaymentSandboxMixin, unittest.TestCase):
    def setUp(self):
        self.paid, self.mails, app = {}, [], Flask("shop")

        @app.post("/webhook")
        def webhook():
            self.look(request.json["order_id"])
            return "", 204

        self.payment_sandbox.deliver_to(app)
        self.payment_sandbox.every("PT1H", self.look_at_open_orders)

    def tearDown(self):
        self.paid.clear()

    def look(self, order_id):
        url = f"{self.payment_sandbox.base_url}/v1/orders/{order_id}/"
        answer = self.payment_sandbox.session.get(url, timeout=5)
        answer.raise_for_status()
        if answer.json()["status"] == "completed":
            self.paid[order_id] = 1295
            self.mails.append(order_id)

    def look_at_open_orders(self):
        for order_id, paid in list(self.paid.items()):
            if not paid:
                self.look(order_id)

    def payment_books(self):
        return [{"purchase": order_id, "orders": [order_id], "paid": paid} for order_id, paid in self.paid.items()]

    def buy(self):
        url = f"{self.payment_sandbox.base_url}/v1/orders/"
        order_id = self.payment_sandbox.session.post(url, json=ORDER, timeout=5).json()["id"]
        self.paid[order_id] = 0
        return order_id

    def test_a_sale(self):
        order_id = self.buy()
        self.payment_sandbox.act(order_id)
        self.assertEqual(self.paid[order_id], 1295)
"""
HASTY = CASES.replace('        self.payment_sandbox.every("PT1H", self.look_at_open_orders)\n', "")


def test_a_mistake_is_found(tmp_path: Path) -> None:
    """Before the test case is torn down."""
    only = "--payment-rehearse-only=webhook:1:lost+webhook:2:lost"
    code, told, printed = rehearsed(tmp_path, HASTY, only)
    (finding,) = told["findings"]
    assert code == 1
    words = "the customer paid €12.95, but the shop does not mark it as paid"
    assert finding["sentence"].endswith(words), printed
    assert "is completed" in finding["timeline"]
    assert rehearsed(tmp_path, CASES, only)[1]["findings"] == []


def test_a_right_shop_passes(tmp_path: Path) -> None:
    """Whatever is tried."""
    code, told, printed = rehearsed_until(tries_many, tmp_path, CASES)
    assert (code, told["findings"]) == (0, []), printed[-3000:]
    assert told["variations"] > 10


def test_a_failure_counts_where_the_end_is_the_same(tmp_path: Path) -> None:
    """The assertions of the method judge, without books."""
    counting = CASES.replace("def payment_books", "def no_books") + "        assert len(self.mails) == 2\n"
    code, told, _ = rehearsed(tmp_path, counting, "--payment-rehearse-only=webhook:2:twice")
    assert code == 1
    assert told["findings"][0]["sentence"].startswith(
        "the webhook of 'completed' arrived twice: the test fails: "
    )
    passed(suite(tmp_path, counting), 1)
