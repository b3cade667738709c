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
PAGE = """
<form method="post" action="/buy">
<label><input type="radio" name="method" value="wallet" checked> wallet</label>
<label><input type="radio" name="method" value="transfer"> bank transfer</label>
</form>
"""
SLOW_SCREENING = {"customer": {"email_address": "needs-time@example.com", "country": "NL"}}
PAID = ("completed", "accepted")
FINISHED = ("cancelled", "error", "expired")
CANCELLED_ATTEMPT = "abandons a sale after a cancelled attempt"
IGNORED_CAPTURE = "treats a captured payment as not captured"
FORGOTTEN_PAYMENT = "abandons a paid sale after a failed attempt"
LOST_AUTHORIZATION = "treats a lost authorization as captured"
RENEWALS_BY_MONTH = "names renewals by their month"
FIRST_PARCEL_ONLY = "captures the first parcel only"
EXPIRED_ATTEMPT = "abandons a sale forever after an expired attempt"
STALE_RESPONSE = "trusts a stale response"
KEY_IN_RESPONSES = "exposes the key in its responses"
READS_ONCE = "reads an order only once in its job"
REFUNDS_EACH_CLICK = "refunds on every click"
SHORT_AUTHORIZATION = "authorizes for too short a time"


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
        self.extra_fields: dict[str, Any] = {}  # in orders with order lines
        self.ships_at_once = False  # when the payment is known

    def makes(self, mistake: str) -> bool:
        """Return whether the shop makes this mistake."""
        return self._mistake == mistake

    def call(self, method: str, path: str, body: Any = None, **headers: str) -> Response:
        if self.makes("writes the key to its log"):
            logging.getLogger("shop").info("as %s", self._sandbox.api_key)
        url, timeout = (
            f"{self._sandbox.base_url}/v1/orders/{path}",
            None if self.makes("waits forever") else 60,
        )
        return self._sandbox.session.request(method, url, json=body, headers=headers, timeout=timeout)

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
        if self.makes(SHORT_AUTHORIZATION):
            body["transactions"] = [{**sale.attempt, "expiration_period": "P1D"}]
        if sale.attempt is LATER:
            body |= {"order_lines": [order_line(sale.count)], **self.extra_fields}
        response = self.call("POST", "", body)
        if response.status_code == 409 and self.makes("treats a refused order as created"):
            sale.paid_with = "an order"
        if response.status_code == 201:
            if self.makes("forgets the previous attempt"):
                sale.orders.clear()
            sale.orders.append(response.json()["id"])
            if self.makes("ships before a transfer arrives") and sale.attempt is TRANSFER:
                sale.paid_with = response.json()["id"]
            if self.makes("treats every order but a cancelled one as paid"):
                sale.paid_with = "" if response.json()["status"] == "cancelled" else response.json()["id"]

    # Statuses of orders

    def read_order(self, order_id: str) -> None:
        """Read an order, and record its status.

        Raises:
            ConnectionError: the service is unavailable.
        """
        sale = next((each for each in self.sales if order_id in each.orders), None)
        if sale is None and self.makes("fails on unknown orders"):
            raise KeyError(order_id)
        if sale is None:
            if any(order_id in each.refunds.values() for each in self.sales):
                self.call("GET", f"{order_id}/")
            return
        if self.makes("marks the newest sale as paid"):
            sale = self.sales[-1]
        if self.makes("marks the oldest sale of that price as paid"):
            sale = next(each for each in self.sales if each.count == sale.count)
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
        if sale.abandoned and (self.makes("ignores a sale once it is lost") or self.makes(EXPIRED_ATTEMPT)):
            return
        if sale.abandoned and self.makes(STALE_RESPONSE):
            return
        is_progress = status == "processing" and self.makes("treats a payment in progress as paid")
        if status in PAID or is_progress:
            sale.paid_with, sale.abandoned = sale.paid_with or order_id, False
            self.refund_other_attempts(sale)
            if self.ships_at_once and not sale.shipped:
                self.ship(sale, sale.count)
        elif status == "new" and self.makes(STALE_RESPONSE):
            sale.abandoned = True
        elif status == "cancelled" and self.makes(CANCELLED_ATTEMPT):
            sale.paid_with, sale.abandoned = "", True
        elif status == "expired" and self.makes(EXPIRED_ATTEMPT):
            sale.abandoned = not sale.paid_with
        elif (status in FINISHED and sale.paid_with and self.makes(FORGOTTEN_PAYMENT)) or (
            status in FINISHED and not sale.paid_with and order_id == sale.orders[-1]
        ):
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
                if self.makes("forgets an attempt that it cancels"):
                    sale.orders.remove(order_id)

    def refund(self, sale: Sale, cents: int) -> None:
        """Refund a part of the paid amount."""
        if not sale.paid_with or (sale.refunds and not self.makes(REFUNDS_EACH_CLICK)):
            return
        response = self.call("POST", f"{sale.paid_with}/refunds/", {"amount": cents})
        if response.status_code == 201:
            sale.refunds[sale.paid_with] = response.json()["id"]
        elif not self.makes("records a refused refund"):
            return
        is_all = self.makes("records a partial refund as a full one")
        sale.refunded_cents += sale.count * PRICE_CENTS if is_all else cents

    # The warehouse

    def ship(self, sale: Sale, count: int) -> int:
        """Capture and ship; return the status of the response."""
        sale.requested = sale.shipped + count
        is_bought = sale.paid_with and count <= sale.count - sale.shipped
        if not is_bought and not self.makes("ships goods that were not bought"):
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
        needed_cents = 1 if self.makes("ships once any part is captured") else count * PRICE_CENTS
        return bool(order["amount_details"]["captured"] >= needed_cents)

    def retry_shipments(self) -> None:
        """Retry shipments that failed."""
        for sale in self.sales:
            if sale.requested > sale.shipped:
                self.ship(sale, sale.requested - sale.shipped)

    def ships_despite_refusal(self, refused: Response) -> bool:
        """Return whether a mistake ships goods although the capture was refused."""
        return (
            self.makes("ships after a refused capture")
            or (self.makes(LOST_AUTHORIZATION) and refused.status_code == 409)
            or (self.makes("ships after a version conflict") and refused.status_code == 412)
        )

    # Jobs

    def forget_unshipped_sales(self) -> None:
        """Forget payments that are not shipped, with a mistake."""
        for sale in self.sales if self.makes("forgets unshipped sales") else ():
            sale.paid_with = ""

    def abandon_unpaid_sales(self) -> None:
        """Abandon sales that stay unpaid, and read the orders of the others."""
        for sale in self.sales:
            if not sale.paid_with:
                sale.check_count += 1
                sale.abandoned = sale.abandoned or sale.check_count > 1
                for order_id in sale.orders if sale.check_count == 1 or not self.makes(READS_ONCE) else ():
                    with suppress(ConnectionError):  # the next run reads it again
                        self.read_order(order_id)

    def renew(self) -> None:
        """Charge each subscriber once."""
        for sale in self.sales:
            if not sale.token and sale.paid_with and sale.attempt is STORED:
                order = self.call("GET", f"{sale.orders[0]}/").json()
                sale.token = order["transactions"][0]["payment_method_details"]["vault_token"]
            is_repeated = self.makes("renews on every run of the job") or self.makes(RENEWALS_BY_MONTH)
            if not sale.token or (sale.renewal_count and not is_repeated):
                continue
            is_late = self.makes("records a renewal after the charge")
            sale.renewal_count += not is_late
            details = {"recurring_type": "recurring", "vault_token": sale.token}
            attempt = {"payment_method": "credit-card", "payment_method_details": details}
            body = {"currency": "EUR", "amount": PRICE_CENTS, "transactions": [attempt]}
            response = self.call("POST", "", body).json()
            sale.renewal_count = 1
            number = f"{sale.number}-renewed"
            if self.makes(RENEWALS_BY_MONTH):
                number = f"{sale.number}-{self._sandbox.clock.now.month}"
                self.sales = [each for each in self.sales if each.number != number]
            self.sales.append(Sale(number, 1, {}, [response["id"]], renewal_count=1))


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

    @app.get("/")
    def form() -> str:
        return PAGE

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

    @app.post("/cancelled")
    def show_cancelled_page() -> str:
        sale = shop.test_sale
        sale.abandoned = sale.abandoned or shop.makes("trusts the return to the cancel page")
        return sale.number

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
    Case("waits forever", "wallet", "create:1:silent", "the call has no timeout"),
    Case(
        "fails on unknown orders",
        "transfer",
        "create:1:early",
        "Your shop answered the webhook with an error",
    ),
    Case(KEY_IN_RESPONSES, "wallet", "read:1:unavailable", "contains a key"),
    Case(
        READS_ONCE,
        "wallet after a look",
        "webhook:2:lost+read:2:unavailable",
        "the shop cancelled the purchase, but kept €20.00",
    ),
    Case(REFUNDS_EACH_CLICK, "partial refund", "press:2:twice", "€10.00 was refunded instead of €5.00"),
    Case(
        "keeps a double payment",
        "two attempts",
        "action:1:pays-both",
        "the customer paid 2 times, €40.00 in total",
    ),
    Case("ships after a refused capture", "card", "change:1:refused"),
    Case("abandons a sale after a refusal", "card", "change:1:captured"),
    Case("ships once any part is captured", "card", "change:1:half-captured"),
    Case("forgets an attempt that it cancels", "two attempts", "change:1:paid"),
    Case(LOST_AUTHORIZATION, "card", "change:1:voided"),
    Case(LOST_AUTHORIZATION, "card", "change:1:expired"),
    Case("ships after a version conflict", "card", "change:1:changed"),
    Case("marks the newest sale as paid", "wallet", "press:1:another-pays"),
    Case("marks the oldest sale of that price as paid", "wallet", "press:1:another-unpaid"),
    Case("ships goods that were not bought", "card", "press:2:one-more"),
    Case("ships everything after a partial capture", "card", "press:2:one-less"),
    Case(FIRST_PARCEL_ONLY, "card", "press:2:in-parts"),
    Case("ships after a version conflict", "card", "press:2:parts-together"),
    Case("ships before a transfer arrives", "wallet from a page", "press:1:another-choice"),
    Case("records a partial refund as a full one", "refund", "press:2:cent-less"),
    Case("records a refused refund", "refund", "press:2:cent-more"),
    Case(EXPIRED_ATTEMPT, "late attempt", "time:1:day-more"),
    Case("ships after a refused capture", "card after a wait", "time:1:lapses"),
    Case(RENEWALS_BY_MONTH, "renewal", "time:1:year-more"),
    Case(IGNORED_CAPTURE, "card with a job", "change:1:answer-lost"),
    Case("keeps payments in memory", "card after a wait", "time:1:restarted"),
    Case("keeps payments in memory", "wallet", "action:1:restarted"),
    Case("ignores a sale once it is lost", "wallet with a job", "action:1:last-moment"),
    Case(
        "ignores a sale once it is lost",
        "wallet with a job",
        "action:1:late-on-page",
        "came a second before the expiry",
    ),
    Case("treats a payment in progress as paid", "wallet", "action:1:opens-page", "no payment was made"),
    Case(SHORT_AUTHORIZATION, "card", "action:1:three-days", "the authorization expired before the shop"),
    Case("", "card that nearly lapses", "action:1:three-days"),
    Case("", "card shipped at once", "webhook:1:late"),
    Case("", "card shipped at once", "webhook:2:twice"),
    Case(
        "forgets unshipped sales", "card that is not shipped", "unchanged", "authorized the payment, but the"
    ),
    Case("stores the key", "wallet", "unchanged", "the shop's stored data contains a key"),
    Case("writes the key to its log", "wallet", "unchanged", "the shop's log or output contains a key"),
    Case(STALE_RESPONSE, "wallet with a return", "read:1:overtaken", "cancelled the purchase, but kept"),
    Case("trusts the return to the cancel page", "cancelled", "action:1:pays-instead"),
    Case("forgets the previous attempt", "two attempts", "action:1:pays-earlier"),
    Case("keeps a double payment", "two attempts", "action:1:earlier-first"),
    Case(CANCELLED_ATTEMPT, "two attempts", "action:1:cancels-earlier"),
    Case(EXPIRED_ATTEMPT, "late attempt", "action:1:after-earlier"),
    Case(FORGOTTEN_PAYMENT, "failed attempt", "webhook:2:after-payment"),
    Case("treats every order but a cancelled one as paid", "later", "attempt:1:error"),
    Case("treats a payment in progress as paid", "slow screening", "action:1:not-approved"),
    Case("treats a payment in progress as paid", "settlement", "action:2:not-settled"),
    Case("ignores a sale once it is lost", "renewal with a job", "attempt:2:charge-later"),
    Case("renews on every run of the job", "renewal", "job:1:twice"),
    Case("records a renewal after the charge", "renewal", "job:1:together"),
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


