"""Customers can return to every accepted return URL."""

from urllib.parse import urlsplit

import pytest

from tests.support.driver import Sandbox
from tests.support.payer import Payer, entered, placed

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


@pytest.mark.parametrize("url", RIGHT_URLS)
def test_customers_return_to_accepted_addresses(live: Sandbox, payer: Payer, url: str) -> None:
    """The customer arrives at the URL with the order's ID added."""
    order = placed(live, "wallet-web", return_url=url)
    payer.press(entered(payer, order), "pay")
    assert payer.arrived is not None
    arrived = urlsplit(payer.arrived)
    assert f"order_id={order['id']}" in arrived.query
    assert arrived.port == urlsplit(url).port
