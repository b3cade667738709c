"""Methods of a TestCase are rehearsed, too; the class provides the books."""

from pathlib import Path

from tests.rehearsal.test_rehearsing import rehearse_suite
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
WITHOUT_JOB = CASES.replace('        self.payment_sandbox.every("PT1H", self.look_at_open_orders)\n', "")


def test_a_mistake_is_found(tmp_path: Path) -> None:
    """A mistake is found before the test case is torn down."""
    only = "--payment-rehearse-only=webhook:1:lost+webhook:2:lost"
    code, report, output = rehearse_suite(tmp_path, WITHOUT_JOB, only)
    (finding,) = report["findings"]
    assert code == 1
    effect = "the customer paid €12.95, but the shop does not mark it as paid"
    assert finding["sentence"].endswith(effect), output
    assert "is completed" in finding["timeline"]
    assert rehearse_suite(tmp_path, CASES, only)[1]["findings"] == []


def test_a_failed_assertion_is_a_finding_without_books(tmp_path: Path) -> None:
    """Without books, a failed assertion of the method is a finding."""
    counting = CASES.replace("def payment_books", "def no_books") + "        assert len(self.mails) == 2\n"
    code, report, _ = rehearse_suite(tmp_path, counting, "--payment-rehearse-only=webhook:2:twice")
    assert code == 1
    assert report["findings"][0]["sentence"].startswith(
        "the webhook of 'completed' arrived twice: the test fails: "
    )
    passed(suite(tmp_path, counting), 1)
