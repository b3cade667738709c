"""A small shop with at most one mistake, which is copied to a folder and rehearsed there.

Each case is a test with a single variation that reveals a mistake: the test passes without the variation, and
the variation passes without the mistake. With the variable ``SEARCH``, no variation is given."""

import logging
import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from flask import Flask, request
from flask.testing import FlaskClient
from requests import Response

from payment_sandbox import BookEntry, PaymentSandbox

PRICE_CENTS = 1000
CARD = {"payment_method": "credit-card", "capture_mode": "manual", "expiration_period": "P14D"}
WALLET = {"payment_method": "wallet-web", "expiration_period": "PT30M"}
LATER = {"payment_method": "pay-later-a"}
STORED = {"payment_method": "credit-card", "payment_method_details": {"recurring_type": "first"}}
TRANSFER = {"payment_method": "bank-transfer"}
ATTEMPTS: dict[str, dict[str, Any]] = {
    "card": CARD,
    "wallet": WALLET,
    "later": LATER,
    "stored": STORED,
    "transfer": TRANSFER,
}
PAID = ("completed", "accepted")
FINISHED = ("cancelled", "error", "expired")
CANCELLED_ATTEMPT = "abandons a sale after a cancelled attempt"
IGNORED_CAPTURE = "treats a captured payment as not captured"
LOST_AUTHORIZATION = "treats a lost authorization as captured"
FIRST_PARCEL_ONLY = "captures the first parcel only"
KEY_IN_RESPONSES = "exposes the key in its responses"
REFUNDS_EACH_CLICK = "refunds on every click"


@dataclass
class Sale:
    """One purchase."""

    number: str
    count: int
    attempt: dict[str, Any]
    orders: list[str] = field(default_factory=list)
    paid_with: str = ""
    abandoned: bool = False
    shipped: int = 0
    requested: int = 0
    check_count: int = 0
    renewal_count: int = 0
    token: str = ""
    refunds: dict[str, str] = field(default_factory=dict)  # refund ids by order id
    refunded_cents: int = 0


