"""The shop: checkout, the customer's return, webhooks, a job, shipping and returned goods."""

from dataclasses import dataclass, field
from threading import Lock
from typing import Any

from flask import Flask, abort, jsonify, redirect, request
from werkzeug.wrappers import Response

from .payments import Payment, PaymentRefused, Payments, PaymentServiceDown

PRICES_CENTS = {"socks": 995, "hat": 2450}
AUTHORIZED_FOR = "P14D"  # longer than it takes to ship
CARD, TRANSFER = "credit-card", "bank-transfer"


@dataclass
class Sale:
    """What the shop knows about one basket."""

    number: str
    basket: dict[str, int]
    method: str = CARD
    status: str = "open"  # then paid, shipped; or lost
    payments: list[str] = field(default_factory=list)  # the ids of its payment orders, the newest last
    paid_with: str | None = None  # one of them
    tries: int = 0
    parcels: list[dict[str, int]] = field(default_factory=list)
    returned: dict[str, int] = field(default_factory=dict)
    slips: list[str] = field(default_factory=list)  # of parcels that came back
    refunds: dict[str, int] = field(default_factory=dict)  # cents by refund, as the service tells them
    asked: dict[str, tuple[Payment, int]] = field(default_factory=dict)  # refunds without response, by slip
    mails: list[str] = field(default_factory=list)
    seen: dict[str, str] = field(default_factory=dict)  # the newest version of each payment, by its time

    @property
    def payment_id(self) -> str | None:
        """The payment that counts: the one that was paid, or else the newest."""
        return self.paid_with or (self.payments[-1] if self.payments else None)

    @property
    def total_cents(self) -> int:
        return price_of(self.basket)


def price_of(goods: dict[str, int]) -> int:
    """The price of some goods, in cents."""
    return sum(PRICES_CENTS[product] * quantity for product, quantity in goods.items())


class Sales:
    """All sales, kept in memory; a real shop would use a database."""

    def __init__(self) -> None:
        self._by_number: dict[str, Sale] = {}

    def __iter__(self) -> Any:
        return iter(list(self._by_number.values()))

    def begin(self, basket: dict[str, int], method: str) -> Sale:
        sale = Sale(f"S-{1001 + len(self._by_number)}", basket, method)
        self._by_number[sale.number] = sale
        return sale

    def find(self, number: str) -> Sale:
        return self._by_number.get(number) or abort(404)

    def of_payment(self, payment_id: str) -> Sale | None:
        return next((sale for sale in self if payment_id in sale.payments), None)


