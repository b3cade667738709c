import pytest
from django.core.wsgi import get_wsgi_application
from django.test import TestCase, override_settings

from payment_sandbox import PaymentSandboxMixin
from shop.models import Sale


@pytest.fixture
def sandbox(payment_sandbox, settings):
    payment_sandbox.intercept(settings.PAYMENTS_URL)
    settings.PAYMENTS_KEY = payment_sandbox.api_key
    payment_sandbox.deliver_to(get_wsgi_application())
    return payment_sandbox


@pytest.mark.django_db
def test_a_paid_sale(sandbox, client):
    answer = client.post("/checkout/")
    assert answer.status_code == 302
    sale = Sale.objects.get()
    sandbox.act(sale.order_id)
    sale.refresh_from_db()
    assert sale.status == "paid"


@pytest.mark.django_db
@pytest.mark.payment_settings(mode="live")
def test_a_bank_transfer_is_paid(sandbox, client):
    client.post("/checkout/", {"method": "bank-transfer"})
    sandbox.act(Sale.objects.get().order_id, "bank", "credit")
    sandbox.clock.advance("PT1H")
    assert Sale.objects.get().status == "paid"
    sandbox.review().assert_clean()


class TestSales(PaymentSandboxMixin, TestCase):
    payment_intercept = ["https://api.provider.example"]

    def setUp(self):
        self.payment_sandbox.deliver_to(get_wsgi_application())
        self.enterContext(override_settings(PAYMENTS_KEY=self.payment_sandbox.api_key))

    def test_an_unpaid_sale(self):
        self.client.post("/checkout/")
        self.payment_sandbox.clock.advance("PT30M")
        self.assertEqual(Sale.objects.get().status, "open")