class Shop:
    """The shop; ``mistake`` is its only mistake."""

    def __init__(self, sandbox: PaymentSandbox, mistake: str) -> None:
        self.sales: list[Sale] = []
        self._sandbox = sandbox
        self._mistake = mistake
        self.test_sale = Sale("", 0, {})  # the sale of the test's customer
        self.ships_at_once = False  # when the payment is known

    def makes(self, mistake: str) -> bool:
        """Return whether the shop makes this mistake."""
        return self._mistake == mistake

    def call(self, method: str, path: str, body: Any = None, **headers: str) -> Response:
        if self.makes("writes the key to its log"):
            logging.getLogger("shop").info("as %s", self._sandbox.api_key)
        url = f"{self._sandbox.base_url}/v1/orders/{path}"
        return self._sandbox.session.request(method, url, json=body, headers=headers, timeout=60)

    # Customers

    def buy(self, count: int, attempt: dict[str, Any]) -> Sale:
        """Check out as a customer."""
        sale = Sale(f"S-{len(self.sales) + 1}", count, attempt)
        self.sales.append(sale)
        self.pay(sale)
        return sale

    def pay(self, sale: Sale) -> None:
        """Create an order for a new attempt to pay."""
        body = {
            "currency": "EUR",
            "amount": sale.count * PRICE_CENTS,
            "merchant_order_id": f"{sale.number}-{len(sale.orders)}",
            "transactions": [sale.attempt],
        }
        if sale.attempt is LATER:
            body |= {"order_lines": [order_line(sale.count)]}
        response = self.call("POST", "", body)
        if response.status_code == 409 and self.makes("treats a refused order as created"):
            sale.paid_with = "an order"
        if response.status_code == 201:
            if self.makes("forgets the previous attempt"):
                sale.orders.clear()
            sale.orders.append(response.json()["id"])
            if self.makes("treats every order but a cancelled one as paid"):
                sale.paid_with = "" if response.json()["status"] == "cancelled" else response.json()["id"]

    # Statuses of orders

    def read_order(self, order_id: str) -> None:
        """Read an order, and record its status.

        Raises:
            ConnectionError: the service is unavailable.
        """
        sale = next((each for each in self.sales if order_id in each.orders), None)
        if sale is None:
            if any(order_id in each.refunds.values() for each in self.sales):
                self.call("GET", f"{order_id}/")
            return
        if self.makes("marks the newest sale as paid"):
            sale = self.sales[-1]
        response = self.call("GET", f"{order_id}/")
        if response.status_code >= 500:
            raise ConnectionError(f"no answer for {self._sandbox.api_key}")
        self.record_status(sale, order_id, response.json()["status"])

    def answer_webhook(self, order_id: str) -> tuple[str, int]:
        """Read the order of a webhook; return the response."""
        try:
            self.read_order(order_id)
        except ConnectionError as error:
            return str(error) if self.makes(KEY_IN_RESPONSES) else "later, please", 503
        return "", 204

    def record_status(self, sale: Sale, order_id: str, status: str) -> None:
        """Record the status of an order."""
        if sale.abandoned and self.makes("ignores a sale once it is lost"):
            return
        is_progress = status == "processing" and self.makes("treats a payment in progress as paid")
        if status in PAID or is_progress:
            sale.paid_with, sale.abandoned = sale.paid_with or order_id, False
            self.refund_other_attempts(sale)
            if self.ships_at_once and not sale.shipped:
                self.ship(sale, sale.count)
        elif status == "cancelled" and self.makes(CANCELLED_ATTEMPT):
            sale.paid_with, sale.abandoned = "", True
        elif status in FINISHED and not sale.paid_with and order_id == sale.orders[-1]:
            sale.abandoned = True

    def refund_other_attempts(self, sale: Sale) -> None:
        """Refund or cancel the other attempts of a paid sale."""
        other_orders = {each for each in sale.orders if each != sale.paid_with} - {*sale.refunds}
        keeps_payments = self.makes("keeps a double payment") or self.makes(CANCELLED_ATTEMPT)
        for order_id in other_orders if not keeps_payments else ():
            status = self.call("GET", f"{order_id}/").json()["status"]
            if status == "completed":
                refund = self.call("POST", f"{order_id}/refunds/", {"amount": sale.count * PRICE_CENTS})
                sale.refunds[order_id] = refund.json()["id"]
                sale.refunded_cents += sale.count * PRICE_CENTS
            elif status not in FINISHED:
                self.call("DELETE", f"{order_id}/")

    def refund(self, sale: Sale, cents: int) -> None:
        """Refund a part of the paid amount."""
        if not sale.paid_with or (sale.refunds and not self.makes(REFUNDS_EACH_CLICK)):
            return
        response = self.call("POST", f"{sale.paid_with}/refunds/", {"amount": cents})
        if response.status_code == 201:
            sale.refunds[sale.paid_with] = response.json()["id"]
            sale.refunded_cents += cents

    # The warehouse

    def ship(self, sale: Sale, count: int) -> int:
        """Capture and ship; return the status of the response."""
        sale.requested = sale.shipped + count
        is_bought = sale.paid_with and count <= sale.count - sale.shipped
        if not is_bought:
            return 409
        if sale.shipped and self.makes(FIRST_PARCEL_ONLY):
            sale.shipped += count
            return 200
        (order_id,) = sale.orders
        response = self.call("GET", f"{order_id}/")
        capture = f"{order_id}/transactions/{response.json()['transactions'][0]['id']}/captures/amount/"
        body = {"description": "a parcel", "amount": min(count, sale.count) * PRICE_CENTS}
        match = {} if self.makes(LOST_AUTHORIZATION) else {"If-Match": response.headers["ETag"]}
        captured = self.call("POST", capture, body, **match)
        if captured.status_code >= 400:
            sale.abandoned = self.makes("abandons a sale after a refusal")
            if not self.ships_despite_refusal(captured) and not self.is_captured(
                order_id, sale.shipped + count
            ):
                return 409
        sale.shipped += sale.count if self.makes("ships everything after a partial capture") else count
        return 200

    def is_captured(self, order_id: str, count: int) -> bool:
        """Return whether enough is captured for this number of pieces."""
        if self.makes(IGNORED_CAPTURE):
            return False
        order = self.call("GET", f"{order_id}/?fields[]=amount_details").json()
        return bool(order["amount_details"]["captured"] >= count * PRICE_CENTS)

    def retry_shipments(self) -> None:
        """Retry shipments that failed."""
        for sale in self.sales:
            if sale.requested > sale.shipped:
                self.ship(sale, sale.requested - sale.shipped)

    def ships_despite_refusal(self, refused: Response) -> bool:
        """Return whether a mistake ships goods although the capture was refused."""
        return self.makes("ships after a refused capture") or (
            self.makes(LOST_AUTHORIZATION) and refused.status_code == 409
        )

    # Jobs

    def abandon_unpaid_sales(self) -> None:
        """Abandon sales that stay unpaid, and read the orders of the others."""
        for sale in self.sales:
            if not sale.paid_with:
                sale.check_count += 1
                sale.abandoned = sale.abandoned or sale.check_count > 1
                for order_id in sale.orders:
                    with suppress(ConnectionError):  # the next run reads it again
                        self.read_order(order_id)

    def renew(self) -> None:
        """Charge each subscriber once."""
        for sale in self.sales:
            if not sale.token and sale.paid_with and sale.attempt is STORED:
                order = self.call("GET", f"{sale.orders[0]}/").json()
                sale.token = order["transactions"][0]["payment_method_details"]["vault_token"]
            if not sale.token or sale.renewal_count:
                continue
            details = {"recurring_type": "recurring", "vault_token": sale.token}
            attempt = {"payment_method": "credit-card", "payment_method_details": details}
            body = {"currency": "EUR", "amount": PRICE_CENTS, "transactions": [attempt]}
            response = self.call("POST", "", body).json()
            sale.renewal_count = 1
            self.sales.append(Sale(f"{sale.number}-renewed", 1, {}, [response["id"]], renewal_count=1))