@pytest.mark.parametrize(("flow", "mistake"), cases())
def test_a_cell(flow: str, shop: Shop, browser: FlaskClient, payment_sandbox: PaymentSandbox) -> None:
    """A purchase and its next steps succeed."""
    method, *steps = FLOWS[flow]
    for step in steps:
        if step == "slowly":
            shop.extra_fields = SLOW_SCREENING
    if "page" in steps:
        browser.get("/")
    response = browser.post("/buy", data={"count": 1 if method == "stored" else 2, "method": method})
    shop.test_sale = next(sale for sale in shop.sales if sale.number == response.text)
    for step in steps:
        STEPS[step](shop, browser, payment_sandbox)


FLOWS = {
    "wallet": ("wallet", "pay"),
    "wallet from a page": ("wallet", "page", "pay"),
    "wallet with a job": ("wallet", "job", "pay"),
    "refund": ("wallet", "pay", "refund"),
    "partial refund": ("wallet", "pay", "refund a part"),
    "transfer": ("transfer",),
    "card with a job": ("card", "pay", "shipping job", "ship", "day"),
    "card after a wait": ("card", "pay", "wait", "ship"),
    "card": ("card", "pay", "ship"),
    "card that nearly lapses": ("card", "pay", "thirteen days"),
    "card that is not shipped": ("card", "pay", "monthly job"),
    "wallet after a look": ("wallet", "job", "look", "pay"),
    "wallet with a return": ("wallet", "job", "pay", "return"),
    "card shipped at once": ("card", "at once", "pay"),
    "cancelled": ("wallet", "cancel"),
    "two attempts": ("wallet", "retry", "pay"),
    "failed attempt": ("wallet", "fail", "retry", "pay"),
    "late attempt": ("wallet", "wait", "retry", "pay"),
    "later": ("later", "pay"),
    "slow screening": ("later", "slowly", "approve", "pay"),
    "renewal": ("stored", "renew", "pay", "month"),
    "renewal with a job": ("stored", "renew", "pay", "daily job", "month", "day"),
    "settlement": ("stored", "renew", "pay", "thirty days", "settle"),
}
Step = Callable[[Shop, FlaskClient, PaymentSandbox], object]
STEPS: dict[str, Step] = {
    "slowly": lambda shop, browser, sandbox: None,
    "page": lambda shop, browser, sandbox: None,
    "refund": lambda shop, browser, sandbox: browser.post("/refund", data={"amount": "20.00"}),
    "refund a part": lambda shop, browser, sandbox: browser.post("/refund", data={"amount": "5.00"}),
    "pay": lambda shop, browser, sandbox: sandbox.act(shop.test_sale.orders[-1]),
    "look": lambda shop, browser, sandbox: sandbox.act(shop.test_sale.orders[-1], action="visit"),
    "cancel": lambda shop, browser, sandbox: (
        sandbox.act(shop.test_sale.orders[-1], "customer", "cancel"),
        browser.post("/cancelled"),
    ),
    "fail": lambda shop, browser, sandbox: sandbox.act(shop.test_sale.orders[-1], "customer", "fail"),
    "ship": lambda shop, browser, sandbox: browser.post("/ship", data={"count": 2}),
    "retry": lambda shop, browser, sandbox: browser.post("/retry"),
    "at once": lambda shop, browser, sandbox: setattr(shop, "ships_at_once", True),
    "return": lambda shop, browser, sandbox: shop.read_order(shop.test_sale.orders[-1]),
    "wait": lambda shop, browser, sandbox: sandbox.clock.advance("PT20M"),
    "job": lambda shop, browser, sandbox: sandbox.every("PT10M", shop.abandon_unpaid_sales),
    "shipping job": lambda shop, browser, sandbox: sandbox.every("PT1H", shop.retry_shipments),
    "daily job": lambda shop, browser, sandbox: sandbox.every("PT6H", shop.abandon_unpaid_sales),
    "monthly job": lambda shop, browser, sandbox: sandbox.every("PT30H", shop.forget_unshipped_sales),
    "thirteen days": lambda shop, browser, sandbox: sandbox.clock.advance("P13D"),
    "thirty days": lambda shop, browser, sandbox: (
        sandbox.clock.advance("P30D"),
        sandbox.client.wait(idle=True),  # until the shop has handled the webhook of the charge
    ),
    "day": lambda shop, browser, sandbox: sandbox.clock.advance("P1D"),
    "approve": lambda shop, browser, sandbox: sandbox.act(shop.test_sale.orders[-1], "screening", "approve"),
    "renew": lambda shop, browser, sandbox: sandbox.every("P30D", shop.renew),
    "month": lambda shop, browser, sandbox: sandbox.clock.advance("P31D"),
    "settle": lambda shop, browser, sandbox: sandbox.act(shop.sales[-1].orders[0], "processor", "settle"),
}
