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
    paid_with: str | None = None  # the id of the one that succeeded
    attempt_count: int = 0
    parcels: list[dict[str, int]] = field(default_factory=list)
    returned: dict[str, int] = field(default_factory=dict)
    slips: list[str] = field(default_factory=list)  # of returned parcels
    refunds: dict[str, int] = field(default_factory=dict)  # cents by refund, as the service reports them
    unconfirmed: dict[str, tuple[Payment, int]] = field(default_factory=dict)  # refunds without response
    mails: list[str] = field(default_factory=list)
    modified: dict[str, str] = field(default_factory=dict)  # the time of the newest version, by payment

    @property
    def payment_id(self) -> str | None:
        """The payment that succeeded, or else the newest one."""
        return self.paid_with or (self.payments[-1] if self.payments else None)

    @property
    def total_cents(self) -> int:
        return price_of(self.basket)


def price_of(goods: dict[str, int]) -> int:
    """Return the price of some goods, in cents."""
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
    """Return the WSGI application, which customers and webhooks reach at ``shop_url``."""
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
        self._payment_lock = Lock()  # two webhooks can arrive at once; a database would lock the sale
        self._shipping_lock = Lock()  # for double clicks
        self._refund_lock = Lock()  # one refund settles one return

    def checkout(self) -> Response:
        """The customer checks out with a full basket."""
        quantities = {name: int(request.form.get(name, 0)) for name in PRICES_CENTS}
        basket = {name: count for name, count in quantities.items() if count > 0}
        return self._pay(self.sales.begin(basket, request.form.get("method", CARD)))

    def pay_again(self, number: str) -> Response:
        """Create another payment, and cancel the previous one, so that the customer cannot pay twice."""
        sale = self.sales.find(number)
        try:
            if sale.payments:
                self._cancel_attempt(sale, sale.payments[-1])
        except PaymentServiceDown:
            abort(503, "We could not reach our payment service; please try again.")
        if sale.status in ("paid", "shipped"):
            return redirect(f"{self._url}/thanks?order_id={sale.payment_id}", 303)
        return self._pay(sale)

    def _cancel_attempt(self, sale: Sale, payment_id: str) -> None:
        payment = self._refresh(payment_id)
        if payment is not None and not payment.is_over and sale.paid_with is None:
            try:
                self._payments.cancel(payment)
            except PaymentRefused:  # it has just changed
                self._refresh(payment_id)

    def _pay(self, sale: Sale) -> Response:
        sale.attempt_count += 1
        try:
            payment = self._payments.create(_order(sale, self._url))
        except PaymentServiceDown:
            abort(503, "We could not reach our payment service. Nothing was charged; please try again.")
        sale.payments.append(payment.order_id)
        sale.status = "open"
        return redirect(self._payments.payment_page_url(payment), 303)

    def webhook(self) -> tuple[str, int]:
        """The payment service reports that an order has changed."""
        try:
            self._refresh(request.get_json()["order_id"])
        except PaymentServiceDown:
            return "later, please", 503
        return "", 204

    def thanks(self) -> str:
        """The customer is back from the payment page, which does not prove that they paid."""
        sale = self.sales.of_payment(request.args["order_id"]) or abort(404)
        try:
            self._refresh(request.args["order_id"])
        except PaymentServiceDown:
            return f"Sale {sale.number}: we are waiting for your payment."
        if sale.status == "open":
            return f"Sale {sale.number}: we are waiting for your payment."
        return f"Sale {sale.number}: {'that did not work.' if sale.status == 'lost' else 'thank you!'}"

    def look_at_open_sales(self) -> None:
        """Read unsettled payments, because webhooks can be lost; a job calls this regularly."""
        for sale in self.sales:
            if sale.status in ("open", "paid") or (sale.status == "lost" and sale.method == TRANSFER):
                for payment_id in sale.payments:
                    self._refresh(payment_id)
            self._retry_refunds(sale)

    def _retry_refunds(self, sale: Sale) -> None:
        """Retry refunds that got no response, unless the order has changed since the first attempt."""
        for slip, (payment, cents) in list(sale.unconfirmed.items()):
            if slip in sale.refunds:
                continue
            try:
                repeated = self._payments.refund(payment, cents, f"Return of {sale.number}")
                self._record_refund(repeated)
            except PaymentRefused:  # the order has changed: the refund exists, and its webhook is pending
                sale.refunds.setdefault(slip, cents)

    def _refresh(self, payment_id: str) -> Payment | None:
        """Read an order and record its status; a repeated webhook changes nothing."""
        payment = self._payments.read(payment_id)
        if payment.is_refund:
            self._record_refund(payment)
            return payment
        sale = self.sales.of_payment(payment_id)
        if sale is None:
            return None
        if payment.data["modified"] < sale.modified.get(payment_id, ""):
            return payment  # this response is older than the recorded one
        sale.modified[payment_id] = payment.data["modified"]
        if payment.is_paid:
            self._record_payment(sale, payment)
        elif payment.is_over and sale.payment_id == payment_id and sale.status != "shipped":
            sale.status, sale.paid_with = "lost", None
        return payment

    def _record_payment(self, sale: Sale, payment: Payment) -> None:
        with self._payment_lock:
            if sale.paid_with is None:
                sale.paid_with = payment.order_id
                sale.status = "paid"
                sale.mails.append("We have your order.")
        if sale.paid_with != payment.order_id:  # paid in two tabs
            self._payments.return_money(payment)

    def _record_refund(self, refund: Payment) -> None:
        sale = self.sales.of_payment(refund.data["refund_of_order_id"])
        if sale is not None:
            self._match_refund(sale, refund)
            sale.refunds[refund.order_id] = refund.data["amount"] if refund.is_paid else 0

    def _match_refund(self, sale: Sale, refund: Payment) -> None:
        """Match a reported refund with a refund whose response was lost."""
        with self._refund_lock:
            slips = [slip for slip, (_, cents) in sale.unconfirmed.items() if cents == refund.data["amount"]]
            if slips and refund.order_id not in sale.refunds:
                del sale.unconfirmed[slips[0]]
                sale.refunds.pop(slips[0], None)

    def ship(self, number: str) -> tuple[Response, int]:
        """Ship a parcel, and capture only its price."""
        with self._shipping_lock:
            return self._ship(number)

    def _ship(self, number: str) -> tuple[Response, int]:
        sale = self.sales.find(number)
        if sale.status != "paid" or sale.payment_id is None:
            return jsonify(problem=f"sale {number} is {sale.status}"), 409
        parcel = {name: int(quantity) for name, quantity in request.form.items()} or sale.basket
        try:
            payment = self._payments.read(sale.payment_id, "amount_details")
            if sale.method == CARD and payment.captured_cents < price_of(parcel):
                # otherwise an earlier attempt has captured it, and the response was lost
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
        """Refund the price of returned items; a webhook reports when the refund is completed."""
        with self._shipping_lock:
            return self._take_back(number)

    def _take_back(self, number: str) -> tuple[Response, int]:
        sale, slip = self.sales.find(number), request.form["slip"]
        if slip in sale.slips:
            return jsonify(problem=f"the parcel with slip {slip} has been taken back"), 409
        goods = {name: int(quantity) for name, quantity in request.form.items() if name in PRICES_CENTS}
        sold = {name: sum(parcel.get(name, 0) for parcel in sale.parcels) for name in goods}
        returnable = {name: sold[name] - sale.returned.get(name, 0) for name in goods}
        if sale.payment_id is None or any(goods[name] > returnable[name] for name in goods):
            return jsonify(problem="the items were not sold, or were returned before"), 409
        sale.returned |= {name: sale.returned.get(name, 0) + goods[name] for name in goods}
        sale.slips.append(slip)
        try:
            payment = self._payments.read(sale.payment_id)
            sale.unconfirmed[slip] = (payment, price_of(goods))
            refund = self._payments.refund(payment, price_of(goods), f"Return of {number}")
        except PaymentRefused as refused:
            sale.returned |= {name: sale.returned[name] - goods[name] for name in goods}
            sale.slips.remove(slip)
            sale.unconfirmed.pop(slip, None)
            return jsonify(problem=str(refused)), 409
        except PaymentServiceDown:  # the refund may exist: its webhook reports it, or the job repeats it
            return jsonify(problem="the payment service does not answer; check the refund first"), 503
        self._record_refund(refund)
        sale.mails.append("Your money is on its way back.")
        return jsonify(refund=refund.order_id, amount_cents=price_of(goods)), 200


def _order(sale: Sale, shop_url: str) -> dict[str, Any]:
    """Return the payment order for a sale; each attempt has its own number, to tell attempts apart."""
    authorization = {"capture_mode": "manual", "expiration_period": AUTHORIZED_FOR}
    return {
        "currency": "EUR",
        "amount": sale.total_cents,
        "merchant_order_id": f"{sale.number}-{sale.attempt_count}",
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
