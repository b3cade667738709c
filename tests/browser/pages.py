"""Helpers for tests with a real browser."""

from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import axe_playwright_python
from playwright.sync_api import BrowserContext, Page

from tests.support.driver import CUSTOMER, LINES, LINES_TOTAL, Sandbox, by
from tests.support.shop import Shop

NewContext = Callable[..., BrowserContext]
AXE = (Path(axe_playwright_python.__file__).parent / "axe.min.js").read_text(encoding="utf-8")


def placed(sandbox: Sandbox, method: str | None, shop: Shop | None = None, **more: Any) -> dict[str, Any]:
    """Create an order with a return_url that every method can pay."""
    transactions = [by(method)] if method is not None else []
    fields: dict[str, Any] = {"amount": LINES_TOTAL, "order_lines": LINES, "customer": CUSTOMER}
    if shop is not None:
        fields["return_url"] = shop.url.replace("/webhook", "/thanks?basket=7#top")
    return sandbox.place(*transactions, description="Socks & <b>more</b>", **{**fields, **more})


def address(order: dict[str, Any]) -> str:
    """Return the address of the page that the customer opens."""
    attempts = order["transactions"]
    return f"http://{attempts[-1]['payment_url'] if attempts else order['order_url']}"


def by_id(page: Page, test_id: str) -> Any:
    """Return the element with this test id."""
    return page.get_by_test_id(test_id)


def unfold(page: Page, *test_ids: str) -> None:
    """Open these menus unless they are open."""
    for test_id in test_ids:
        menu = by_id(page, test_id)
        if menu.get_attribute("open") is None:
            menu.locator("summary").click()


class Traffic:
    """The hosts and sizes of everything that a page loads, and its messages on the console."""

    def __init__(self, page: Page) -> None:
        self.hosts: set[str] = set()
        self.console: list[str] = []
        self.sizes: list[int] = []
        page.on("request", lambda request: self.hosts.add(urlsplit(request.url).netloc))
        page.on("console", lambda message: self.console.append(message.text))
        page.on("pageerror", lambda error: self.console.append(str(error)))
        page.on("response", lambda answer: self.sizes.append(int(answer.headers.get("content-length", 0))))


def scrolls_sideways(page: Page) -> bool:
    """Whether the page is wider than its window."""
    wide: bool = page.evaluate("document.documentElement.scrollWidth > document.documentElement.clientWidth")
    return wide


EVERYTHING = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]


def violations(page: Page, *, only_colours: bool = False) -> list[str]:
    """Return the violations that axe-core reports; ``only_colours`` restricts it to colour contrast."""
    page.evaluate(AXE)
    rules = ["color-contrast"] if only_colours else EVERYTHING
    # other results are not needed in full; the experimental rule is that spoken commands find a button
    experimental = {"label-content-name-mismatch": {"enabled": not only_colours}}
    options = {"runOnly": rules, "rules": experimental, "resultTypes": ["violations"]}
    report = page.evaluate("options => axe.run(options)", options)
    return [f"{item['id']}: {item['nodes'][0]['html'][:120]}" for item in report["violations"]]
