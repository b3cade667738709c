"""Take the screenshots of the dashboard and of three payment pages."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import Any

from PIL import Image
from playwright.sync_api import Browser, Page, sync_playwright

from tests.support.browser import address, by_id
from tests.support.driver import CUSTOMER, LINES, LINES_TOTAL, Sandbox, by
from tests.support.servers import make_server
from tests.support.shop import Received, Shop
from tests.support.tools import find_tool

FOLDER = Path(__file__).parent
COLOURS = 128


def main() -> None:
    """Take all screenshots."""
    shop = Shop()
    with make_server() as server, sync_playwright() as playwright, _browser(playwright) as browser:
        sandbox = Sandbox(server, webhook_url=shop.url, name="Kousen & Zo", mode="live")
        shop.answer = _reading_handler(sandbox)
        order = _create_history(sandbox)
        base = f"{server.url}/dashboard/{sandbox.project['project_id']}/orders/"
        _take(browser, "dashboard", (1440, 960), lambda page: page.goto(f"{base}{order['id']}/"))
        for name, open_page in PAGES.items():
            _take(browser, name, (420, 760), partial(open_page, sandbox))
        faulty = Sandbox(server, webhook_url=shop.url, name="Socks & Co", mode="live")
        shop.answer = partial(_refunding_handler, faulty)
        refunded = _create_twice_refunded_order(faulty)
        base = f"{server.url}/dashboard/{faulty.project['project_id']}/orders/"
        _take(browser, "finding", (1440, 900), lambda page: page.goto(f"{base}{refunded['id']}/"))
    shop.close()


@contextmanager
def _browser(playwright: Any) -> Iterator[Browser]:
    path = find_tool("chromium")
    assert path is not None, "the screenshots need Chromium"
    browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-gpu"])
    yield browser
    browser.close()


def _reading_handler(sandbox: Sandbox) -> Callable[[Received], int]:
    """A shop that reads the order after each webhook and answers one webhook with 503."""
    calls: list[Received] = []

    def answer(received: Received) -> int:
        calls.append(received)
        if len(calls) == 3:
            return 503
        sandbox.read(received.body["order_id"])
        return 204

    return answer


def _refunding_handler(sandbox: Sandbox, received: Received) -> int:
    """A shop that refunds a paid order at each webhook, even a duplicate."""
    order = sandbox.read(received.body["order_id"])
    is_refund = order["amount"] != LINES_TOTAL  # a refund is an order, too
    if order["status"] == "completed" and not is_refund:
        sandbox.post(f"/v1/orders/{order['id']}/refunds/", {"amount": 500})
    return 204


def _create_twice_refunded_order(sandbox: Sandbox) -> dict[str, Any]:
    """Create an order that a shop refunds twice, because it receives a webhook twice."""
    sandbox.put("/control/faults/", {"webhooks": [{"then": {"duplicate": 2}}]})
    order = _place(sandbox, 2001, "credit-card")
    sandbox.advance("PT1M")
    sandbox.pay(order)
    sandbox.advance("PT2M")
    return order


def _place(sandbox: Sandbox, number: int, method: str | None, **more: Any) -> dict[str, Any]:
    transactions = [by(method, **more)] if method is not None else []
    return sandbox.place(
        *transactions,
        amount=LINES_TOTAL,
        order_lines=LINES,
        customer=CUSTOMER,
        merchant_order_id=f"shop-{number}",
        description="Three pairs of socks",
    )


def _create_history(sandbox: Sandbox) -> dict[str, Any]:
    """Create a few orders and return the one to show."""
    sandbox.pay(_place(sandbox, 1001, "wallet-web"))
    sandbox.advance("PT1M")
    displayed = _place(sandbox, 1002, "credit-card", capture_mode="delayed", expiration_period="P7D")
    sandbox.advance("PT20S")
    sandbox.acted(displayed, "customer visit")
    sandbox.advance("PT40S")
    sandbox.pay(displayed)
    sandbox.advance("PT2M")
    sandbox.post(f"/v1/orders/{displayed['id']}/refunds/", {"amount": 500})
    _place(sandbox, 1003, "bank-transfer")
    sandbox.acted(_place(sandbox, 1004, "credit-card"), "customer fail", reason="Do not honour")
    _place(sandbox, 1005, "pay-later-a")
    sandbox.advance("PT3M")
    return displayed


def _choose(sandbox: Sandbox, page: Page) -> None:
    page.goto(address(_place(sandbox, 1006, None)))


def _card(sandbox: Sandbox, page: Page) -> None:
    page.goto(address(_place(sandbox, 1007, "credit-card")))


def _bank(sandbox: Sandbox, page: Page) -> None:
    page.goto(address(_place(sandbox, 1008, "credit-card")))
    by_id(page, "card-challenge").check()
    by_id(page, "pay").click()


PAGES: dict[str, Callable[[Sandbox, Page], None]] = {"choose": _choose, "card": _card, "secure": _bank}


def _take(browser: Browser, name: str, size: tuple[int, int], show: Callable[[Page], Any]) -> None:
    context = browser.new_context(
        viewport={"width": size[0], "height": size[1]}, locale="en-GB", color_scheme="light"
    )
    page = context.new_page()
    show(page)
    page.wait_for_load_state("load")
    picture = (
        Image.open(BytesIO(page.screenshot())).convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE)
    )
    picture.save(FOLDER / f"{name}.png", optimize=True)
    context.close()


if __name__ == "__main__":
    main()
