"""django-oscar: a guest buys in its pages, and the staff ships and refunds in its dashboard."""

import re
import shutil
import sys
from collections.abc import Iterator
from typing import Final

import requests

from tests.howto.shops.walking import Place, main, until_it_answers
from tests.support.documentation import ROOT

PROJECT: Final = ROOT / "tests" / "howto" / "projects" / "oscar"
SHOP: Final = "http://127.0.0.1:8000"
GUEST: Final = {"username": "guest@shop.example", "options": "anonymous"}
ADDRESS: Final = {
    "first_name": "Ada", "last_name": "Byron", "line1": "Dam 1", "line4": "Amsterdam", "postcode": "1012 AB",
    "country": "NL",
}  # fmt: skip


class Browser(requests.Session):
    """Posts forms with the token that the page has."""

    def submit(self, path: str, form: dict[str, str], page: str | None = None) -> requests.Response:
        """Open a page, and post a form; redirects are not followed."""
        shown = self.get(SHOP + (page or path), timeout=30)
        assert shown.status_code == 200, shown.url
        token = re.search(r'name="csrfmiddlewaretoken" value="(\w+)"', shown.text)
        assert token is not None, shown.text[:2000]
        form = {**form, "csrfmiddlewaretoken": token[1]}
        return self.post(SHOP + path, data=form, allow_redirects=False, timeout=30)


class Oscar:
    """The shop, seen by a customer and a member of the staff."""

    def __init__(self) -> None:
        self.staff = Browser()
        login = {"username": "staff@shop.example", "password": "secret", "next": "/dashboard/"}
        login = {f"login-{name}": value for name, value in login.items()}
        login["login-redirect_url"] = login.pop("login-next")
        self.staff.submit("/accounts/login/", {**login, "login_submit": "Log In"})

    def buy(self) -> str:
        """As a guest."""
        customer = Browser()
        customer.submit("/basket/add/1/", {"quantity": "2"}, "/catalogue/socks_1/")
        customer.submit("/checkout/", GUEST)
        customer.submit("/checkout/shipping-address/", ADDRESS)
        customer.get(f"{SHOP}/checkout/shipping-method/", timeout=30)
        customer.get(f"{SHOP}/checkout/payment-method/", timeout=30)
        placed = customer.submit("/checkout/preview/", {"action": "place_order"})
        assert placed.status_code == 302, placed.text[:1000]
        self.order = f"/dashboard/orders/{re.findall('10000[0-9]+', self.staff.get(f'{SHOP}/dashboard/orders/', timeout=30).text)[0]}/"
        return placed.headers["Location"]

    def status(self) -> str:
        """As the dashboard shows it."""
        shown = re.search(r"Status €.* (\w+) Order Details", self._text())
        assert shown is not None, self._text()
        return shown[1]

    def ship(self) -> None:
        """One of the line's two."""
        line = {
            "line_action": "create_shipping_event",
            "selected_line": "1",
            "selected_line_qty_1": "1",
            "reference": "",
        }
        assert self._done({**line, "shipping_event_type": "shipped"}) == "Shipping event created"

    def refund(self, amount: int) -> str | None:
        """With a payment event."""
        form = {
            "order_action": "create_order_payment_event",
            "payment_event_type": "refund",
            "amount": f"{amount / 100}",
        }
        said = self._done(form)
        return None if said == "Payment event created" else said

    def _done(self, form: dict[str, str]) -> str:
        self.staff.submit(self.order, form)
        shown = self.staff.get(SHOP + self.order, timeout=30).text
        said = re.search(r'<div class="alertinner[^"]*">(.*?)</div>', shown, re.DOTALL)
        assert said is not None, shown
        return _words(said[1])

    def _text(self) -> str:
        return _words(self.staff.get(SHOP + self.order, timeout=30).text)


def _words(page: str) -> str:
    return " ".join(re.sub("<[^>]*>", " ", page).split())


def start(place: Place) -> Iterator[Oscar]:
    """The project of the page, with a product and a member of the staff."""
    shutil.copytree(PROJECT, place.folder, dirs_exist_ok=True)
    environment = {
        "PYTHONPATH": str(place.packages), "DJANGO_SETTINGS_MODULE": "shop.settings",
        "REQUESTS_CA_BUNDLE": place.ca_file, "SHOP_FOLDER": str(place.folder),
    }  # fmt: skip
    program = [sys.executable, "prepare.py"]
    with place.running(program, **environment) as preparing:
        assert preparing.wait(120) == 0
    serve = [sys.executable, "-m", "django", "runserver", "--noreload", "--insecure", "8000"]
    with place.running(serve, **environment):
        until_it_answers(f"{SHOP}/basket/")
        yield Oscar()


if __name__ == "__main__":
    main(start, sys.argv[1])