def order_line(count: int) -> dict[str, Any]:
    """Return an order line."""
    return {
        "type": "physical",
        "name": "socks",
        "amount": PRICE_CENTS,
        "currency": "EUR",
        "quantity": count,
        "vat_percentage": 1900,
        "merchant_order_line_id": "socks",
    }


@pytest.fixture
def shop(payment_sandbox: PaymentSandbox, mistake: str) -> Shop:
    """The shop with its webhooks."""
    return Shop(payment_sandbox, mistake)


@pytest.fixture
def browser(payment_sandbox: PaymentSandbox, shop: Shop) -> FlaskClient:
    """A customer's browser."""
    app = Flask("shop")

    @app.post("/refund")
    def refund() -> str:
        shop.refund(shop.test_sale, round(float(request.form["amount"]) * 100))
        return ""

    @app.post("/buy")
    def buy() -> str:
        return shop.buy(int(request.form["count"]), ATTEMPTS[request.form["method"]]).number

    @app.post("/retry")
    def retry() -> str:
        sale = shop.test_sale
        shop.pay(sale)
        return sale.number

    @app.post("/ship")
    def ship() -> tuple[str, int]:
        return "", shop.ship(shop.test_sale, int(request.form["count"]))

    @app.post("/webhook")
    def webhook() -> tuple[str, int]:
        return shop.answer_webhook(request.get_json()["order_id"])

    payment_sandbox.deliver_to(app)
    return app.test_client()


@pytest.fixture
def payment_books(shop: Shop) -> Callable[[], list[BookEntry]]:
    """The shop's books."""

    def entry(sale: Sale) -> BookEntry:
        cents = sale.count * PRICE_CENTS
        return BookEntry(
            purchase=sale.number,
            orders=sale.orders,
            amount=cents,
            paid=cents if sale.paid_with else 0,
            shipped=sale.shipped * PRICE_CENTS,
            refunded=sale.refunded_cents,
            cancelled=sale.abandoned,
        )

    return lambda: [entry(sale) for sale in shop.sales]


@pytest.fixture
def payment_traces(
    payment_sandbox: PaymentSandbox, shop: Shop, tmp_path: Path
) -> Callable[[], list[str | Path]]:
    """The shop's stored data."""
    key = payment_sandbox.api_key.encode() if shop.makes("stores the key") else b"none"
    (tmp_path / "shop.db").write_bytes(b"\xff\x00 key=" + key)
    return lambda: ["a plain text", tmp_path / "shop.db"]


@pytest.fixture
def payment_shop_restart(shop: Shop) -> Callable[[], None]:
    """Restart the shop; a mistake keeps payments in memory only."""

    def restart() -> None:
        for sale in shop.sales if shop.makes("keeps payments in memory") else ():
            sale.paid_with = ""

    return restart


class Case(NamedTuple):
    """A mistake or none, the variation of a test that reveals it, and a part of the finding's sentence."""

    mistake: str
    flow: str
    variation: str
    effect: str = ""


