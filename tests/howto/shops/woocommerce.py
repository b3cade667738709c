"""A WooCommerce payment gateway in Debian's WordPress; the project contains a stand-in for WooCommerce."""

import shutil
import sys
from collections.abc import Iterator
from typing import Final

import requests

from tests.howto.shops.walking import KEY, ShopFiles, main, wait_for_server
from tests.support.documentation import ROOT

PROJECT: Final = ROOT / "tests" / "howto" / "projects" / "woocommerce"
SHOP: Final = "http://127.0.0.1:8000"


class WooCommerce:
    """The shop as a customer and a member of the staff use it."""

    def buy(self) -> str:
        """Check out; return the address of the payment page."""
        checkout = self._call("buy")
        assert isinstance(checkout, dict)
        assert checkout["result"] == "success"
        page: str = checkout["redirect"]
        return page

    def status(self) -> str:
        """Return the status in the list of orders."""
        return str(self._call("look"))

    def ship(self) -> None:
        """Refund the missing item, and complete the order: WooCommerce ships whole orders only."""
        assert self._call("refund", amount="10.00") is True
        assert self._call("complete") is True
        assert self.status() == "completed"

    def refund(self, amount: int) -> str | None:
        """Refund with the button of the order; return the error if it is refused."""
        message = self._call("refund", amount=f"{amount / 100}")
        return None if message is True else str(message)

    def _call(self, action: str, **parameters: str) -> object:
        response = requests.get(SHOP, params={"do": action, **parameters}, timeout=30)
        assert response.status_code == 200, response.text
        result: object = response.json()
        return result


def start(files: ShopFiles) -> Iterator[WooCommerce]:
    """Start the project of the page in WordPress."""
    shutil.copytree(PROJECT, files.folder, dirs_exist_ok=True)
    for name in ("wp-includes", "wp-admin", "wp-settings.php"):
        (files.folder / name).symlink_to(files.packages / "usr" / "share" / "wordpress" / name)
    environment = {
        "SHOP": SHOP,
        "PAYMENTS_KEY": KEY,
        "SANDBOX_CA": files.ca_file,
        "PHP_CLI_SERVER_WORKERS": "2",
    }
    with files.running(["php", "-S", "127.0.0.1:8000", "index.php"], **environment):
        wait_for_server(f"{SHOP}/?do=look")
        yield WooCommerce()


if __name__ == "__main__":
    main(start, sys.argv[1])
