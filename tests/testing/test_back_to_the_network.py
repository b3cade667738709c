"""After ``deliver_to``, webhooks can go over the network again."""

import pytest
from flask import Flask

from payment_sandbox.testing.project import PaymentSandbox
from tests.support.in_process import ORDER, shop_that
from tests.support.shop import Shop


@pytest.mark.parametrize("was_set", [True, False])
def test_there_is_a_way_back(payment_sandbox: PaymentSandbox, shop: Shop, was_set: bool) -> None:
    """To the address that the project had before, or to none."""
    before = shop.url if was_set else None
    payment_sandbox.client.change_settings(webhook_url=before)
    reached: list[str] = []
    app = shop_that(lambda order_id: reached.append("app"))
    for _ in range(2):  # the second one replaces the first
        payment_sandbox.deliver_to(app)
    first = payment_sandbox.session.post(f"{payment_sandbox.base_url}/v1/orders/", json=ORDER).json()
    payment_sandbox.act(first["id"])
    payment_sandbox.deliver_over_network()
    second = payment_sandbox.session.post(f"{payment_sandbox.base_url}/v1/orders/", json=ORDER).json()
    payment_sandbox.act(second["id"])
    assert payment_sandbox.client.project()["settings"]["webhook_url"] == before
    assert set(reached) == {"app"}
    assert set(shop.orders()) == ({second["id"]} if was_set else set())


def test_the_way_back_may_be_taken_at_any_time(payment_sandbox: PaymentSandbox, shop: Shop) -> None:
    """Without a way there, nothing changes."""
    payment_sandbox.client.change_settings(webhook_url=shop.url)
    payment_sandbox.deliver_over_network()
    assert payment_sandbox.client.project()["settings"]["webhook_url"] == shop.url


def test_others_addresses_stay_on_the_network(payment_sandbox: PaymentSandbox, shop: Shop) -> None:
    """With hosts, the application gets what is addressed to it, in any spelling."""
    reached: list[str] = []
    app = shop_that(lambda order_id: reached.append("app"))
    payment_sandbox.deliver_to(app, "http://shop.example/webhook", hosts=["Shop.Example"])
    for address in (None, "http://SHOP.example:8000/webhook", shop.url):
        order = {**ORDER, "webhook_url": address} if address else ORDER
        made = payment_sandbox.session.post(f"{payment_sandbox.base_url}/v1/orders/", json=order).json()
        payment_sandbox.act(made["id"], action="visit")
    assert (reached, len(shop.received)) == (["app", "app"], 1)


def test_hosts_are_a_list(payment_sandbox: PaymentSandbox) -> None:
    """A text is none."""
    with pytest.raises(ValueError, match=r"must be a list of host names"):
        payment_sandbox.deliver_to(Flask("shop"), hosts="shop.example")


def test_webhooks_of_tests_stay_on_this_machine(payment_sandbox: PaymentSandbox) -> None:
    """An order with the production shop's address must not reach it; the timeline says what to call."""

    def error() -> str:
        order = {**ORDER, "webhook_url": "https://shop.invalid/webhook"}
        made = payment_sandbox.session.post(f"{payment_sandbox.base_url}/v1/orders/", json=order).json()
        payment_sandbox.act(made["id"], action="visit")
        return str(payment_sandbox.webhooks[-1]["attempts"][0]["error"])

    assert error().startswith("not sent: webhooks of tests stay on this machine; deliver_to(app) ")
    assert "deliver_over_network(hosts=['shop.invalid'])" in error()
    advice = {finding.advice for finding in payment_sandbox.review() if finding.rule == "HOOK-09"}
    assert advice == {"Call payment_sandbox.deliver_to(app), which delivers webhooks to the shop under test."}
    payment_sandbox.deliver_over_network(hosts=["shop.invalid"])
    assert "not sent" not in error()
    payment_sandbox.deliver_over_network()
    assert "not sent" in error()


def test_hosts_of_the_network_are_a_list(payment_sandbox: PaymentSandbox) -> None:
    """A text is none."""
    with pytest.raises(ValueError, match=r"must be a list of host names"):
        payment_sandbox.deliver_over_network(hosts="shop.example")
