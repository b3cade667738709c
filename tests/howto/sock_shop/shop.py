"""The shop: checkout, the customer's return, webhooks, shipping and returned goods."""

from dataclasses import dataclass, field
from typing import Any

from flask import Flask, abort, jsonify, redirect, request
from werkzeug.wrappers import Response

from .payments import PaymentRefused, Payments, PaymentServiceDown

PRICES_CENTS = {"socks": 995, "hat": 2450}
AUTHORIZED_FOR = "P14D"  # longer than it takes to ship


@dataclass
class Sale:
    """What the shop knows about one basket."""

    number: str
    basket: dict[str, int]
    status: str = "open"  # then paid, shipped; or lost
    payment_id: str | None = None
    tries: int = 0
    mails: list[str] = field(default_factory=list)

    @property
    def total_cents(self) -> int:
        return sum(PRICES_CENTS[product] * quantity for product, quantity in self.basket.items())


class Sales:
    """All sales, kept in memory; a real shop would use a database."""

    def __init__(self) -> None:
        self._by_number: dict[str, Sale] = {}

    def begin(self, basket: dict[str, int]) -> Sale:
        sale = Sale(f"S-{1001 + len(self._by_number)}", basket)
        self._by_number[sale.number] = sale
        return sale

    def find(self, number: str) -> Sale:
        return self._by_number.get(number) or abort(404)

    def of_payment(self, payment_id: str) -> Sale | None:
        return next((sale for sale in self._by_number.values() if sale.payment_id == payment_id), None)


def make_shop(payments: Payments, shop_url: str) -> Flask:
    """The WSGI application; ``shop_url`` is where customers and webhooks reach it."""
    app = Flask("sock_shop")
    shop = Shop(payments, shop_url)
    app.extensions["sales"] = shop.sales
    app.add_url_rule("/checkout", view_func=shop.checkout, methods=["POST"])
    app.add_url_rule("/thanks", view_func=shop.thanks)
    app.add_url_rule("/webhook", view_func=shop.webhook, methods=["POST"])
    app.add_url_rule("/sales/<number>/pay", view_func=shop.pay_again, methods=["POST"])
    app.add_url_rule("/sales/<number>/ship", view_func=shop.ship, methods=["POST"])
    app.add_url_rule("/sales/<number>/return", view_func=shop.take_back, methods=["POST"])
    return app


class Shop:
    """The requests of customers, the payment service and the warehouse."""

    def __init__(self, payments: Payments, shop_url: str) -> None:
        self.sales = Sales()
        self._payments = payments
        self._url = shop_url

    def checkout(self) -> Response:
        """The customer checks out with a full basket."""
        wanted = {name: int(request.form.get(name, 0)) for name in PRICES_CENTS}
        return self._pay(self.sales.begin({name: count for name, count in wanted.items() if count > 0}))

    def pay_again(self, number: str) -> Response:
        """The customer tries again after a failed payment."""
        return self._pay(self.sales.find(number))

    def _pay(self, sale: Sale) -> Response:
        sale.tries += 1
        try:
            payment = self._payments.create(_order(sale, self._url))
        except PaymentServiceDown:
            abort(503, "We could not reach our payment service. Nothing was charged; please try again.")
        sale.payment_id, sale.status = payment.order_id, "open"
        return redirect(self._payments.page_of(payment), 303)

    def webhook(self) -> tuple[str, int]:
        """The payment service reports that an order has changed."""
        self._look(request.get_json()["order_id"])
        return "", 204

    def thanks(self) -> str:
        """The customer is back from the payment page, which does not prove that they paid."""
        sale = self._look(request.args["order_id"]) or abort(404)
        if sale.status == "open":
            return f"Sale {sale.number}: we are waiting for your payment."
        return f"Sale {sale.number}: {'that did not work.' if sale.status == 'lost' else 'thank you!'}"

    def _look(self, payment_id: str) -> Sale | None:
        """Read the order and record its status; a repeated webhook changes nothing."""
        payment = self._payments.read(payment_id)
        sale = self.sales.of_payment(payment_id)
        if sale is None or sale.status != "open":
            return sale
        if payment.is_paid:
            sale.status = "paid"
            sale.mails.append("We have your order.")
        elif payment.is_over:
            sale.status = "lost"
        return sale

    def ship(self, number: str) -> tuple[Response, int]:
        """A parcel is packed; only now is the money captured."""
        sale = self.sales.find(number)
        if sale.status != "paid" or sale.payment_id is None:
            return jsonify(problem=f"sale {number} is {sale.status}"), 409
        parcel = {name: int(quantity) for name, quantity in request.form.items()} or sale.basket
        try:
            self._payments.capture(self._payments.read(sale.payment_id), parcel, f"Parcel of {number}")
        except PaymentRefused as refused:
            return jsonify(problem=str(refused)), 409
        sale.status = "shipped"
        sale.mails.append("Your parcel is on its way.")
        return jsonify(shipped=parcel), 200

    def take_back(self, number: str) -> tuple[Response, int]:
        """An item was returned, so its price is refunded."""
        sale = self.sales.find(number)
        if sale.payment_id is None:
            return jsonify(problem="nothing was paid"), 409
        amount_cents = sum(PRICES_CENTS[name] * int(quantity) for name, quantity in request.form.items())
        try:
            payment = self._payments.read(sale.payment_id)
            refund = self._payments.refund(payment, amount_cents, f"Return of {number}")
        except PaymentRefused as refused:
            return jsonify(problem=str(refused)), 409
        sale.mails.append("Your money is on its way back.")
        return jsonify(refund=refund.order_id, amount_cents=amount_cents), 200


def _order(sale: Sale, shop_url: str) -> dict[str, Any]:
    """The payment order for a sale; each try has its own number, so that tries cannot be confused."""
    return {
        "currency": "EUR",
        "amount": sale.total_cents,
        "merchant_order_id": f"{sale.number}-{sale.tries}",
        "description": f"Sale {sale.number}",
        "return_url": f"{shop_url}/thanks",
        "webhook_url": f"{shop_url}/webhook",
        "order_lines": [
            {
                "merchant_order_line_id": name,
                "type": "physical",
                "name": name,
                "amount": PRICES_CENTS[name],
                "quantity": quantity,
            }
            for name, quantity in sale.basket.items()
        ],
        "transactions": [
            {"payment_method": "credit-card", "capture_mode": "manual", "expiration_period": AUTHORIZED_FOR}
        ],
    }
