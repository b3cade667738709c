"""The documentation in a browser: accessible, on a phone, in dark mode and without a network."""

from urllib.parse import urlsplit

import pytest

from payment_sandbox.ui.docs.library import PAGE_NAMES
from tests.browser.pages import NewContext, Traffic, scrolls_sideways, violations
from tests.support.driver import Sandbox
from tests.support.samples import of_the_day

EVERY_KIND = ("quick-start", "languages", "mistakes", "fidelity")
"""Pages with text, code in every language, and every kind of table."""
READ_PAGES = [*EVERY_KIND, *of_the_day(set(PAGE_NAMES) - set(EVERY_KIND), 5)]


@pytest.mark.parametrize("name", READ_PAGES)
def test_a_page_is_readable(sandbox: Sandbox, new_context: NewContext, name: str) -> None:
    """A page passes axe-core, and only tables and code scroll sideways."""
    page = new_context(viewport={"width": 390, "height": 844}, bypass_csp=True).new_page()
    page.goto(f"{sandbox.url}/docs/{name}/")
    assert violations(page) == []
    if name in EVERY_KIND:
        page.emulate_media(color_scheme="dark")
        assert violations(page, only_colours=True) == []
    assert not scrolls_sideways(page)


@pytest.mark.parametrize("name", PAGE_NAMES)
def test_every_page_loads_from_the_sandbox_only(sandbox: Sandbox, new_context: NewContext, name: str) -> None:
    """Every page loads from the sandbox only, and its content security policy blocks nothing."""
    page = new_context(viewport={"width": 1400, "height": 900}).new_page()
    traffic = Traffic(page)
    page.goto(f"{sandbox.url}/docs/{name}/")
    page.wait_for_load_state("load")
    assert (traffic.hosts, traffic.console) == ({urlsplit(sandbox.url).netloc}, [])
    overflowing = page.evaluate(
        "[...document.querySelectorAll('pre')].filter(b => b.scrollWidth > b.clientWidth).length"
    )
    assert overflowing == 0, "code must be wrapped"
    assert not scrolls_sideways(page)


def test_code_is_copied(sandbox: Sandbox, new_context: NewContext) -> None:
    """The copy button copies the code."""
    page = new_context(permissions=["clipboard-read", "clipboard-write"]).new_page()
    page.goto(f"{sandbox.url}/docs/refunds/")
    page.locator(".copy").first.click()
    text = page.evaluate("navigator.clipboard.readText()")
    assert text.startswith("API=http")
    assert "curl -s -u sandbox-key:" in text
