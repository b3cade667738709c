"""Small shops as merchants write them, each with one mistake if it is wrong; copied to a folder and rehearsed there."""

import logging
import os
from collections.abc import Callable
from contextlib import suppress
from threading import Lock
from typing import Any

import pytest
from flask import Flask, request
from requests import RequestException
from starlette.applications import Starlette
from starlette.background import BackgroundTask
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from payment_sandbox import BookEntry, PaymentSandbox

PRICE = 1295
CARD = {"payment_method": "credit-card"}
WALLET = {"payment_method": "wallet-web"}
DEPOSIT = {**CARD, "capture_mode": "manual", "expiration_period": "P14D"}


class Shop:
    """A right shop, whose customer pays on the hosted page; each subclass can make one mistake."""

    attempt: dict[str, Any] = {}
    payer: tuple[Any, ...] = ()
    has_books = True

    def __init__(self, sandbox: PaymentSandbox, wrong: bool) -> None:
        self.sandbox, self.wrong = sandbox, wrong
        self.sales: list[dict[str, Any]] = []
        self.stored: list[str] = []
        self.lock = Lock()
        self.app: Any = self.create_app()
        sandbox.deliver_to(self.app)
        sandbox.every("PT1H", self.look)

    def create_app(self) -> Any:
        """Create the application."""
        app = Flask("shop")
        app.add_url_rule("/buy", view_func=self.buy, methods=["POST"])
        app.add_url_rule("/webhook", view_func=self.webhook, methods=["POST"])
        app.add_url_rule("/refund/<order_id>", view_func=self.refund, methods=["POST"])
        app.add_url_rule("/thanks", view_func=self.thanks)
        return app

    def call(self, method: str, path: str, body: Any = None, **headers: str) -> Any:
        """Call the service."""
        url = f"{self.sandbox.base_url}/v1/orders/{path}"
        answer = self.sandbox.session.request(method, url, json=body, timeout=10, headers=headers)
        answer.raise_for_status()
        return answer.json()

    def create(self, body: dict[str, Any], number: str) -> Any:
        """Create an order."""
        return self.call("POST", "", body)

    def create_repeatedly(self, body: dict[str, Any], headers: dict[str, str]) -> Any:
        """Create an order, and again if no answer comes."""
        try:
            return self.call("POST", "", body, **headers)
        except RequestException:
            return self.call("POST", "", body, **headers)

    def body(self, attempt: dict[str, Any], number: str) -> dict[str, Any]:
        """Return a new order."""
        body = {"currency": "EUR", "amount": PRICE, "merchant_order_id": number}
        body |= {"transactions": [attempt]} if attempt else {}
        return {**body, "return_url": "http://testserver/thanks"}

    def add_sale(self, *orders: str) -> dict[str, Any]:
        """Add a sale to the books."""
        nothing = dict.fromkeys(("paid", "shipped", "refunded", "owed"), 0)
        number = f"S-{1001 + len(self.sales)}"
        self.sales.append({"number": number, "orders": [*orders], "refunds": [], **nothing})
        return self.sales[-1]

    def buy(self) -> Any:
        """Check out."""
        sale = self.add_sale()
        try:
            sale["orders"] = [self.create(self.body(self.attempt, sale["number"]), sale["number"])["id"]]
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

    def is_open(self, sale: dict[str, Any]) -> bool:
        """Return whether a payment is still expected."""
        return not sale["paid"]

    def look(self) -> None:
        """Read what is still open."""
        for sale in [*self.sales]:
            open_orders = sale["orders"] if self.is_open(sale) else []
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

    def books(self) -> list[BookEntry]:
        """List the sales."""
        names = ("paid", "shipped", "refunded")
        return [
            BookEntry(sale["number"], sale["orders"], PRICE, **{name: sale[name] for name in names})
            for sale in self.sales
        ]

    def restart(self) -> None:
        """Start again."""

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


