import pytest
import shop

ORDER = {"currency": "EUR", "amount": 1295, "transactions": [{"payment_method": "credit-card"}]}


@pytest.fixture
def sandbox(payment_sandbox, monkeypatch):
    monkeypatch.setenv("PAYMENTS_KEY", payment_sandbox.api_key)
    shop.celery.conf.update(task_always_eager=True, task_eager_propagates=True)
    payment_sandbox.intercept(shop.PROVIDER)
    payment_sandbox.deliver_to(shop.app)
    shop.paid.clear()
    return payment_sandbox


def test_a_paid_order(sandbox):
    order_id = shop.call("POST", "/v1/orders/", ORDER)["id"]
    sandbox.act(order_id)
    assert order_id in shop.paid
    sandbox.review().assert_clean()


def test_a_failed_task_fails_the_webhook(sandbox, monkeypatch):
    monkeypatch.setenv("PAYMENTS_KEY", "expired")
    order_id = sandbox.client.call("POST", "/v1/orders/", ORDER)["id"]
    sandbox.act(order_id)
    assert "401" in sandbox.timeline()
    monkeypatch.setenv("PAYMENTS_KEY", sandbox.api_key)
    sandbox.clock.advance("PT2M")  # the webhook is retried
    assert order_id in shop.paid
