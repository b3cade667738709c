"""Methods of a TestCase are rehearsed, too; the class provides the books."""

from pathlib import Path

from tests.rehearsal.test_rehearsing import BOOKS, rehearse_suite

CASES = (
    BOOKS.replace("def payment_books", "def no_books")
    + """
import unittest

from payment_sandbox import PaymentSandboxMixin


class TestShop(PaymentSandboxMixin, unittest.TestCase):
    def setUp(self):
        self.shop = create_shop(self.payment_sandbox)

    def tearDown(self):
        self.shop.paid.clear()

    def payment_books(self):
        return [
            {"purchase": order_id, "orders": [order_id], "paid": paid} for order_id, paid in self.shop.paid.items()
        ]

    def test_a_sale(self):
        order_id = self.shop.test_client().post("/buy").text
        self.payment_sandbox.act(order_id)
        self.assertEqual(self.shop.paid[order_id], 1295)
"""
)


def test_a_mistake_is_found(tmp_path: Path) -> None:
    """A mistake is found before the test case is torn down."""
    early = CASES.replace('if status == "completed":', 'if status != "new":')
    code, report, output = rehearse_suite(tmp_path, early, "--payment-rehearse-only=action:1:fails")
    (finding,) = report["findings"]
    assert code == 1
    assert finding["sentence"].endswith("the shop marks it as paid, but no payment was made"), output
    assert "is error" in finding["timeline"]
