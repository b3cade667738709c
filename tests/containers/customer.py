"""A customer in Chromium: buys in the shop of ``compose.yaml``, and prints the shop's final page.

    python -m tests.containers.customer http://localhost:8000/

The browser trusts the certificates in its user's NSS database. It runs in a separate process, because a test
may run it in another network namespace.
"""

import os
import re
import sys

from playwright.sync_api import expect, sync_playwright

from tests.browser.conftest import FLAGS, TIMEOUT_MS
from tests.support.tools import find_tool


def main(shop: str) -> None:
    """Buy, pay, and return to the shop."""
    flags = [*FLAGS, *(["--no-sandbox"] if os.geteuid() == 0 else [])]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_tool("chromium"), args=flags)
        page = browser.new_page(locale="en-GB")
        page.set_default_timeout(TIMEOUT_MS)
        page.goto(shop)
        page.get_by_role("button").click()
        page.wait_for_url(re.compile("/pay/|chrome-error"))
        if page.url.startswith("chrome-error"):
            sys.exit("the browser refuses the payment page")
        print(page.url.partition("/pay/")[0])
        page.get_by_test_id("pay").first.click()
        page.wait_for_url("**/return.php*")
        print(page.locator("h1").inner_text())
        webhook_status = page.locator("#told")
        for _ in range(20):
            if "completed" in webhook_status.inner_text():
                break
            page.reload()  # the webhook may arrive after the response
        expect(webhook_status).to_contain_text("completed")
        print(webhook_status.inner_text())
        browser.close()


if __name__ == "__main__":
    main(sys.argv[1])
