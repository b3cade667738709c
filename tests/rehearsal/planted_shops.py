"""Small shops as merchants write them; each is right, or has one mistake if ``mistake`` is set.

The module is copied to a folder and rehearsed there.
"""

import logging
from contextlib import suppress
from dataclasses import dataclass, field
from sqlite3 import connect
from typing import Any

from flask import Flask, request
from requests import HTTPError, RequestException
from starlette.applications import Starlette
from starlette.background import BackgroundTask
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from payment_sandbox import BookEntry, PaymentSandbox

WALLET = {"payment_method": "wallet-web"}
DEPOSIT = {"payment_method": "credit-card", "capture_mode": "manual", "expiration_period": "P14D"}
STORED = {"payment_method": "credit-card", "payment_method_details": {"recurring_type": "first"}}


@dataclass
class Sale:
    """One purchase."""

    number: int
    orders: list[str] = field(default_factory=list)
    paid: int = 0
    shipped: int = 0
    refunded: int = 0


class Shop:
    """A shop without books, whose checkout creates an order; its subclasses react to webhooks."""

    attempt: dict[str, Any] = WALLET
    has_books = True

    def __init__(self, sandbox: PaymentSandbox, mistake: bool) -> None:
        self.sandbox, self.mistake = sandbox, mistake
        self.sales: list[Sale] = []
        self.log: list[str] = []
        self.app: Any = self.create_app()
        sandbox.deliver_to(self.app)
        if not mistake:
            sandbox.every("PT1H", self.look)

    def create_app(self) -> Any:
        """Create the application."""
        app = Flask("shop")
        app.add_url_rule("/buy", "buy", lambda: str(self.buy().number), methods=["POST"])
        app.add_url_rule("/sales/<int:number>", "show", self.show)
        app.add_url_rule("/log", "log", lambda: "".join(f"<li>webhook for {each}</li>" for each in self.log))
        app.add_url_rule("/webhook", "webhook", self.receive, methods=["POST"])
        return app

    def look(self) -> None:
        """Read the orders that are still open."""
        for sale in self.sales:
            for order_id in sale.orders if not sale.paid else ():
                self.learn(order_id)

    def call(self, method: str, where: str, body: Any = None, **headers: str) -> Any:
        """Call the service."""
        url = f"{self.sandbox.base_url}/v1/orders/{where}"
        answer = self.sandbox.session.request(method, url, json=body, headers=headers, timeout=60)
        answer.raise_for_status()
        return answer.json()

    def create_order(self, attempt: dict[str, Any], number: str = "", **headers: str) -> Any:
        """Create an order."""
        body = {"currency": "EUR", "amount": 1000, "transactions": [attempt]}
        return self.call("POST", "", body | ({"merchant_order_id": number} if number else {}), **headers)

    def read_order(self, order_id: str) -> Any:
        """Read an order."""
        return self.call("GET", f"{order_id}/")

    def buy(self) -> Sale:
        """Check out."""
        sale = Sale(len(self.sales) + 1)
        self.sales.append(sale)
        sale.orders.append(self.create_order(self.attempt)["id"])
        return sale

    def show(self, number: int) -> str:
        """Show a sale to its customer."""
        return "Thank you, it is paid." if self.sales[number - 1].paid else "We wait for your payment."

    def receive(self) -> tuple[str, int]:
        """Receive a webhook."""
        try:
            self.learn(request.get_json()["order_id"])
        except RequestException:
            return "later", 503
        return "", 204

    def learn(self, order_id: str) -> None:
        """Learn the status of an order."""
        status = self.read_order(order_id)["status"]
        if status == "completed":
            self.pay(order_id)

    def pay(self, order_id: str) -> None:
        """Record the payment of an order."""
        for sale in self.sales:
            if order_id in sale.orders:
                sale.paid = 1000

    def books(self) -> list[BookEntry]:
        """List the purchases."""
        return [
            BookEntry(f"S-{each.number}", each.orders, 1000, each.paid, each.shipped, each.refunded)
            for each in self.sales
        ]

    def restart(self) -> None:
        """Start again."""

    def test(self) -> None:
        """Buy and pay."""
        self.app.test_client().post("/buy")
        self.sandbox.act(self.sales[0].orders[-1])