CASES = (
    Case("treats a refused order as created", "wallet", "create:1:refused"),
    Case(KEY_IN_RESPONSES, "wallet", "read:1:unavailable-twice", "contains a key"),
    Case(REFUNDS_EACH_CLICK, "partial refund", "press:2:twice", "€10.00 was refunded instead of €5.00"),
    Case(
        "keeps a double payment",
        "two attempts",
        "action:1:pays-both",
        "the customer paid 2 times, €40.00 in total",
    ),
    Case("ships after a refused capture", "card", "change:1:refused"),
    Case("abandons a sale after a refusal", "card", "change:1:captured"),
    Case(LOST_AUTHORIZATION, "card", "change:1:voided"),
    Case("marks the newest sale as paid", "wallet", "press:1:another-pays"),
    Case("ships everything after a partial capture", "card", "press:2:one-less"),
    Case(FIRST_PARCEL_ONLY, "card", "press:2:in-parts"),
    Case("ships after a refused capture", "card after a wait", "action:1:lapses"),
    Case(IGNORED_CAPTURE, "card with a job", "change:1:answer-lost"),
    Case("keeps payments in memory", "card after a wait", "time:1:restarted"),
    Case("keeps payments in memory", "wallet", "action:1:restarted"),
    Case("ignores a sale once it is lost", "wallet with a job", "action:1:last-moment"),
    Case("treats a payment in progress as paid", "wallet", "action:1:opens-page", "no payment was made"),
    Case("", "card shipped at once", "webhook:1:late"),
    Case("", "card shipped at once", "webhook:2:twice"),
    Case("stores the key", "wallet", "unchanged", "the shop's stored data contains a key"),
    Case("writes the key to its log", "wallet", "unchanged", "the shop's log or output contains a key"),
    Case("forgets the previous attempt", "two attempts", "action:1:other-tab"),
    Case(CANCELLED_ATTEMPT, "two attempts", "action:1:cancels-later"),
    Case("keeps a double payment", "failed attempt", "action:1:pays-later", "the customer paid 2 times"),
    Case("treats every order but a cancelled one as paid", "later", "attempt:1:declined"),
    Case("ignores a sale once it is lost", "renewal with a job", "attempt:2:charge-later"),
)


def cases() -> list[Any]:
    """Return each case with and without its mistake."""
    each = {(case.flow, case.variation, mistake) for case in CASES for mistake in (case.mistake, "")}
    return [
        pytest.param(
            flow,
            mistake,
            marks=() if "SEARCH" in os.environ else pytest.mark.payment_rehearse(only=variation),
            id=f"{flow}-{variation}-{mistake or 'right'}",
        )
        for flow, variation, mistake in sorted(each)
    ]


@pytest.mark.payment_review(expect=["SET-31"])
@pytest.mark.parametrize(("flow", "mistake"), cases())
def test_a_cell(flow: str, shop: Shop, browser: FlaskClient, payment_sandbox: PaymentSandbox) -> None:
    """A purchase and its next steps succeed."""
    method, *steps = FLOWS[flow]
    response = browser.post("/buy", data={"count": 1 if method == "stored" else 2, "method": method})
    shop.test_sale = next(sale for sale in shop.sales if sale.number == response.text)
    for step in steps:
        STEPS[step](shop, browser, payment_sandbox)


FLOWS = {
    "wallet": ("wallet", "pay"),
    "wallet with a job": ("wallet", "job", "pay"),
    "partial refund": ("wallet", "pay", "refund a part"),
    "card with a job": ("card", "pay", "shipping job", "ship", "day"),
    "card after a wait": ("card", "pay", "wait", "ship"),
    "card": ("card", "pay", "ship"),
    "card shipped at once": ("card", "at once", "pay"),
    "two attempts": ("wallet", "retry", "pay"),
    "failed attempt": ("wallet", "fail", "retry", "pay"),
    "later": ("later", "pay"),
    "renewal with a job": ("stored", "renew", "pay", "daily job", "month", "day"),
}
Step = Callable[[Shop, FlaskClient, PaymentSandbox], object]
STEPS: dict[str, Step] = {
    "refund a part": lambda shop, browser, sandbox: browser.post("/refund", data={"amount": "5.00"}),
    "pay": lambda shop, browser, sandbox: sandbox.act(shop.test_sale.orders[-1]),
    "fail": lambda shop, browser, sandbox: sandbox.act(shop.test_sale.orders[-1], "customer", "fail"),
    "ship": lambda shop, browser, sandbox: browser.post("/ship", data={"count": 2}),
    "retry": lambda shop, browser, sandbox: browser.post("/retry"),
    "at once": lambda shop, browser, sandbox: setattr(shop, "ships_at_once", True),
    "wait": lambda shop, browser, sandbox: sandbox.clock.advance("PT20M"),
    "job": lambda shop, browser, sandbox: sandbox.every("PT10M", shop.abandon_unpaid_sales),
    "shipping job": lambda shop, browser, sandbox: sandbox.every("PT1H", shop.retry_shipments),
    "daily job": lambda shop, browser, sandbox: sandbox.every("PT6H", shop.abandon_unpaid_sales),
    "day": lambda shop, browser, sandbox: sandbox.clock.advance("P1D"),
    "renew": lambda shop, browser, sandbox: sandbox.every("P30D", shop.renew),
    "month": lambda shop, browser, sandbox: sandbox.clock.advance("P31D"),
}
