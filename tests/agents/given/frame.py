"""The shop around the payments: its sales, its forms, and calls to the payment service. Do not change it.

A form calls the method with its name. ``Unanswered`` becomes a response with 503, ``Refused`` one with 409.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from threading import RLock
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import requests
from flask import Flask, Response, redirect, request

URL = "http://testserver"
"""The URL of the shop for customers and webhooks."""


class Unanswered(Exception):
    """The call has no usable response, so the shop does not know whether it was carried out."""


class Refused(Exception):
    """The service or the shop refuses the call; nothing was changed."""


class Answer(NamedTuple):
    """The body of a response, and its ETag."""

    data: dict[str, Any]
    etag: str | None


@dataclass
class Sale:
    """The shop's record of one purchase. Amounts are in cents."""

    number: str
    amount: int
    orders: list[str] = field(default_factory=list)
    """The ids of its payment orders, the newest last."""
    paid: int = 0
    """The amount that the shop believes is paid or authorized."""
    shipped: int = 0
    """The price of the shipped goods."""
    refunded: int = 0
    """The amount that the shop believes is refunded."""
    cancelled: bool = False
    """Whether the shop has cancelled the sale."""
    notes: dict[str, Any] = field(default_factory=dict)
    """Further data about the sale."""


class Storefront:
    """The shop's forms, and its calls to the payment service."""

    def __init__(self, base_url: str, session: requests.Session) -> None:
        self.base_url, self.session = base_url, session
        self.sales: dict[str, Sale] = {}
        self.lock = RLock()
        """Guards the sales; webhooks need it, so it is not held during a call that changes an order."""
        self.desk = RLock()
        """Serializes the forms of the staff, also after a double click."""
        self.app = Flask("shop")
        self.app.add_url_rule("/checkout", view_func=self._checkout, methods=["POST"])
        self.app.add_url_rule("/webhook", view_func=self._webhook, methods=["POST"])
        self.app.add_url_rule("/thanks", view_func=self._thanks)
        for form in ("pay", "ship", "return", "cancel", "charge"):
            self.app.add_url_rule(f"/sales/<number>/{form}", form, self._form(form), methods=["POST"])

    def call(self, method: str, path: str, body: Any = None, if_match: str | None = None) -> Answer:
        """Make a call without retries. Raises ``Unanswered`` or ``Refused``."""
        headers = {"If-Match": if_match} if if_match is not None else {}
        try:
            answer = self.session.request(
                method, self.base_url + path, json=body, headers=headers, timeout=10
            )
            data = answer.json()
        except requests.RequestException as error:
            raise Unanswered(str(error)) from error
        if answer.status_code >= 500 or answer.status_code == 429:
            raise Unanswered(f"{method} {path}: {answer.status_code}")
        if answer.status_code >= 400:
            raise Refused(f"{data['error']['type']}: {data['error']['value']}")
        return Answer(data, answer.headers.get("ETag"))

    def page(self, order: dict[str, Any]) -> str:
        """Return the URL of the payment page of an order."""
        address = order["transactions"][-1].get("payment_url") or order["order_url"]
        return f"{urlsplit(self.base_url).scheme}://{address}"

    def sale_of(self, order_id: str) -> Sale | None:
        """Return the sale of a payment order; None if the shop has none."""
        return next((sale for sale in list(self.sales.values()) if order_id in sale.orders), None)

    # The methods that the tasks ask for

    def checkout(self, sale: Sale) -> str:
        """Create the payment order of a new sale; return the URL of its payment page."""
        raise NotImplementedError

    def webhook(self, order_id: str) -> None:
        """Handle a webhook."""
        raise NotImplementedError

    def thanks(self, order_id: str) -> str:
        """Return the text for a returning customer: the state of their payment."""
        raise NotImplementedError

    def look_at_open_sales(self) -> None:
        """A job that runs every hour."""

    def pay(self, sale: Sale) -> str:
        """Let the customer try again; return the URL of the payment page."""
        raise NotImplementedError

    def ship(self, sale: Sale, amount: int, parcel: str) -> str:
        """Ship a parcel with goods at this price; each parcel is shipped once."""
        raise NotImplementedError

    def take_back(self, sale: Sale, amount: int, slip: str) -> str:
        """Refund the goods returned with this slip; each slip counts once."""
        raise NotImplementedError

    def cancel(self, sale: Sale) -> str:
        """Cancel a sale of which nothing was shipped."""
        raise NotImplementedError

    def charge(self, sale: Sale) -> str:
        """Charge the next month of a subscription."""
        raise NotImplementedError

    # The forms

    def _checkout(self) -> Response:
        with self.lock:
            number = f"S-{1001 + len(self.sales)}"
            sale = self.sales[number] = Sale(number, int(request.form["amount"]))
        return _respond(lambda: redirect(self.checkout(sale), 303))

    def _webhook(self) -> Response:
        return _respond(lambda: self.webhook(request.get_json()["order_id"]) or Response(status=204))

    def _thanks(self) -> Response:
        return _respond(lambda: Response(self.thanks(request.args["order_id"])))

    def _form(self, form: str) -> Callable[[str], Response]:
        def view(number: str) -> Response:
            sale, amount = self.sales[number], int(request.form.get("amount", 0))
            if form == "pay":
                return _respond(lambda: redirect(self.pay(sale), 303))
            if form == "ship":
                parcel = request.form.get("parcel", "1")
                return _respond(lambda: Response(self.ship(sale, amount, parcel)))
            if form == "return":
                return _respond(lambda: Response(self.take_back(sale, amount, request.form["slip"])))
            return _respond(lambda: Response(getattr(self, form)(sale)))

        return view


def _respond(view: Callable[[], Any]) -> Response:
    try:
        response: Response = view()
        return response
    except Unanswered:
        return Response("Our payment service does not answer; please try again.", status=503)
    except Refused as refused:
        return Response(str(refused), status=409)
