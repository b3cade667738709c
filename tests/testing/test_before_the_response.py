"""Webhooks that arrive before the response to the shop's call run on the thread of the call."""

from threading import current_thread

import requests
from flask import Flask, request

from payment_sandbox.testing.project_fixture import PaymentSandbox
from tests.support.in_process import ORDER

PROVIDER = "https://api.provider.example/v1/orders/"


def test_a_call_during_a_request_of_the_test(payment_sandbox: PaymentSandbox) -> None:
    """The handler shares the thread, and thus the transaction, of the waiting checkout."""
    app, seen = Flask("shop"), []

    @app.post("/checkout")
    def checkout() -> str:
        auth = (payment_sandbox.api_key, "")
        order_request = {**ORDER, "transactions": [{"payment_method": "bank-transfer"}]}
        order = requests.post(PROVIDER, json=order_request, auth=auth).json()
        seen.append(("response", current_thread()))
        return str(order["id"])

    @app.post("/webhook")
    def webhook() -> str:
        auth = (payment_sandbox.api_key, "")
        url = f"{PROVIDER}{request.json['order_id']}/"
        seen.append((requests.get(url, auth=auth).json()["status"], current_thread()))
        return ""

    payment_sandbox.intercept(PROVIDER.partition("/v1/")[0])
    payment_sandbox.client.change_settings(webhook_timing="before_response")
    payment_sandbox.deliver_to(app)
    assert app.test_client().post("/checkout").status_code == 200
    assert seen == [("processing", current_thread()), ("response", current_thread())]
