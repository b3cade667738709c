from urllib.parse import urlsplit

import requests
from django.conf import settings


def call(method, path, body=None):
    answer = requests.request(
        method, f"{settings.PAYMENTS_URL}{path}", json=body, auth=(settings.PAYMENTS_KEY, ""), timeout=10
    )
    answer.raise_for_status()
    return answer.json()


def payment_page_url(order):
    """Return the address of the payment page: payment_url has no scheme, so use the API's scheme."""
    return f"{urlsplit(settings.PAYMENTS_URL).scheme}://{order['transactions'][0]['payment_url']}"
