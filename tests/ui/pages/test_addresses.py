"""Payment page URLs show only their own order, also behind a proxy."""

import pytest
import requests

from tests.support.driver import NOBODY, Sandbox, by
from tests.support.payer import RETURN, Page, Payer, payment_page, placed
from tests.support.servers import make_server


@pytest.mark.parametrize("which", ["project", "order", "transaction"])
def test_an_address_shows_its_own_order_only(live: Sandbox, payer: Payer, which: str) -> None:
    """A wrong ID in the URL gives browsers a page and programs a JSON error."""
    order, other = placed(live, "wallet-web"), placed(live, "wallet-web")
    address = {
        "project": payment_page(order).replace(order["project_id"], NOBODY),
        "order": payment_page(order).replace(order["id"], NOBODY),
        "transaction": payment_page(order).replace(
            order["transactions"][0]["id"], other["transactions"][0]["id"]
        ),
    }[which]
    page = payer.open(address)
    assert (page.status, "nothing" in page.ids) == (404, True)
    assert requests.get(f"http://{address}").json()["error"]["type"] == "NotFound"


def test_refunds_and_stored_cards_have_no_page(live: Sandbox, payer: Payer) -> None:
    """A refund has no payment page, because no one pays there."""
    order = placed(live, "wallet-web")
    live.pay(order)
    refund = live.post(f"/v1/orders/{order['id']}/refunds/", {}).json()
    transaction = refund["transactions"][0]["id"]
    for address in (f"{refund['id']}/", f"{refund['id']}/{transaction}/"):
        assert payer.open(f"{live.url}/pay/{order['project_id']}/{address}").status == 404


def test_pages_behind_a_proxy_keep_its_path_and_origin() -> None:
    """Forms, assets, redirects and the API description use the path and origin of ``--public-url``."""
    with make_server(public_url="https://pay.example/sandbox/") as server:
        url = f"http://127.0.0.1:{server.port}"
        body = {"currency": "EUR", "amount": 5, "return_url": RETURN, "transactions": [by("wallet-web")]}
        order = requests.post(f"{url}/v1/orders/", json=body, auth=("sandbox-key", "")).json()
        path = payment_page(order).removeprefix("pay.example/sandbox")
        answer = requests.get(f"{url}{path}", headers={"Accept": "text/html"})
        page = Page(answer)
        form = page.form_with("pay")
        assert "/sandbox/pay/" in form.action
        assert "/sandbox/assets/pay.css" in answer.text
        posted = requests.post(
            form.action.replace("/sandbox/pay/", "/pay/"),
            data={**form.fields, "action": "pay"},
            headers={"Origin": "https://pay.example"},
            allow_redirects=False,
        )
        assert posted.headers["Location"].startswith("http://shop.example:8443/thanks")
        described = requests.get(f"{url}/openapi.json").json()
        assert described["servers"][0]["url"] == "https://pay.example/sandbox"
