"""django-oscar: a guest buys on its pages, and the staff ships and refunds on its dashboard."""

import re
import shutil
import sys
from collections.abc import Iterator
from typing import Final

import requests

from tests.howto.shops.walking import ShopFiles, main, wait_for_server
from tests.support.documentation import ROOT

PROJECT: Final = ROOT / "tests" / "howto" / "projects" / "oscar"
SHOP: Final = "http://127.0.0.1:8000"
GUEST: Final = {"username": "guest@shop.example", "options": "anonymous"}
ADDRESS: Final = {
    "first_name": "Ada", "last_name": "Byron", "line1": "Dam 1", "line4": "Amsterdam", "postcode": "1012 AB",
    "country": "NL",
}  # fmt: skip


class Browser(requests.Session):
    """A session that submits forms with the token of their page."""

    def submit(self, path: str, form: dict[str, str], page: str | None = None) -> requests.Response:
        """Open a page, and submit a form without following redirects."""
        response = self.get(SHOP + (page or path), timeout=30)
        assert response.status_code == 200, response.url
        token = re.search(r'name="csrfmiddlewaretoken" value="(\w+)"', response.text)
        assert token is not None, response.text[:2000]
        form = {**form, "csrfmiddlewaretoken": token[1]}
        return self.post(SHOP + path, data=form, allow_redirects=False, timeout=30)


class Oscar:
    """The shop as a customer and a member of the staff use it."""

    def __init__(self) -> None:
        self.staff = Browser()
        login = {"username": "staff@shop.example", "password": "secret", "next": "/dashboard/"}
        login = {f"login-{name}": value for name, value in login.items()}
        login["login-redirect_url"] = login.pop("login-next")
        self.staff.submit("/accounts/login/", {**login, "login_submit": "Log In"})

    def buy(self) -> str:
        """Buy as a guest; return the address of the payment page."""
        customer = Browser()
        customer.submit("/basket/add/1/", {"quantity": "2"}, "/catalogue/socks_1/")
        customer.submit("/checkout/", GUEST)
        customer.submit("/checkout/shipping-address/", ADDRESS)
        customer.get(f"{SHOP}/checkout/shipping-method/", timeout=30)
        customer.get(f"{SHOP}/checkout/payment-method/", timeout=30)
        response = customer.submit("/checkout/preview/", {"action": "place_order"})
        assert response.status_code == 302, response.text[:1000]
        self.order = f"/dashboard/orders/{re.findall('10000[0-9]+', self.staff.get(f'{SHOP}/dashboard/orders/', timeout=30).text)[0]}/"
        return response.headers["Location"]

    def status(self) -> str:
        """Return the status that the dashboard shows."""
        match = re.search(r"Status €.* (\w+) Order Details", self._order_page_text())
        assert match is not None, self._order_page_text()
        return match[1]

    def ship(self) -> None:
        """Ship one of two pieces."""
        line = {
            "line_action": "create_shipping_event",
            "selected_line": "1",
            "selected_line_qty_1": "1",
            "reference": "",
        }
        message = self._submit_and_read_message({**line, "shipping_event_type": "shipped"})
        assert message == "Shipping event created"

    def refund(self, amount: int) -> str | None:
        """Refund with a payment event; return the error if it is refused."""
        form = {
            "order_action": "create_order_payment_event",
            "payment_event_type": "refund",
            "amount": f"{amount / 100}",
        }
        message = self._submit_and_read_message(form)
        return None if message == "Payment event created" else message

    def _submit_and_read_message(self, form: dict[str, str]) -> str:
        self.staff.submit(self.order, form)
        page = self.staff.get(SHOP + self.order, timeout=30).text
        match = re.search(r'<div class="alertinner[^"]*">(.*?)</div>', page, re.DOTALL)
        assert match is not None, page
        return _visible_text(match[1])

    def _order_page_text(self) -> str:
        return _visible_text(self.staff.get(SHOP + self.order, timeout=30).text)


def _visible_text(page: str) -> str:
    return " ".join(re.sub("<[^>]*>", " ", page).split())


def start(files: ShopFiles) -> Iterator[Oscar]:
    """Start the project of the page, with a product and a member of the staff."""
    shutil.copytree(PROJECT, files.folder, dirs_exist_ok=True)
    environment = {
        "PYTHONPATH": str(files.packages), "DJANGO_SETTINGS_MODULE": "shop.settings",
        "REQUESTS_CA_BUNDLE": files.ca_file, "SHOP_FOLDER": str(files.folder),
    }  # fmt: skip
    program = [sys.executable, "prepare.py"]
    with files.running(program, **environment) as preparation:
        assert preparation.wait(120) == 0
    serve = [sys.executable, "-m", "django", "runserver", "--noreload", "--insecure", "8000"]
    with files.running(serve, **environment):
        wait_for_server(f"{SHOP}/basket/")
        yield Oscar()


if __name__ == "__main__":
    main(start, sys.argv[1])
