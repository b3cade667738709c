import os
from importlib import import_module

from payments import STATUSES, after

from payment_sandbox import PaymentSandboxMixin


class ShopTest(PaymentSandboxMixin, import_module(os.environ["CASE"]).TestCase):
    def test_paid(self):
        self.assertEqual(after(self.payment_sandbox, "pay"), STATUSES["pay"])

    def test_refused(self):
        self.assertEqual(after(self.payment_sandbox, "fail"), STATUSES["fail"])

    def test_expired(self):
        self.assertEqual(after(self.payment_sandbox, "wait"), STATUSES["wait"])
