"""The pages of the documentation, as browsers and programs get them."""

import re
from typing import Any

import pytest
from werkzeug.test import Client

from payment_sandbox.ui.docs.library import PAGE_NAMES
from tests.support.driver import Sandbox
from tests.support.servers import make_server


def test_every_link_leads_somewhere(sandbox: Sandbox) -> None:
    """Each link leads to an existing page and to an existing heading."""
    pages: dict[str, str] = {}
    for name in PAGE_NAMES:
        response = sandbox.http.get(f"{sandbox.url}/docs/{name}/")
        assert response.status_code == 200
        pages[f"/docs/{name}/"] = response.text
    broken = []
    for path, text in pages.items():
        for link in re.findall(r'href="([^"]+)"', text):
            address, _, anchor = link.partition("#")
            if address in ("/docs/", "/dashboard/") or address.startswith("/docs/assets/"):
                continue
            if address == "/dashboard/assets/icon.svg":
                assert sandbox.http.get(f"{sandbox.url}{address}").status_code == 200
                continue
            target = pages.get(address or path)
            if target is None or (anchor and f'id="{anchor}"' not in target):
                broken.append(f"{path}: {link}")
    assert broken == []


def test_an_unknown_page(sandbox: Sandbox) -> None:
    """The error lists the pages that exist."""
    response = sandbox.http.get(f"{sandbox.url}/docs/nothing/")
    error: dict[str, Any] = response.json()["error"]
    assert (response.status_code, error["allowed"]) == (404, list(PAGE_NAMES))


def test_commands_name_the_server_that_serves_them() -> None:
    """Commands contain the public address, also behind a proxy and under a path."""
    with make_server(public_url="http://pay.test:8443/sandbox") as server:
        client = Client(server.app)
        text = client.get("/docs/quick-start/").text
        assert "API=http://pay.test:8443/sandbox" in re.sub("<[^>]*>", "", text)
        assert 'href="/sandbox/docs/webhooks/"' in text
        assert 'href="/sandbox/docs/assets/docs.css"' in text


@pytest.mark.parametrize("path", ["/no-such-page/", "/pay/", "/docs/x/y/"])
def test_browsers_get_a_page_for_an_unknown_path(sandbox: Sandbox, path: str) -> None:
    """A browser gets a page with links, and a program gets the error."""
    html = {"Accept": "text/html,*/*;q=0.8"}
    page = sandbox.http.get(f"{sandbox.url}{path}", headers=html)
    assert (page.status_code, "Page not found" in page.text) == (404, True)
    assert "/dashboard/" in page.text
    assert page.headers["Content-Security-Policy"].startswith("default-src 'none'")
    assert sandbox.http.get(f"{sandbox.url}{path}").json()["error"]["status"] == 404
    for api in ("/v1/nothing/", "/control/nothing/"):
        response = sandbox.http.get(f"{sandbox.url}{api}", headers=html)
        assert response.headers["Content-Type"] == "application/json"
