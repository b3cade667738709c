"""Calls without sockets behave like calls over sockets."""

import json
from typing import Any

import pytest
import requests
import urllib3

from payment_sandbox.testing.project_fixture import PaymentSandbox
from payment_sandbox.testing.servers import PaymentSandboxServer
from tests.support.in_process import ORDER, in_time, place, shop_that


def test_calls_after_the_server_has_stopped_end() -> None:
    """A call after the server has stopped returns without waiting for its webhooks."""
    server = PaymentSandboxServer()
    sandbox = server.project({})
    sandbox.deliver_to(shop_that(lambda order_id: None))
    order_id = place(sandbox)
    server.stop()
    in_time(lambda: sandbox.act(order_id))


def test_requests_and_responses_are_as_over_the_wire(payment_sandbox: PaymentSandbox, orders: str) -> None:
    """Reasons, cookies, authorization, kinds of headers and quoted paths work as over sockets."""
    session, auth = payment_sandbox.session, (payment_sandbox.api_key, "")
    timeout: Any = urllib3.Timeout(5)
    with pytest.raises(requests.HTTPError, match="Not Found for url"):
        session.get(f"{orders}nothing/", timeout=timeout).raise_for_status()
    order = session.post(orders, json={"currency": "EUR", "amount": 5}).json()
    page = f"http://{order['order_url']}"
    assert 'lang="de"' in session.get(f"{page}?language=de").text
    assert 'lang="de"' in session.get(page).text, "the cookie lasts"
    for header in ("Basic /////w==", "Basic a", "Bearer x"):
        bad_request = requests.Request("GET", f"{orders}x/", headers={"Authorization": header}).prepare()
        assert session.send(bad_request).status_code == 401
    for headers, status in (
        ({"Content-Type": b"application/json"}, 201),
        ({"Content_Type": "text/plain"}, 415),
    ):
        assert session.post(orders, data=json.dumps(ORDER), headers=headers).status_code == status
    for order_id in ("Ж", "a b", "%41", "a%2Fb"):
        over_sockets, directly = (
            get(f"{orders}{order_id}/", auth=auth).json() for get in (requests.get, session.get)
        )
        assert directly == over_sockets
    session.headers["X-Shop"], session.params = "socks", {"limit": 1}
    prepared = session.prepare_request(requests.Request("GET", orders, params={"before": ""}))
    assert (prepared.url, prepared.headers["X-Shop"]) == (f"{orders}?limit=1&before=", "socks")
