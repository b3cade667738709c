"""A payment gateway of WooCommerce in Debian's WordPress; WooCommerce itself is stood in for, see the project."""

import shutil
import sys
from collections.abc import Iterator
from typing import Final

import requests

from tests.howto.shops.walking import KEY, Place, main, until_it_answers
from tests.support.documentation import ROOT

PROJECT: Final = ROOT / "tests" / "howto" / "projects" / "woocommerce"
SHOP: Final = "http://127.0.0.1:8000"


class WooCommerce:
    """The shop, seen by a customer and a member of the staff."""

    def buy(self) -> str:
        """The checkout processes the payment, and redirects."""
        placed = self._do("buy")
        assert isinstance(placed, dict)
        assert placed["result"] == "success"
        page: str = placed["redirect"]
        return page

    def status(self) -> str:
        """As the list of orders shows it."""
        return str(self._do("look"))

    def ship(self) -> None:
        """WooCommerce ships whole orders: what is not there is refunded before, and the rest captured."""
        assert self._do("refund", amount="10.00") is True
        assert self._do("complete") is True
        assert self.status() == "completed"

    def refund(self, amount: int) -> str | None:
        """With the button at the order."""
        said = self._do("refund", amount=f"{amount / 100}")
        return None if said is True else str(said)

    def _do(self, action: str, **more: str) -> object:
        answer = requests.get(SHOP, params={"do": action, **more}, timeout=30)
        assert answer.status_code == 200, answer.text
        shown: object = answer.json()
        return shown


def start(place: Place) -> Iterator[WooCommerce]:
    """The project of the page in WordPress."""
    shutil.copytree(PROJECT, place.folder, dirs_exist_ok=True)
    for name in ("wp-includes", "wp-admin", "wp-settings.php"):
        (place.folder / name).symlink_to(place.packages / "usr" / "share" / "wordpress" / name)
    environment = {
        "SHOP": SHOP,
        "PAYMENTS_KEY": KEY,
        "SANDBOX_CA": place.ca_file,
        "PHP_CLI_SERVER_WORKERS": "2",
    }
    with place.running(["php", "-S", "127.0.0.1:8000", "index.php"], **environment):
        until_it_answers(f"{SHOP}/?do=look")
        yield WooCommerce()


if __name__ == "__main__":
    main(start, sys.argv[1])
