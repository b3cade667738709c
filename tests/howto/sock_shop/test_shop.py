"""Tests of the shop's promises to its customers, and of the amounts that it captures and refunds."""

import pytest
from flask.testing import FlaskClient

from payment_sandbox import PaymentSandbox

from .conftest import Customer

SOCKS_CENTS, HAT_CENTS = 995, 2450


def captured_cents(sandbox: PaymentSandbox, payment_id: str | None) -> int:
    """Return the captured amount of an order."""
    order = sandbox.client.call("GET", f"/v1/orders/{payment_id}/", query={"fields[]": "amount_details"})
    captured: int = order["amount_details"]["captured"]
    return captured


def test_a_customer_pays_and_is_thanked(customer: Customer) -> None:
    """The sale is paid once, however often the customer returns."""
    sale = customer.buys(socks=2, hat=1)
    assert "waiting" in customer.comes_back(sale)
    customer.pays(sale)
    assert "thank you" in customer.comes_back(sale)
    assert (sale.status, sale.mails) == ("paid", ["We have your order."])


@pytest.mark.payment_scenario("webhook-twice")
def test_one_payment_is_one_mail_although_its_webhooks_come_twice(
    customer: Customer, payment_sandbox: PaymentSandbox
) -> None:
    """Each webhook arrives twice, and the customer gets one mail."""
    sale = customer.buys(socks=1)
    customer.pays(sale)
    payment_sandbox.clock.advance("PT1H")
    assert (sale.status, sale.mails) == ("paid", ["We have your order."])


@pytest.mark.payment_scenario("webhook-lost")
def test_the_return_of_the_customer_replaces_a_lost_webhook(customer: Customer) -> None:
    """When the customer returns, the shop reads the order."""
    sale = customer.buys(socks=1)
    customer.pays(sale)
    assert sale.status == "open"
    assert "thank you" in customer.comes_back(sale)


@pytest.mark.parametrize("action", ["cancel", "fail"])
def test_a_payment_that_fails_ships_nothing(customer: Customer, shop: FlaskClient, action: str) -> None:
    """A return visit does not prove a payment."""
    sale = customer.buys(hat=1)
    customer.pays(sale, action=action)
    assert "did not work" in customer.comes_back(sale)
    assert shop.post(f"/sales/{sale.number}/ship").status_code == 409


def test_a_customer_tries_again(customer: Customer, shop: FlaskClient) -> None:
    """The second attempt is a separate order with its own number."""
    sale = customer.buys(hat=1)
    customer.pays(sale, card="declined", action="pay")
    first_payment_id = sale.payment_id
    assert shop.post(f"/sales/{sale.number}/pay").status_code == 303
    customer.pays(sale)
    assert (sale.status, sale.payment_id != first_payment_id) == ("paid", True)


def test_an_unpaid_sale_is_lost(customer: Customer, payment_sandbox: PaymentSandbox) -> None:
    """A sale that is not paid within two weeks is lost."""
    sale = customer.buys(socks=1)
    payment_sandbox.clock.advance("P15D")
    assert sale.status == "lost"


def test_shipping_takes_the_money(
    customer: Customer, shop: FlaskClient, payment_sandbox: PaymentSandbox
) -> None:
    """Nothing is captured before shipping, and then only what is in the parcel."""
    sale = customer.buys(socks=3)
    customer.pays(sale)
    payment_sandbox.clock.advance("P13D")
    assert captured_cents(payment_sandbox, sale.payment_id) == 0
    assert shop.post(f"/sales/{sale.number}/ship", data={"socks": 2}).status_code == 200
    assert captured_cents(payment_sandbox, sale.payment_id) == 2 * SOCKS_CENTS
    assert shop.post(f"/sales/{sale.number}/ship").status_code == 409, "shipped already"


def test_shipping_too_late_is_refused(
    customer: Customer, shop: FlaskClient, payment_sandbox: PaymentSandbox
) -> None:
    """After two weeks, the authorization has expired, so the parcel is not shipped."""
    sale = customer.buys(hat=1)
    payment_sandbox.clock.advance("PT1S")
    customer.pays(sale)
    payment_sandbox.client.faults(webhooks=[{"then": {"drop": True}}])  # and the job has not run yet
    payment_sandbox.clock.advance("P14D")
    response = shop.post(f"/sales/{sale.number}/ship")
    assert (response.status_code, "AuthorizationExpired" in response.get_json()["problem"]) == (409, True)
    assert sale.mails == ["We have your order."]


def test_returned_items_are_refunded(
    customer: Customer, shop: FlaskClient, payment_sandbox: PaymentSandbox
) -> None:
    """The shop refunds returned items, and never more than it captured."""
    sale = customer.buys(socks=2, hat=1)
    customer.pays(sale)
    shop.post(f"/sales/{sale.number}/ship")
    response = shop.post(f"/sales/{sale.number}/return", data={"hat": 1, "slip": "R-1"})
    assert response.json is not None
    payment_sandbox.clock.advance(until="idle")
    refund = payment_sandbox.client.order(response.json["refund"])
    assert (refund["status"], refund["amount"]) == ("completed", HAT_CENTS)
    assert shop.post(f"/sales/{sale.number}/return", data={"hat": 1, "slip": "R-2"}).status_code == 409


def test_a_lost_response_charges_the_customer_once(
    customer: Customer, payment_sandbox: PaymentSandbox
) -> None:
    """After a lost response, the shop reports the problem, and the second attempt has its own number."""
    payment_sandbox.scenario("lost-create-response")
    response = customer.browser.post("/checkout", data={"socks": 1})
    assert (response.status_code, "please try again" in response.text) == (503, True)
    sale = customer.sale()
    customer.browser.post(f"/sales/{sale.number}/pay")
    customer.pays(sale)
    payment_sandbox.clock.advance("P15D")
    creations = payment_sandbox.client.journal(method="POST", path="/v1/orders/")
    assert [entry["request"]["merchant_order_id"] for entry in creations] == ["S-1001-1", "S-1001-2"]
    assert sale.mails == ["We have your order."]


def test_the_integration_is_clean(
    customer: Customer, shop: FlaskClient, payment_sandbox: PaymentSandbox
) -> None:
    """The sandbox's review has no findings from checkout to refund."""
    sale = customer.buys(socks=1, hat=1)
    customer.pays(sale)
    customer.comes_back(sale)
    shop.post(f"/sales/{sale.number}/ship")
    shop.post(f"/sales/{sale.number}/return", data={"socks": 1, "slip": "R-1"})
    payment_sandbox.clock.advance("P30D")
    assert payment_sandbox.review() == []