class Captures(Shop):
    """Captures and ships what is paid; the wrong one never ships what was captured without an answer."""

    attempt = DEPOSIT

    def learn(self, sale: dict[str, Any], order: dict[str, Any]) -> None:
        if order["status"] == "completed" and not sale["shipped"]:
            sale["paid"] = PRICE
            self.capture(sale, order)

    def capture(self, sale: dict[str, Any], order: dict[str, Any]) -> None:
        """Capture the payment, and ship."""
        try:
            self.call("POST", f"{order['id']}/transactions/{order['transactions'][0]['id']}/captures/", {})
            sale["shipped"] = PRICE
        except RequestException:
            if not self.wrong:
                details = self.call("GET", f"{order['id']}/?fields[]=amount_details")["amount_details"]
                sale["shipped"] = details["captured"]

    def is_open(self, sale: dict[str, Any]) -> bool:
        return not sale["shipped"]


class Hasty(Captures):
    """Ships whatever becomes of the capture."""

    def capture(self, sale: dict[str, Any], order: dict[str, Any]) -> None:
        super().capture(sale, order)
        sale["shipped"] = PRICE


class SkipsCapture(Captures):
    """The return page books the payment, so that the webhook handler skips its capture."""

    def learn(self, sale: dict[str, Any], order: dict[str, Any]) -> None:
        if not (self.wrong and sale["paid"]):
            super().learn(sale, order)

    def capture(self, sale: dict[str, Any], order: dict[str, Any]) -> None:
        if not (self.wrong and request and request.path == "/thanks"):
            super().capture(sale, order)

    def is_open(self, sale: dict[str, Any]) -> bool:
        return not sale["shipped"] and not (self.wrong and sale["paid"])


class Deposits(Captures):
    """The landlord captures a deposit; the books have what was captured."""

    def learn(self, sale: dict[str, Any], order: dict[str, Any]) -> None:
        """Learn nothing: the deposit is only reserved."""

    def test(self) -> None:
        super().test()
        (sale,) = self.sales
        self.capture(sale, self.call("GET", f"{sale['orders'][0]}/"))
        sale["paid"], sale["shipped"] = sale["shipped"], 0


class RetriesBlindly(Shop):
    """Creates the order again, without a key, if no answer comes."""

    def create(self, body: dict[str, Any], number: str) -> Any:
        return self.create_repeatedly(body, {} if self.wrong else {"Idempotency-Key": number})


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


class RefundsAgain(RefundDone):
    """Refunds on every click."""

    def refund(self, order_id: str) -> tuple[str, int]:
        (sale,) = self.sales
        sale["refunds"] = [self.call("POST", f"{order_id}/refunds/", {"amount": 500})["id"]]
        sale["owed"] += 500
        sale["refunded"] = sale["owed"]
        return "", 204


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


class Tabs(Shop):
    """A customer tries twice; the wrong one forgets the first attempt."""

    attempt = WALLET

    def test(self) -> None:
        self.sandbox.browser(self.app).post("/buy")
        (sale,) = self.sales
        second = self.create(self.body(self.attempt, "S-1001 again"), "")["id"]
        sale["orders"] = [second] if self.wrong else [*sale["orders"], second]
        self.pay(second)


class StoresCvc(Shop):
    """Stores the requests of its payments, with the CVC in them."""

    attempt = {**CARD, "payment_method_details": {"one_click_type": "first"}}

    def create(self, body: dict[str, Any], number: str) -> Any:
        return self.create_repeatedly(body, {"Idempotency-Key": number})

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


class Logs(Shop):
    """Writes the key to its log."""

    def call(self, method: str, path: str, body: Any = None, **headers: str) -> Any:
        logging.getLogger("shop").info("as %s", self.sandbox.api_key)
        return super().call(method, path, body, **headers)


class Talks(Shop):
    """Answers with the key what it could not do."""

    def webhook(self) -> tuple[str, int]:
        text, status = super().webhook()
        return self.sandbox.api_key if text else text, status