class BackgroundShop(Shop):
    """An asynchronous shop; in the wrong one, a task after the response does the work of the webhook."""

    def create_app(self) -> Any:
        return Starlette(
            routes=[
                Route("/buy", self.buy_on_a_thread, methods=["POST"]),
                Route("/webhook", self.receive_on_a_thread, methods=["POST"]),
            ]
        )

    async def buy_on_a_thread(self, call: Request) -> Response:
        """Check out."""
        return Response(str((await run_in_threadpool(self.buy)).number))

    async def receive_on_a_thread(self, call: Request) -> Response:
        """Receive a webhook."""
        order_id = (await call.json())["order_id"]
        if self.mistake:
            return Response(status_code=202, background=BackgroundTask(self.learn, order_id))
        try:
            await run_in_threadpool(self.learn, order_id)
        except RequestException:
            return Response(status_code=503)
        return Response(status_code=204)

    def test(self) -> None:
        self.buy()
        self.sandbox.act(self.sales[0].orders[-1])


class QueueShop(Shop):
    """A worker takes the orders of webhooks from a queue."""

    def __init__(self, sandbox: PaymentSandbox, mistake: bool) -> None:
        super().__init__(sandbox, mistake)
        self.queue: list[str] = []
        sandbox.every("PT1M", self.work)

    def receive(self) -> tuple[str, int]:
        self.queue.append(request.get_json()["order_id"])
        return "", 202

    def work(self) -> None:
        """Handle what is in the queue."""
        while self.queue:
            order_id = self.queue.pop(0) if self.mistake else self.queue[0]
            self.learn(order_id)
            if not self.mistake:
                self.queue.pop(0)

    def test(self) -> None:
        super().test()
        self.sandbox.clock.advance("PT5M")


class OutboxShop(Shop):
    """A relay creates the orders of the outbox."""

    def buy(self) -> Sale:
        self.sales.append(Sale(len(self.sales) + 1))
        self.relay()
        with suppress(RequestException):
            self.relay()
        return self.sales[-1]

    def relay(self) -> None:
        """Create the order of each sale that has none."""
        for sale in self.sales:
            if not sale.orders and (self.mistake or not sale.refunded):
                sale.refunded = 0
                try:
                    sale.orders.append(self.create_order(self.attempt)["id"])
                except RequestException:
                    if not self.mistake:
                        self.sales.remove(sale)
                        raise


class SubscriptionShop(Shop):
    """A job charges a stored card every month."""

    attempt = STORED

    def __init__(self, sandbox: PaymentSandbox, mistake: bool) -> None:
        super().__init__(sandbox, mistake)
        self.due, self.charge = 2, ""
        sandbox.every("PT6H", self.renew)

    def renew(self) -> None:
        """Charge the card if the last charge is done."""
        status = self.read_order(self.charge)["status"] if self.charge else "completed"
        if not self.sales or not self.sales[0].paid or not self.due:
            return
        if self.charge and (status == "completed" or not self.mistake):
            self.due -= status == "completed"
            self.charge = "" if status == "completed" else self.charge
            return
        first = self.read_order(self.sales[0].orders[0])
        token = first["transactions"][0]["payment_method_details"]["vault_token"]
        details = {"recurring_type": "recurring", "vault_token": token}
        attempt = {"payment_method": "credit-card", "payment_method_details": details}
        key = {} if self.mistake else {"Idempotency-Key": f"charge {self.due}"}
        try:
            order = self.create_order(attempt, **key)
        except RequestException:
            if self.mistake:
                raise
            order = self.create_order(attempt, **key)
        self.charge = order["id"]
        self.sales.append(Sale(len(self.sales) + 1, [self.charge]))

    def test(self) -> None:
        super().test()
        self.sandbox.clock.advance("P1D")


