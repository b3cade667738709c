import pytest
import requests
from django.core.asgi import get_asgi_application

from shop.models import Sale


@pytest.mark.django_db(transaction=True)
def test_with_a_live_server(live_server, payment_sandbox, settings):
    settings.PAYMENTS_URL = payment_sandbox.base_url
    settings.PAYMENTS_KEY = payment_sandbox.api_key
    answer = requests.post(f"{live_server.url}/checkout/", allow_redirects=False, timeout=10)
    page = requests.get(answer.headers["Location"], timeout=10)
    assert page.status_code == 200
    payment_sandbox.act(Sale.objects.get().order_id)
    payment_sandbox.client.wait(idle=True)
    assert Sale.objects.get().status == "paid"


@pytest.mark.django_db
def test_with_the_asgi_application(payment_sandbox, client, settings):
    payment_sandbox.intercept(settings.PAYMENTS_URL)
    settings.PAYMENTS_KEY = payment_sandbox.api_key
    payment_sandbox.deliver_to(get_asgi_application())
    client.post("/checkout/")
    payment_sandbox.act(Sale.objects.get().order_id)
    assert Sale.objects.get().status == "paid"
