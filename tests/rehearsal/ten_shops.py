"""Ten shops with one mistake each, and their right twins; copied to a folder and rehearsed there."""

import os
from collections.abc import Callable
from contextlib import suppress
from threading import Lock
from typing import Any

import pytest
from flask import Flask, request
from requests import RequestException

from payment_sandbox import BookEntry, PaymentSandbox

PRICE = 1295
CARD = {"payment_method": "credit-card"}
FINISHED = ("completed", "cancelled", "expired", "error")


class Shop:
    """A right shop, whose customer pays on the hosted page; each subclass can make one mistake."""

    attempt: dict[str, Any] = {}
    payer: tuple[Any, ...] = ()

    def __init__(self, sandbox: PaymentSandbox, wrong: bool) -> None:
        self.sandbox, self.wrong = sandbox, wrong
        self.sales: list[dict[str, Any]] = []
        self.stored: list[str] = []
        self.lock, self.app = Lock(), Flask("shop")
        self.app.add_url_rule("/buy", view_func=self.buy, methods=["POST"])
        self.app.add_url_rule("/webhook", view_func=self.webhook, methods=["POST"])
        self.app.add_url_rule("/refund/<order_id>", view_func=self.refund, methods=["POST"])
        self.app.add_url_rule("/thanks", view_func=self.thanks)
        sandbox.deliver_to(self.app)
        sandbox.every("PT1H", self.look)

    def call(self, method: str, path: str, body: Any = None, **headers: str) -> Any:
        """Call the service."""
        url = f"{self.sandbox.base_url}/v1/orders/{path}"
        answer = self.sandbox.session.request(method, url, json=body, timeout=10, headers=headers)
        answer.raise_for_status()
        return answer.json()

    def create(self, body: dict[str, Any], number: str) -> Any:
        """Create an order."""
        return self.call("POST", "", body)

    def buy(self) -> Any:
        """Check out."""
        number = f"S-{1001 + len(self.sales)}"
        nothing = dict.fromkeys(("paid", "shipped", "refunded", "owed"), 0)
        sale: dict[str, Any] = {"number": number, "orders": [], "refunds": [], **nothing}
        self.sales.append(sale)
        body: dict[str, Any] = {"currency": "EUR", "amount": PRICE, "merchant_order_id": number}
        body["return_url"] = "http://testserver/thanks"
        if self.attempt:
            body["transactions"] = [self.attempt]
        try:
            sale["orders"] = [self.create(body, number)["id"]]
        except RequestException:
            return "Nothing was charged; please try again.", 503
        return sale["orders"][0]

    def webhook(self) -> tuple[str, int]:
        """Receive a webhook."""
        try:
            self.refresh(request.get_json()["order_id"])
        except RequestException:
            return "later, please", 503
        return "", 204

    def thanks(self) -> str:
        """Show the customer who returns what became of the sale."""
        with suppress(RequestException):
            self.refresh(request.args["order_id"])
        sale = self.sale_of(request.args["order_id"])
        return "Thank you!" if sale and sale["paid"] else "We are waiting for your payment."

    def sale_of(self, order_id: str) -> dict[str, Any] | None:
        """Return the sale of an order."""
        return next((sale for sale in self.sales if order_id in sale["orders"]), None)

    def refresh(self, order_id: str) -> None:
        """Read an order, and note what it says."""
        with self.lock:
            order = self.call("GET", f"{order_id}/")
            sale = self.sale_of(order.get("refund_of_order_id", order_id))
            if sale is not None and "refund_of_order_id" in order:
                sale["refunds"] = [order_id]
                self.learn_of_refund(sale, order)
            elif sale is not None:
                self.learn(sale, order)

    def learn_of_refund(self, sale: dict[str, Any], order: dict[str, Any]) -> None:
        """Note what became of a refund."""
        sale["refunded"] = sale["owed"] if order["status"] == "completed" else 0

    def learn(self, sale: dict[str, Any], order: dict[str, Any]) -> None:
        """Note the payment of a sale."""
        if order["status"] == "completed":
            sale["paid"] = sale["shipped"] = PRICE

    def look(self) -> None:
        """Read what is still open."""
        for sale in [*self.sales]:
            open_orders = [] if sale["paid"] else sale["orders"]
            with suppress(RequestException):
                for order_id in [*open_orders, *([] if sale["refunded"] else sale["refunds"])]:
                    self.refresh(order_id)
                if sale["owed"] and not sale["refunds"]:
                    self.give_back(sale)

    def refund(self, order_id: str) -> tuple[str, int]:
        """Refund a sale once."""
        with self.lock:
            sale = self.sale_of(order_id)
            if sale is None or not sale["paid"] or sale["owed"]:
                return "", 409
            sale["owed"] = PRICE
            with suppress(RequestException):  # the job repeats it
                self.give_back(sale)
        return "", 204

    def give_back(self, sale: dict[str, Any]) -> None:
        """Refund what the customer is owed; the webhook of the refund names it if its response is lost."""
        (order_id,), body = sale["orders"], {"amount": sale["owed"]}
        sale["refunds"] = [self.call("POST", f"{order_id}/refunds/", body)["id"]]

    def pay(self, order_id: str) -> None:
        """Pay as the customer of the test."""
        if not self.attempt:
            self.sandbox.act(order_id, action="choose", payment_method="credit-card")
        self.sandbox.act(order_id, *self.payer)

    def test(self) -> None:
        """Buy and pay."""
        self.pay(self.sandbox.browser(self.app).post("/buy").text)