class Charges(Shop):
    """A job charges a stored card every month; the wrong one charges again what is not yet settled."""

    attempt = {**CARD, "payment_method_details": {"recurring_type": "first"}}

    def __init__(self, sandbox: PaymentSandbox, wrong: bool) -> None:
        super().__init__(sandbox, wrong)
        self.due, self.charge = 2, ""
        sandbox.every("PT6H", self.renew)

    def renew(self) -> None:
        """Charge the card if the last charge is done."""
        status = self.call("GET", f"{self.charge}/")["status"] if self.charge else "completed"
        if not self.sales or not self.sales[0]["paid"] or not self.due:
            return
        if self.charge and (status == "completed" or not self.wrong):
            self.due -= status == "completed"
            self.charge = "" if status == "completed" else self.charge
            return
        first = self.call("GET", f"{self.sales[0]['orders'][0]}/")
        token = first["transactions"][0]["payment_method_details"]["vault_token"]
        details = {"recurring_type": "recurring", "vault_token": token}
        body = self.body({**CARD, "payment_method_details": details}, f"charge {self.due}")
        key = {} if self.wrong else {"Idempotency-Key": f"charge {self.due}"}
        self.charge = self.create_repeatedly(body, key)["id"]
        self.add_sale(self.charge)

    def test(self) -> None:
        super().test()
        self.sandbox.clock.advance("P1D")


class WithoutJob(Shop):
    """The wrong one loses its payments at a restart, and reads nothing again."""

    attempt = WALLET

    def look(self) -> None:
        if not self.wrong:
            super().look()

    def restart(self) -> None:
        for sale in self.sales if self.wrong else ():
            sale["paid"] = 0


class Queue(WithoutJob):
    """A worker takes the orders of webhooks from a queue; the wrong one takes them out before they are read."""

    def __init__(self, sandbox: PaymentSandbox, wrong: bool) -> None:
        super().__init__(sandbox, wrong)
        self.queue: list[str] = []
        sandbox.every("PT1M", self.work)

    def webhook(self) -> tuple[str, int]:
        self.queue.append(request.get_json()["order_id"])
        return "", 202

    def work(self) -> None:
        """Handle what is in the queue."""
        while self.queue:
            order_id = self.queue.pop(0) if self.wrong else self.queue[0]
            self.refresh(order_id)
            if not self.wrong:
                self.queue.pop(0)

    def test(self) -> None:
        super().test()
        self.sandbox.clock.advance("PT5M")


class Background(WithoutJob):
    """An asynchronous shop; in the wrong one, a task after the response does the work of the webhook."""

    def create_app(self) -> Any:
        return Starlette(routes=[Route("/webhook", self.receive, methods=["POST"])])

    async def receive(self, call: Request) -> Response:
        """Receive a webhook."""
        order_id = (await call.json())["order_id"]
        if self.wrong:
            return Response(status_code=202, background=BackgroundTask(self.refresh, order_id))
        try:
            await run_in_threadpool(self.refresh, order_id)
        except RequestException:
            return Response(status_code=503)
        return Response(status_code=204)

    def test(self) -> None:
        self.pay(self.buy())


def cases() -> list[Any]:
    """Return each case: the shop, a variation or none, whether it is wrong, and whether it has books."""
    return [
        pytest.param(
            globals()[name],
            is_wrong == "wrong",
            has_books == "books",
            marks=pytest.mark.payment_rehearse(only=variation) if variation != "-" else (),
            id=f"{name} {variation} {is_wrong} {has_books}",
        )
        for name, variation, is_wrong, has_books in map(str.split, os.environ["CASES"].splitlines())
    ]


@pytest.fixture
def shop(payment_sandbox: PaymentSandbox, kind: type[Shop], wrong: bool, has_books: bool) -> Shop:
    """The shop."""
    shop = kind(payment_sandbox, wrong)
    shop.has_books = has_books
    return shop


@pytest.fixture
def payment_books(shop: Shop) -> Callable[[], list[BookEntry]] | None:
    """The shop's books, if it has any."""
    return shop.books if shop.has_books else None


@pytest.fixture
def payment_traces(shop: Shop) -> Callable[[], list[str]]:
    """What the shop stores."""
    return lambda: shop.stored


@pytest.fixture
def payment_shop_restart(shop: Shop) -> Callable[[], None]:
    """Restart the shop."""
    return shop.restart


@pytest.mark.payment_settings(mode="live")
@pytest.mark.parametrize(("kind", "wrong", "has_books"), cases())
def test_a_shop(shop: Shop) -> None:
    """A customer buys and pays."""
    shop.test()
