"""Delivery over the network after ``deliver_to``."""

import pytest

from payment_sandbox.testing.project_fixture import PaymentSandbox
from tests.support.in_process import place, shop_that
from tests.support.shop import Shop


def test_webhooks_return_to_the_previous_address(payment_sandbox: PaymentSandbox, shop: Shop) -> None:
    """After ``deliver_over_network``, webhooks go to the address from before the last ``deliver_to``."""
    payment_sandbox.client.change_settings(webhook_url=shop.url)
    recipients: list[str] = []
    app = shop_that(lambda order_id: recipients.append("app"))
    for _ in range(2):  # the second one replaces the first
        payment_sandbox.deliver_to(app)
    payment_sandbox.act(place(payment_sandbox))
    payment_sandbox.deliver_over_network()
    order_id = place(payment_sandbox)
    payment_sandbox.act(order_id)
    assert (set(recipients), set(shop.orders())) == ({"app"}, {order_id})


def test_other_addresses_stay_on_the_network(payment_sandbox: PaymentSandbox, shop: Shop) -> None:
    """With ``hosts``, the application receives only webhooks for these hosts, in any letter case."""
    recipients: list[str] = []
    app = shop_that(lambda order_id: recipients.append("app"))
    with pytest.raises(ValueError, match=r"must be a list of host names"):
        payment_sandbox.deliver_to(app, hosts="shop.example")
    payment_sandbox.deliver_to(app, "http://shop.example/webhook", hosts=["Shop.Example"])
    for more in ({}, {"webhook_url": "http://SHOP.example:8000/webhook"}, {"webhook_url": shop.url}):
        payment_sandbox.act(place(payment_sandbox, **more), action="visit")
    assert (recipients, len(shop.received)) == (["app", "app"], 1)


def test_webhooks_of_tests_stay_on_this_machine(payment_sandbox: PaymentSandbox) -> None:
    """A webhook to a remote address is not sent, and the error suggests what to call."""

    def error() -> str:
        order_id = place(payment_sandbox, webhook_url="https://shop.invalid/webhook")
        payment_sandbox.act(order_id, action="visit")
        return str(payment_sandbox.webhooks[-1]["attempts"][0]["error"])

    assert error().startswith("not sent: webhooks of tests stay on this machine; deliver_to(app) ")
    assert "deliver_over_network(hosts=['shop.invalid'])" in error()
    advice = {finding.advice for finding in payment_sandbox.review() if finding.rule == "HOOK-09"}
    assert advice == {"Call payment_sandbox.deliver_to(app), which delivers webhooks to the shop under test."}
    payment_sandbox.deliver_over_network(hosts=["shop.invalid"])
    assert "not sent" not in error()
    payment_sandbox.deliver_over_network()
    assert "not sent" in error()