class DepositShop(Shop):
    """The landlord captures a deposit; the books have what was captured."""

    attempt = DEPOSIT

    def learn(self, order_id: str) -> None:
        """Learn nothing: the deposit is only reserved."""
        self.read_order(order_id)

    def look(self) -> None:
        """Read nothing."""

    def capture(self) -> None:
        """Capture the deposit."""
        sale = self.sales[0]
        attempt = self.read_order(sale.orders[0])["transactions"][0]
        where = f"{sale.orders[0]}/transactions/{attempt['id']}/captures/"
        with suppress(RequestException):
            self.call("POST", where, {})
            sale.paid = 1000
        if not self.mistake and not sale.paid:
            details = self.call("GET", f"{sale.orders[0]}/?fields[]=amount_details")["amount_details"]
            sale.paid = details["captured"]

    def test(self) -> None:
        super().test()
        self.capture()


class RefundShop(Shop):
    """A clerk refunds a sale; a job repeats what was refused each night, and reads what became of the refund."""

    def __init__(self, sandbox: PaymentSandbox, mistake: bool) -> None:
        super().__init__(sandbox, mistake)
        self.asked: list[Sale] = []
        self.refunds: dict[str, Sale] = {}
        sandbox.every("P1D", self.refund_all)

    def learn(self, order_id: str) -> None:
        order = self.read_order(order_id)
        for sale in self.sales if "refund_of_order_id" in order else ():
            if order["refund_of_order_id"] in sale.orders:
                self.refunds[order_id] = sale
                sale.refunded = 1000 if order["status"] == "completed" else 0
        if order["status"] == "completed":
            self.pay(order_id)

    def refund_all(self) -> None:
        """Refund all that is asked for."""
        for refund_id in [*self.refunds]:
            self.learn(refund_id)
        for sale in [*self.asked]:
            if sale in self.refunds.values():
                continue
            try:
                refund = self.call("POST", f"{sale.orders[0]}/refunds/", {"amount": 1000})
                self.refunds[refund["id"]] = sale
            except HTTPError:
                if self.mistake:
                    sale.refunded = 1000
                    self.asked = [each for each in self.asked if each is not sale]

    def test(self) -> None:
        super().test()
        self.asked.append(self.sales[0])
        self.refund_all()


class ClickShop(Shop):
    """The wrong one refunds on every click."""

    def create_app(self) -> Any:
        app = super().create_app()
        app.add_url_rule("/refund", "refund", self.refund, methods=["POST"])
        return app

    def refund(self) -> str:
        """Refund a part of the first sale."""
        (sale,) = self.sales
        if self.mistake or not sale.refunded:
            self.call("POST", f"{sale.orders[0]}/refunds/", {"amount": 500})
            sale.refunded += 500
        return ""

    def test(self) -> None:
        super().test()
        self.app.test_client().post("/refund")


class ParcelShop(Shop):
    """A job captures and ships what is paid; the wrong one never ships what is captured already."""

    attempt = DEPOSIT

    def __init__(self, sandbox: PaymentSandbox, mistake: bool) -> None:
        super().__init__(sandbox, mistake)
        sandbox.every("PT1H", self.ship)

    def ship(self) -> None:
        """Capture and ship."""
        for sale in [each for each in self.sales if each.paid and not each.shipped]:
            (order_id,) = sale.orders
            attempt = self.read_order(order_id)["transactions"][0]
            with suppress(RequestException):
                self.call("POST", f"{order_id}/transactions/{attempt['id']}/captures/", {})
                sale.shipped = 1000
            if not self.mistake:
                order = self.call("GET", f"{order_id}/?fields[]=amount_details")
                sale.shipped = order["amount_details"]["captured"]

    def test(self) -> None:
        super().test()
        self.ship()
        self.sandbox.clock.advance("P1D")


