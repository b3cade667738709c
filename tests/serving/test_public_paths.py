"""A public URL with a path, behind a proxy that keeps this path or removes it."""

from urllib.parse import urlsplit

import pytest
import requests

from payment_sandbox.orders.refusals import Invalid
from tests.support.servers import make_server

KEY = ("sandbox-key", "")


@pytest.mark.rule("A77")
@pytest.mark.parametrize(("prefix", "is_kept"), [("/payments", True), ("/a/b", False)])
def test_calls_and_pages_work_with_the_path_and_without_it(prefix: str, is_kept: bool) -> None:
    """Both APIs, the payment pages and their assets answer; addresses contain the path."""
    with make_server(clock="frozen", public_url=f"http://127.0.0.1{prefix}") as server:
        front = f"http://127.0.0.1:{server.port}{prefix if is_kept else ''}"
        body = {"currency": "EUR", "amount": 5, "transactions": [{"payment_method": "wallet-web"}]}
        order = requests.post(f"{front}/v1/orders/", json=body, auth=KEY)
        assert order.status_code == 201, order.text
        page = urlsplit(f"http://{order.json()['transactions'][0]['payment_url']}").path
        assert page.startswith(f"{prefix}/pay/")
        shown = requests.get(f"{front}{page.removeprefix(prefix)}")
        assert (shown.status_code, f'href="{prefix}/assets/' in shown.text) == (200, True)
        for path in ("/health/", "/control/orders/", f"/v1/orders/{order.json()['id']}/"):
            assert requests.get(f"{front}{path}", auth=KEY).status_code == 200
        journal = requests.get(f"{front}/control/journal/", auth=KEY).json()["items"]
        assert journal[0]["path"] == "/v1/orders/"


@pytest.mark.parametrize("path", ["/v1", "/pay/x", "/dashboard"])
def test_a_path_of_the_sandbox_itself_is_refused(path: str) -> None:
    """The path of a public URL must not be one of the sandbox's own paths."""
    with pytest.raises(Invalid, match="is a path of the sandbox itself"):
        make_server(public_url=f"http://127.0.0.1{path}")
