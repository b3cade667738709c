"""The documentation in a browser: readable for everybody, on a phone and in the dark, with no network."""

from urllib.parse import urlsplit

import pytest

from payment_sandbox.web.docs.library import PAGE_NAMES
from tests.support.browser import NewContext, violations
from tests.support.driver import Sandbox

WITH_ALL_COLOURS = ("quick-start", "languages", "mistakes", "fidelity")  # text, every language, every table


FAST = "quick-start"
EVERY = [name if name == FAST else pytest.param(name, marks=pytest.mark.prove) for name in PAGE_NAMES]


@pytest.mark.parametrize("name", EVERY)
def test_every_page_is_readable(sandbox: Sandbox, new_context: NewContext, name: str) -> None:
    """Nothing for axe-core to find, and only tables and code scroll sideways."""
    page = new_context(viewport={"width": 390, "height": 844}, bypass_csp=True).new_page()
    page.goto(f"{sandbox.url}/docs/{name}/")
    assert violations(page) == []
    if name in WITH_ALL_COLOURS:
        page.emulate_media(color_scheme="dark")
        assert violations(page, only_colours=True) == []
    assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")


@pytest.mark.parametrize("name", EVERY)
def test_every_page_asks_nobody_else(sandbox: Sandbox, new_context: NewContext, name: str) -> None:
    """It needs no network, and its own policy stops nothing of it."""
    page = new_context(viewport={"width": 1400, "height": 900}).new_page()
    hosts: set[str] = set()
    noise: list[str] = []
    page.on("request", lambda request: hosts.add(urlsplit(request.url).netloc))
    page.on("console", lambda message: noise.append(message.text))
    page.goto(f"{sandbox.url}/docs/{name}/")
    page.wait_for_load_state("load")
    assert hosts == {urlsplit(sandbox.url).netloc}
    assert noise == []
    cut = page.evaluate(
        "[...document.querySelectorAll('pre')].filter(b => b.scrollWidth > b.clientWidth).length"
    )
    assert cut == 0, "code is wrapped"
    assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")


def test_code_is_copied(sandbox: Sandbox, new_context: NewContext) -> None:
    """Without what the highlighting adds."""
    page = new_context(permissions=["clipboard-read", "clipboard-write"]).new_page()
    page.goto(f"{sandbox.url}/docs/refunds/")
    page.locator(".copy").first.click()
    text = page.evaluate("navigator.clipboard.readText()")
    assert text.startswith("API=http")
    assert "curl -s -u sandbox-key:" in text


def test_colours_without_contrast_are_found(sandbox: Sandbox, new_context: NewContext) -> None:
    """Also where nothing else is looked for."""
    page = new_context(bypass_csp=True).new_page()
    page.goto(f"{sandbox.url}/docs/quick-start/")
    page.evaluate("document.querySelector('p').style.color = '#fafafa'")
    (found,) = violations(page, only_colours=True)
    assert found.startswith("color-contrast: <p")
