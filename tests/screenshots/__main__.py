"""Take the screenshot of an order that a shop refunds twice, because it receives a webhook twice."""

from io import BytesIO
from pathlib import Path

from PIL import Image
from playwright.sync_api import sync_playwright

from tests.judge.test_judge import handling, refunds_a_part
from tests.support.driver import CUSTOMER, LINES, LINES_TOTAL, Sandbox, by
from tests.support.servers import make_server
from tests.support.shop import Shop
from tests.support.tools import find_tool

FILE = Path(__file__).with_name("finding.png")
COLOURS = 128


def main() -> None:
    """Take the screenshot."""
    path = find_tool("chromium")
    assert path is not None, "the screenshot needs Chromium"
    shop = Shop()
    with make_server() as server, sync_playwright() as playwright:
        url = create_twice_refunded_order(
            Sandbox(server, webhook_url=shop.url, name="Socks & Co", mode="live"), shop
        )
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-gpu"])
        size = {"width": 1440, "height": 900}
        page = browser.new_page(viewport=size, locale="en-GB", color_scheme="light")  # type: ignore[arg-type]
        page.goto(url)
        page.wait_for_load_state("load")
        picture = Image.open(BytesIO(page.screenshot())).convert("RGB")
        picture.quantize(COLOURS, dither=Image.Dither.NONE).save(FILE, optimize=True)
        browser.close()
    shop.close()


def create_twice_refunded_order(sandbox: Sandbox, shop: Shop) -> str:
    """Create the order; return the address of its page in the dashboard."""
    handling(sandbox, shop, refunds_a_part)
    sandbox.put("/control/faults/", {"webhooks": [{"then": {"duplicate": 2}}]})
    order = sandbox.place(
        by("credit-card"),
        amount=LINES_TOTAL,
        order_lines=LINES,
        customer=CUSTOMER,
        merchant_order_id="shop-2001",
        description="Three pairs of socks",
    )
    sandbox.advance("PT1M")
    sandbox.pay(order)
    sandbox.advance("PT2M")
    return f"{sandbox.url}/dashboard/{sandbox.project['project_id']}/orders/{order['id']}/"


if __name__ == "__main__":
    main()