class ShipsEarly(Shop):
    """Ships on ``processing``."""

    def learn(self, sale: dict[str, Any], order: dict[str, Any]) -> None:
        if order["status"] == "completed" or (self.wrong and order["status"] == "processing"):
            sale["paid"] = sale["shipped"] = PRICE


class FirstOnly(Shop):
    """Looks at the first transaction only."""

    def learn(self, sale: dict[str, Any], order: dict[str, Any]) -> None:
        first = next(iter(order["transactions"]), {"status": "new"}) if self.wrong else order
        if first["status"] == "completed":
            sale["paid"] = sale["shipped"] = PRICE


class ReturnBooks(Shop):
    """Books the payment when the customer returns."""

    def thanks(self) -> str:
        sale = self.sale_of(request.args["order_id"]) if self.wrong else None
        if sale is not None:
            sale["paid"] = sale["shipped"] = PRICE
        return super().thanks()


class SkipsCapture(Shop):
    """The return page books the payment, so that the webhook handler skips its capture."""

    attempt = {**CARD, "capture_mode": "manual", "expiration_period": "P14D"}

    def learn(self, sale: dict[str, Any], order: dict[str, Any]) -> None:
        (attempt,) = order["transactions"]
        if order["status"] != "completed" or sale["shipped"] or (self.wrong and sale["paid"]):
            return
        sale["paid"] = PRICE
        if request and request.path == "/thanks" and self.wrong:
            return
        try:
            self.call("POST", f"{order['id']}/transactions/{attempt['id']}/captures/", {})
            sale["shipped"] = PRICE
        except RequestException:
            details = self.call("GET", f"{order['id']}/?fields[]=amount_details")["amount_details"]
            sale["shipped"] = details["captured"]

    def look(self) -> None:
        for sale in self.sales:
            with suppress(RequestException):
                for order_id in [] if sale["shipped"] or (self.wrong and sale["paid"]) else sale["orders"]:
                    self.refresh(order_id)


class RetriesBlindly(Shop):
    """Creates the order again, without a key, if no answer comes."""

    def create(self, body: dict[str, Any], number: str) -> Any:
        key = {} if self.wrong else {"Idempotency-Key": number}
        try:
            return self.call("POST", "", body, **key)
        except RequestException:
            return self.call("POST", "", body, **key)


class ShipsAgain(Shop):
    """Ships on each webhook."""

    def learn(self, sale: dict[str, Any], order: dict[str, Any]) -> None:
        if order["status"] == "completed":
            sale["shipped"] = sale["shipped"] + PRICE if self.wrong else PRICE
            sale["paid"] = PRICE


