"""A real Chromium; without one, the tests say how to get it."""

import os
import shutil
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright

from payment_sandbox.serving.server import Server
from tests.support.browser import NewContext

NAMES = ("chromium", "chromium-browser", "google-chrome")
FLAGS = [
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
TIMEOUT_MS = 15_000  # on a machine that does much else
expect.set_options(timeout=TIMEOUT_MS)


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """One browser for all tests of a worker."""
    path = next(filter(None, map(shutil.which, NAMES)), None)
    if path is None:
        pytest.skip("no Chromium here, so the pages are not tried in a browser: apt-get install chromium")
    flags = [*FLAGS, *(["--no-sandbox"] if os.geteuid() == 0 else [])]
    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=path, args=flags)
        yield running
        running.close()


@pytest.fixture
def new_context(browser: Browser, server: Server) -> Iterator[NewContext]:
    """Makes browser profiles, each as new, in which nothing but the sandbox and the shop answers."""
    made: list[BrowserContext] = []

    def make(**options: Any) -> BrowserContext:
        options.setdefault("locale", "en-GB")
        context = browser.new_context(**options)
        context.set_default_timeout(TIMEOUT_MS)
        made.append(context)
        return context

    yield make
    for context in made:
        context.close()


@pytest.fixture
def page(new_context: NewContext) -> Page:
    """One tab."""
    return new_context().new_page()