class HastyShop(ParcelShop):
    """The wrong one ships, whatever becomes of the capture."""

    def ship(self) -> None:
        super().ship()
        for sale in self.sales if self.mistake else ():
            sale.shipped = sale.paid


class TabsShop(Shop):
    """A customer tries twice; the wrong one forgets the first attempt."""

    def test(self) -> None:
        self.app.test_client().post("/buy")
        (sale,) = self.sales
        sale.orders = [*sale.orders[: not self.mistake], self.create_order(self.attempt)["id"]]
        self.sandbox.act(sale.orders[-1])


class ForgetfulShop(Shop):
    """The wrong one keeps its payments in memory only."""

    def restart(self) -> None:
        for sale in self.sales if self.mistake else ():
            sale.paid = 0


class LoggingShop(Shop):
    """The wrong one writes the key to its log."""

    def call(self, method: str, where: str, body: Any = None, **headers: str) -> Any:
        logging.getLogger("shop").info("as %s", self.sandbox.api_key if self.mistake else "a shop")
        return super().call(method, where, body, **headers)


class TalkativeShop(Shop):
    """The wrong one answers with the key what it could not do."""

    def receive(self) -> tuple[str, int]:
        text, status = super().receive()
        return self.sandbox.api_key if text and self.mistake else text, status


class PlainShop(Shop):
    """A shop without books, whose customers read its page."""

    has_books = False

    def receive(self) -> tuple[str, int]:
        self.log.append(request.get_json()["order_id"])
        status = super().receive()[1]
        return "", 204 if self.mistake else status

    def test(self) -> None:
        super().test()
        self.app.test_client().get("/sales/1")
        self.app.test_client().get("/log")


class DetailsShop(Shop):
    """A shop that compares the captured amount."""

    def learn(self, order_id: str) -> None:
        order = self.call("GET", f"{order_id}/?fields[]=amount_details")
        if order["status"] == "completed" and order["amount_details"]["captured"] == 1000:
            self.pay(order_id)

    def test(self) -> None:
        super().test()
        assert self.sales[0].paid


class SqlShop(Shop):
    """A shop whose database counts across tests; it ships after the commit, as with Django's on_commit."""

    database = connect(":memory:", check_same_thread=False)
    database.execute("CREATE TABLE sale (id INTEGER PRIMARY KEY AUTOINCREMENT, order_id, paid, shipped)")

    def __init__(self, sandbox: PaymentSandbox, mistake: bool) -> None:
        super().__init__(sandbox, mistake)
        self.database.execute("DELETE FROM sale")
        self.after_commit: list[str] = []

    def buy(self) -> Sale:
        number = self.database.execute("INSERT INTO sale (paid, shipped) VALUES (0, 0)").lastrowid or 0
        order = self.create_order(self.attempt, f"S-{number}")
        self.database.execute("UPDATE sale SET order_id = ? WHERE id = ?", (order["id"], number))
        self.sales.append(Sale(number, [order["id"]]))
        return self.sales[-1]

    def learn(self, order_id: str) -> None:
        status = self.read_order(order_id)["status"]
        if status != "completed" and not (self.mistake and status == "processing"):
            return
        with self.database:
            update = "UPDATE sale SET paid = 1000 WHERE order_id = ? AND paid = 0"
            if self.database.execute(update, (order_id,)).rowcount:
                self.after_commit.append(order_id)
        while self.after_commit:
            update = "UPDATE sale SET shipped = shipped + 1000 WHERE order_id = ?"
            self.database.execute(update, (self.after_commit.pop(),))

    def books(self) -> list[BookEntry]:
        rows = self.database.execute("SELECT id, order_id, paid, shipped FROM sale WHERE order_id > ''")
        return [BookEntry(f"S-{number}", [order], 1000, *rest) for number, order, *rest in rows]
