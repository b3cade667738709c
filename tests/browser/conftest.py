"""Fixtures with a real Chromium; without it, the tests are skipped with a hint how to install it."""

import os
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright

from payment_sandbox.serving.server import Server
from tests.browser.pages import NewContext
from tests.support.tools import find_tool, require

FLAGS = [
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
TIMEOUT_MS = 15_000  # for a busy machine
expect.set_options(timeout=TIMEOUT_MS)


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """One browser for all tests of a worker."""
    require("chromium")
    flags = [*FLAGS, *(["--no-sandbox"] if os.geteuid() == 0 else [])]
    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=find_tool("chromium"), args=flags)
        yield running
        running.close()


@pytest.fixture
def new_context(browser: Browser, server: Server) -> Iterator[NewContext]:
    """A factory of new browser profiles."""
    contexts: list[BrowserContext] = []

    def make(**options: Any) -> BrowserContext:
        options.setdefault("locale", "en-GB")
        context = browser.new_context(**options)
        context.set_default_timeout(TIMEOUT_MS)
        contexts.append(context)
        return context

    yield make
    for context in contexts:
        context.close()


@pytest.fixture
def page(new_context: NewContext) -> Page:
    """A tab in a new profile."""
    return new_context().new_page()
