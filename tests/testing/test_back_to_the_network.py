"""Delivery over the network after ``deliver_to``."""

import pytest
from flask import Flask

from payment_sandbox.testing.project_fixture import PaymentSandbox
from tests.support.in_process import ORDER, shop_that
from tests.support.shop import Shop


@pytest.mark.parametrize("has_url", [True, False])
def test_webhooks_return_to_the_previous_address(
    payment_sandbox: PaymentSandbox, shop: Shop, has_url: bool
) -> None:
    """After ``deliver_over_network``, webhooks go to the previous address, or nowhere without one."""
    before = shop.url if has_url else None
    payment_sandbox.client.change_settings(webhook_url=before)
    recipients: list[str] = []
    app = shop_that(lambda order_id: recipients.append("app"))
    for _ in range(2):  # the second one replaces the first
        payment_sandbox.deliver_to(app)
    first_order = payment_sandbox.session.post(f"{payment_sandbox.base_url}/v1/orders/", json=ORDER).json()
    payment_sandbox.act(first_order["id"])
    payment_sandbox.deliver_over_network()
    second_order = payment_sandbox.session.post(f"{payment_sandbox.base_url}/v1/orders/", json=ORDER).json()
    payment_sandbox.act(second_order["id"])
    assert payment_sandbox.client.project()["settings"]["webhook_url"] == before
    assert set(recipients) == {"app"}
    assert set(shop.orders()) == ({second_order["id"]} if has_url else set())


def test_deliver_over_network_alone_changes_nothing(payment_sandbox: PaymentSandbox, shop: Shop) -> None:
    """Without a preceding ``deliver_to``, ``deliver_over_network`` changes nothing."""
    payment_sandbox.client.change_settings(webhook_url=shop.url)
    payment_sandbox.deliver_over_network()
    assert payment_sandbox.client.project()["settings"]["webhook_url"] == shop.url


def test_other_addresses_stay_on_the_network(payment_sandbox: PaymentSandbox, shop: Shop) -> None:
    """With ``hosts``, the application receives only webhooks for these hosts, in any letter case."""
    recipients: list[str] = []
    app = shop_that(lambda order_id: recipients.append("app"))
    payment_sandbox.deliver_to(app, "http://shop.example/webhook", hosts=["Shop.Example"])
    for address in (None, "http://SHOP.example:8000/webhook", shop.url):
        order = {**ORDER, "webhook_url": address} if address else ORDER
        created = payment_sandbox.session.post(f"{payment_sandbox.base_url}/v1/orders/", json=order).json()
        payment_sandbox.act(created["id"], action="visit")
    assert (recipients, len(shop.received)) == (["app", "app"], 1)


def test_hosts_are_a_list(payment_sandbox: PaymentSandbox) -> None:
    """A string is refused as ``hosts`` of ``deliver_to`` and ``deliver_over_network``."""
    with pytest.raises(ValueError, match=r"must be a list of host names"):
        payment_sandbox.deliver_to(Flask("shop"), hosts="shop.example")
    with pytest.raises(ValueError, match=r"must be a list of host names"):
        payment_sandbox.deliver_over_network(hosts="shop.example")


def test_webhooks_of_tests_stay_on_this_machine(payment_sandbox: PaymentSandbox) -> None:
    """A webhook to a remote address is not sent, and the error suggests what to call."""

    def error() -> str:
        order = {**ORDER, "webhook_url": "https://shop.invalid/webhook"}
        created = payment_sandbox.session.post(f"{payment_sandbox.base_url}/v1/orders/", json=order).json()
        payment_sandbox.act(created["id"], action="visit")
        return str(payment_sandbox.webhooks[-1]["attempts"][0]["error"])

    assert error().startswith("not sent: webhooks of tests stay on this machine; deliver_to(app) ")
    assert "deliver_over_network(hosts=['shop.invalid'])" in error()
    advice = {finding.advice for finding in payment_sandbox.review() if finding.rule == "HOOK-09"}
    assert advice == {"Call payment_sandbox.deliver_to(app), which delivers webhooks to the shop under test."}
    payment_sandbox.deliver_over_network(hosts=["shop.invalid"])
    assert "not sent" not in error()
    payment_sandbox.deliver_over_network()
    assert "not sent" in error()
