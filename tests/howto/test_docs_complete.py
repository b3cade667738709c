"""The pages of the documentation, as browsers and programs get them."""

import re
from typing import Any

import pytest
from werkzeug.test import Client

from payment_sandbox.ui.docs.library import PAGE_NAMES
from payment_sandbox.ui.docs.sections import WORDS_MAX, search
from tests.documentation.flows import FLOWS
from tests.support.documentation import written_text
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


def test_browsers_begin_at_the_root(sandbox: Sandbox) -> None:
    """A browser is redirected to the dashboard, and a program gets links."""
    browser = sandbox.http.get(f"{sandbox.url}/", headers={"Accept": "text/html,*/*;q=0.8"})
    assert (browser.status_code, "/dashboard/" in browser.url) == (200, True)
    assert 'href="/docs/"' in browser.text, "the dashboard has no link to the documentation"
    program = sandbox.http.get(f"{sandbox.url}/")
    assert (program.status_code, program.json()["documentation"]) == (200, f"{sandbox.url}/docs/")


def test_commands_name_the_server_that_serves_them() -> None:
    """Commands contain the public address, also behind a proxy and under a path."""
    with make_server(public_url="http://pay.test:8443/sandbox") as server:
        client = Client(server.app)
        text = client.get("/docs/quick-start/").text
        assert "API=http://pay.test:8443/sandbox" in re.sub("<[^>]*>", "", text)
        assert 'href="/sandbox/docs/webhooks/"' in text
        assert 'href="/sandbox/docs/assets/docs.css"' in text


def test_every_flow_is_drawn_under_its_title(sandbox: Sandbox) -> None:
    """Each flow is drawn on a page, under its own title."""
    written_pages = "\n".join(map(written_text, PAGE_NAMES))
    names_by_title = dict(re.findall(r"!\[([^\]]+)\]\(flows/([a-z-]+)\.svg\)", written_pages))
    assert {name: title for title, name in names_by_title.items()} == {
        name: flow.title for name, flow in FLOWS.items()
    }
    for name, flow in FLOWS.items():
        drawn = sandbox.http.get(f"{sandbox.url}/docs/flows/{name}.svg")
        assert drawn.headers["Content-Type"].startswith("image/svg+xml")
        assert flow.title in drawn.text
        assert "webhook, attempt 1" in drawn.text
        assert ">completed<" in drawn.text
    assert sandbox.http.get(f"{sandbox.url}/docs/flows/nothing.svg").status_code == 404


def test_search_finds_sections(sandbox: Sandbox) -> None:
    """The results are the sections with the words, those with the words in title or heading first, with links."""
    page = sandbox.http.get(f"{sandbox.url}/docs/search/?q=inspect+project").text
    assert 'href="/docs/reference/#inspect-a-project"' in page
    first = re.search(
        r'<ol class="found">\s*<li><a href="([^"]+)"',
        sandbox.http.get(f"{sandbox.url}/docs/search/?q=bank+QR").text,
    )
    assert first is not None
    assert first[1].startswith("/docs/bank-transfer/")
    assert "/docs/webhooks/" in sandbox.http.get(f"{sandbox.url}/docs/search/?q=retry+webhook").text
    for words in ("nothingatall", "<script>", "x" * 500):
        text = sandbox.http.get(f"{sandbox.url}/docs/search/", params={"q": words}).text
        assert "No section contains most" in text
        assert "<script>alert" not in text
    assert "Enter words" in sandbox.http.get(f"{sandbox.url}/docs/search/").text


def test_search_reads_a_limited_number_of_words() -> None:
    """Only the first words count, because all pages are read for each."""
    known = (
        "order status amount webhook refund customer page payment bank card scenario clock key project server "
        "test method capture void retry"
    )
    assert len(known.split()) == WORDS_MAX
    assert search(known + "".join(f" nothing{number}" for number in range(500))) == search(known) != []


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