def make_shop(payments: Payments, shop_url: str) -> Flask:
    """The WSGI application; ``shop_url`` is where customers and webhooks reach it."""
    app = Flask("sock_shop")
    shop = app.extensions["shop"] = Shop(payments, shop_url)
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
        self._news = Lock()  # webhooks come twice at the same moment; a database locks the row of the sale
        self._warehouse = Lock()  # impatient people click twice
        self._returns = Lock()  # one refund settles one return

    def checkout(self) -> Response:
        """The customer checks out with a full basket."""
        wanted = {name: int(request.form.get(name, 0)) for name in PRICES_CENTS}
        basket = {name: count for name, count in wanted.items() if count > 0}
        return self._pay(self.sales.begin(basket, request.form.get("method", CARD)))

    def pay_again(self, number: str) -> Response:
        """The customer tries again; the payment before must no longer be possible, or it may be made, too."""
        sale = self.sales.find(number)
        try:
            if sale.payments:
                self._give_up(sale, sale.payments[-1])
        except PaymentServiceDown:
            abort(503, "We could not reach our payment service; please try again.")
        if sale.status in ("paid", "shipped"):
            return redirect(f"{self._url}/thanks?order_id={sale.payment_id}", 303)
        return self._pay(sale)

    def _give_up(self, sale: Sale, payment_id: str) -> None:
        payment = self._look(payment_id)
        if payment is not None and not payment.is_over and sale.paid_with is None:
            try:
                self._payments.cancel(payment)
            except PaymentRefused:  # it changed in this moment
                self._look(payment_id)

    def _pay(self, sale: Sale) -> Response:
        sale.tries += 1
        try:
            payment = self._payments.create(_order(sale, self._url))
        except PaymentServiceDown:
            abort(503, "We could not reach our payment service. Nothing was charged; please try again.")
        sale.payments.append(payment.order_id)
        sale.status = "open"
        return redirect(self._payments.page_of(payment), 303)

    def webhook(self) -> tuple[str, int]:
        """The payment service reports that an order has changed."""
        try:
            self._look(request.get_json()["order_id"])
        except PaymentServiceDown:
            return "later, please", 503
        return "", 204

    def thanks(self) -> str:
        """The customer is back from the payment page, which does not prove that they paid."""
        sale = self.sales.of_payment(request.args["order_id"]) or abort(404)
        try:
            self._look(request.args["order_id"])
        except PaymentServiceDown:
            return f"Sale {sale.number}: we are waiting for your payment."
        if sale.status == "open":
            return f"Sale {sale.number}: we are waiting for your payment."
        return f"Sale {sale.number}: {'that did not work.' if sale.status == 'lost' else 'thank you!'}"

    def look_at_open_sales(self) -> None:
        """A job: webhooks can be lost, so what is not settled is read now and then."""
        for sale in self.sales:
            if sale.status in ("open", "paid") or (sale.status == "lost" and sale.method == TRANSFER):
                for payment_id in sale.payments:
                    self._look(payment_id)
            self._ask_again(sale)

    def _ask_again(self, sale: Sale) -> None:
        """Make refunds that may not have been made: only if the order is as it was before the first try."""
        for slip, (payment, cents) in list(sale.asked.items()):
            if slip in sale.refunds:
                continue
            try:
                made = self._payments.refund(payment, cents, f"Return of {sale.number}")
                self._note_refund(made)
            except PaymentRefused:  # the order has changed: it was made, and its webhook has not come yet
                sale.refunds.setdefault(slip, cents)

    def _look(self, payment_id: str) -> Payment | None:
        """Read an order and record its status; a repeated webhook changes nothing."""
        payment = self._payments.read(payment_id)
        if payment.is_refund:
            self._note_refund(payment)
            return payment
        sale = self.sales.of_payment(payment_id)
        if sale is None:
            return None
        if payment.data["modified"] < sale.seen.get(payment_id, ""):
            return payment  # a later answer overtook this one
        sale.seen[payment_id] = payment.data["modified"]
        if payment.is_paid:
            self._note_payment(sale, payment)
        elif payment.is_over and sale.payment_id == payment_id and sale.status != "shipped":
            sale.status, sale.paid_with = "lost", None
        return payment

    def _note_payment(self, sale: Sale, payment: Payment) -> None:
        with self._news:
            if sale.paid_with is None:
                sale.paid_with = payment.order_id
                sale.status = "paid"
                sale.mails.append("We have your order.")
        if sale.paid_with != payment.order_id:  # paid in two tabs
            self._payments.give_back(payment)

    def _note_refund(self, refund: Payment) -> None:
        sale = self.sales.of_payment(refund.data["refund_of_order_id"])
        if sale is not None:
            self._settle(sale, refund)
            sale.refunds[refund.order_id] = refund.data["amount"] if refund.is_paid else 0

    def _settle(self, sale: Sale, refund: Payment) -> None:
        """The response that never came: now it is known which refund was made."""
        with self._returns:
            waiting = [slip for slip, (_, cents) in sale.asked.items() if cents == refund.data["amount"]]
            if waiting and refund.order_id not in sale.refunds:
                del sale.asked[waiting[0]]
                sale.refunds.pop(waiting[0], None)

    def ship(self, number: str) -> tuple[Response, int]:
        """A parcel is packed; only now is the money captured."""
        with self._warehouse:
            return self._ship(number)

    def _ship(self, number: str) -> tuple[Response, int]:
        sale = self.sales.find(number)
        if sale.status != "paid" or sale.payment_id is None:
            return jsonify(problem=f"sale {number} is {sale.status}"), 409
        parcel = {name: int(quantity) for name, quantity in request.form.items()} or sale.basket
        try:
            payment = self._payments.read(sale.payment_id, "amount_details")
            if sale.method == CARD and payment.captured_cents < price_of(parcel):
                # or else an earlier try has captured it, and its response was lost
                self._payments.capture(payment, parcel, f"Parcel of {number}")
        except PaymentRefused as refused:
            return jsonify(problem=str(refused)), 409
        except PaymentServiceDown:
            return jsonify(problem="the payment service does not answer; try again"), 503
        sale.status = "shipped"
        sale.parcels.append(parcel)
        sale.mails.append("Your parcel is on its way.")
        return jsonify(shipped=parcel), 200

    def take_back(self, number: str) -> tuple[Response, int]:
        """Items were returned, so their price is refunded; the webhook of the refund tells when."""
        with self._warehouse:
            return self._take_back(number)

    def _take_back(self, number: str) -> tuple[Response, int]:
        sale, slip = self.sales.find(number), request.form["slip"]
        if slip in sale.slips:
            return jsonify(problem=f"the parcel with slip {slip} has been taken back"), 409
        goods = {name: int(quantity) for name, quantity in request.form.items() if name in PRICES_CENTS}
        sold = {name: sum(parcel.get(name, 0) for parcel in sale.parcels) for name in goods}
        left = {name: sold[name] - sale.returned.get(name, 0) for name in goods}
        if sale.payment_id is None or any(goods[name] > left[name] for name in goods):
            return jsonify(problem="that was not sold, or came back before"), 409
        sale.returned |= {name: sale.returned.get(name, 0) + goods[name] for name in goods}
        sale.slips.append(slip)
        try:
            payment = self._payments.read(sale.payment_id)
            sale.asked[slip] = (payment, price_of(goods))
            refund = self._payments.refund(payment, price_of(goods), f"Return of {number}")
        except PaymentRefused as refused:
            sale.returned |= {name: sale.returned[name] - goods[name] for name in goods}
            sale.slips.remove(slip)
            sale.asked.pop(slip, None)
            return jsonify(problem=str(refused)), 409
        except PaymentServiceDown:  # it may have been made: its webhook tells, or the job asks again
            return jsonify(problem="the payment service does not answer; look before you try again"), 503
        self._note_refund(refund)
        sale.mails.append("Your money is on its way back.")
        return jsonify(refund=refund.order_id, amount_cents=price_of(goods)), 200


def _order(sale: Sale, shop_url: str) -> dict[str, Any]:
    """The payment order for a sale; each try has its own number, so that tries cannot be confused."""
    authorization = {"capture_mode": "manual", "expiration_period": AUTHORIZED_FOR}
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
        "transactions": [{"payment_method": sale.method, **(authorization if sale.method == CARD else {})}],
    }
