"""Customers can return to every accepted return URL."""

from urllib.parse import urlsplit

import pytest

from tests.support.driver import Sandbox, violations
from tests.support.payer import Payer, entered, placed

WRONG_HOSTS = [
    "http://․/",
    "http://a․․b/",
    "http://a..b/",
    "http://.a/",
    "http://a<b/",
    "http://a%41/",
    "http://256.1.1.1/",
    "http://1.2.3.4.5/",
    "http://a.0x7f/",
    "http://xn--/",
    "http://[fe80::1%25eth0]/",
    "http://[v1.x]/",
    f"http://{'a' * 64}/",
    f"http://{'a.' * 127}a/",
    f"http://{'ü' * 80}.example/",
]
RIGHT_URLS = [
    "http://localhost:3000/paid?order=1#top",
    "https://shop.example",
    "http://a.example./",
    "http://münchen.example/bezahlt",
    "http://[::1]:8080/",
    "http://127.0.0.1/",
    "http://my_shop/",
    "http://shop.example/ünïcode?x=ä",
]


@pytest.mark.parametrize("url", WRONG_HOSTS)
def test_a_host_that_browsers_cannot_find_is_refused(sandbox: Sandbox, url: str) -> None:
    """The host is checked at the creation of the order, before any payment."""
    for name in ("return_url", "webhook_url"):
        assert "host" in violations(sandbox.create(**{name: url}))[name]


@pytest.mark.parametrize("url", RIGHT_URLS)
def test_customers_return_to_accepted_addresses(live: Sandbox, payer: Payer, url: str) -> None:
    """The customer arrives at the URL with the order's ID added."""
    order = placed(live, "wallet-web", return_url=url)
    payer.press(entered(payer, order), "pay")
    assert payer.arrived is not None
    arrived = urlsplit(payer.arrived)
    assert f"order_id={order['id']}" in arrived.query
    assert arrived.port == urlsplit(url).port
