import unittest

import requests
from flask import Flask, request

from payment_sandbox import PaymentSandboxMixin

PROVIDER = "https://api.provider.example"
ORDER = {"currency": "EUR", "amount": 1295, "transactions": [{"payment_method": "credit-card"}]}


class Shop(Flask):
    """Your own application."""

    def __init__(self, api_key):
        super().__init__("shop")
        self.auth = (api_key, "")
        self.paid = set()
        self.add_url_rule("/webhook", view_func=self.webhook, methods=["POST"])

    def checkout(self):
        return requests.post(f"{PROVIDER}/v1/orders/", json=ORDER, auth=self.auth, timeout=10).json()["id"]

    def webhook(self):
        order_id = request.json["order_id"]
        order = requests.get(f"{PROVIDER}/v1/orders/{order_id}/", auth=self.auth, timeout=10).json()
        if order["status"] == "completed":
            self.paid.add(order_id)
        return "", 204


class TestShop(PaymentSandboxMixin, unittest.TestCase):
    payment_intercept = [PROVIDER]

    def setUp(self):
        self.shop = Shop(self.payment_sandbox.api_key)
        self.payment_sandbox.deliver_to(self.shop)

    def test_a_paid_order(self):
        order_id = self.shop.checkout()
        self.payment_sandbox.act(order_id)
        self.assertIn(order_id, self.shop.paid)
        self.payment_sandbox.review().assert_clean()

    def test_an_unpaid_order(self):
        self.shop.checkout()
        self.payment_sandbox.clock.advance("PT30M")
        self.assertEqual(self.shop.paid, set())


if __name__ == "__main__":
    unittest.main()