class RefundDone(Shop):
    """Takes a refund as done when it was accepted."""

    def give_back(self, sale: dict[str, Any]) -> None:
        super().give_back(sale)
        sale["refunded"] = sale["owed"] if self.wrong else 0

    def learn_of_refund(self, sale: dict[str, Any], order: dict[str, Any]) -> None:
        if self.wrong:
            sale["refunded"] = sale["owed"]
        else:
            super().learn_of_refund(sale, order)

    def test(self) -> None:
        browser = self.sandbox.browser(self.app)
        order_id = browser.post("/buy").text
        self.pay(order_id)
        browser.post(f"/refund/{order_id}")


class LateTransfer(Shop):
    """Ignores a transfer that arrives after the order has expired."""

    attempt = {"payment_method": "bank-transfer"}
    payer = ("bank", "credit")

    def learn(self, sale: dict[str, Any], order: dict[str, Any]) -> None:
        details = self.call("GET", f"{order['id']}/?fields[]=amount_details")["amount_details"]
        if order["status"] == "expired" and self.wrong:
            sale["closed"] = True
        elif order["status"] == "completed" and "closed" not in sale:
            sale["paid"] = sale["shipped"] = PRICE
        surplus = details.get("received", 0) - PRICE if order["status"] == "completed" else 0
        if surplus > 0 and not sale["owed"]:
            sale["owed"] = surplus
            self.give_back(sale)


class NewestSale(Shop):
    """Books the payment on the newest sale."""

    def sale_of(self, order_id: str) -> dict[str, Any] | None:
        return self.sales[-1] if self.wrong and self.sales else super().sale_of(order_id)


class StoresCvc(Shop):
    """Stores the requests of its payments, with the CVC in them."""

    attempt = {**CARD, "payment_method_details": {"one_click_type": "first"}}

    def create(self, body: dict[str, Any], number: str) -> Any:
        """Create an order, or repeat it with its key."""
        try:
            return self.call("POST", "", body, **{"Idempotency-Key": number})
        except RequestException:
            return self.call("POST", "", body, **{"Idempotency-Key": number})

    def buy(self) -> Any:
        """Check out; a second click charges nothing."""
        is_charged = "vault_token" in str(self.attempt) and len(self.sales) > 1
        return self.sales[-1]["orders"][0] if is_charged else super().buy()

    def test(self) -> None:
        super().test()
        (order_id,) = self.sales[0]["orders"]
        details = self.call("GET", f"{order_id}/")["transactions"][0]["payment_method_details"]
        card = {"one_click_type": "one-click", "vault_token": details["vault_token"], "cvc": "123"}
        self.attempt = {**CARD, "payment_method_details": card}
        self.stored.append(str({**card, "cvc": card["cvc"] if self.wrong else "-"}))
        self.sandbox.browser(self.app).post("/buy")


KINDS = {kind.__name__: kind for kind in Shop.__subclasses__()}
CASES = [(name, wrong) for name in KINDS for wrong in ("wrong", "right")]


@pytest.fixture
def shop(payment_sandbox: PaymentSandbox, name: str, wrong: str) -> Shop:
    """The shop."""
    return KINDS[name](payment_sandbox, wrong == "wrong")


@pytest.fixture
def payment_books(shop: Shop) -> Callable[[], list[BookEntry]] | None:
    """The shop's books, unless the suite runs without."""
    names = ("paid", "shipped", "refunded")
    return (
        None
        if "NO_BOOKS" in os.environ
        else lambda: [
            BookEntry(each["number"], each["orders"], PRICE, **{name: each[name] for name in names})
            for each in shop.sales
        ]
    )


@pytest.fixture
def payment_traces(shop: Shop) -> Callable[[], list[str]]:
    """What the shop stores."""
    return lambda: shop.stored


@pytest.mark.payment_settings(mode="live")
@pytest.mark.parametrize(("name", "wrong"), CASES)
def test_a_shop(shop: Shop, wrong: str) -> None:
    """A customer buys and pays."""
    shop.test()
