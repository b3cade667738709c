"""Two tests of the shop: with a job that packs what a failed callback has left, and without one."""

import pytest
from django.core.wsgi import get_wsgi_application
from django.urls import path
from shop import packing, urls
from shop.models import Sale

urls.urlpatterns[:] = [
    *(each for each in urls.urlpatterns if each.name != "webhook"),
    path("webhook/", packing.webhook, name="webhook"),
    path("sales/", packing.sales),
]


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    "has_job",
    [True, pytest.param(False, marks=pytest.mark.payment_rehearse(only="read:2:unavailable-twice"))],
)
def test_a_sale_is_packed(payment_sandbox, settings, client, has_job):
    payment_sandbox.intercept(settings.PAYMENTS_URL)
    settings.PAYMENTS_KEY = payment_sandbox.api_key
    payment_sandbox.deliver_to(get_wsgi_application(), "http://testserver/webhook/")
    if has_job:
        payment_sandbox.every("PT1H", packing.look)
    client.post("/checkout/")
    payment_sandbox.act(Sale.objects.get().order_id)
    assert "is packed" in client.get("/sales/").content.decode()
