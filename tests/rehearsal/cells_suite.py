"""A little shop with one mistake at a time, or none; it is copied to a folder of its own and rehearsed there.

Each case is a test with the only variation that shows a mistake. The happy test passes with the mistake, and
the right shop survives the variation.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
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
SLOWLY = {"customer": {"email_address": "needs-time@example.com", "country": "NL"}}
PAID = ("completed", "accepted")
OVER = ("cancelled", "error", "expired")
CANCELLED_TRY = "gives a sale up with a cancelled try"
NEVER_SHIPPED = "takes captured for not captured"
FORGOTTEN_PAYMENT = "gives a paid sale up with a failed try"
GONE = "takes gone for captured"
EXPIRED_TRY = "gives a sale up for good with an expired try"


@dataclass
class Sale:
    """One purchase."""

    number: str
    count: int
    attempt: dict[str, Any]
    orders: list[str] = field(default_factory=list)
    paid_with: str = ""
    lost: bool = False
    shipped: int = 0
    wanted: int = 0
    looks: int = 0
    renewed: int = 0
    token: str = ""
    given_back: dict[str, str] = field(default_factory=dict)  # a refund by its order
    given_back_cents: int = 0


class Shop:
    """The shop; ``mistake`` is the one that it makes."""

    def __init__(self, sandbox: PaymentSandbox, mistake: str) -> None:
        self.sales: list[Sale] = []
        self._sandbox = sandbox
        self._mistake = mistake
        self.mine = Sale("", 0, {})  # of the test's customer
        self.more: dict[str, Any] = {}  # in orders that are paid later

    def makes(self, mistake: str) -> bool:
        """Whether it makes this mistake."""
        return self._mistake == mistake

    def call(self, method: str, path: str, body: Any = None, **headers: str) -> Response:
        """Call the service."""
        url = f"{self._sandbox.base_url}/v1/orders/{path}"
        return self._sandbox.session.request(method, url, json=body, headers=headers, timeout=5)

    # What customers do

    def buy(self, count: int, attempt: dict[str, Any]) -> Sale:
        """A customer checks out."""
        sale = Sale(f"S-{len(self.sales) + 1}", count, attempt)
        self.sales.append(sale)
        self.pay(sale)
        return sale

    def pay(self, sale: Sale) -> None:
        """A new try to pay."""
        body = {
            "currency": "EUR",
            "amount": sale.count * PRICE_CENTS,
            "merchant_order_id": f"{sale.number}-{len(sale.orders)}",
            "transactions": [sale.attempt],
        }
        if sale.attempt is LATER:
            body |= {"order_lines": [line(sale.count)], **self.more}
        answer = self.call("POST", "", body)
        if answer.status_code == 409 and self.makes("takes a refused order for one that is there"):
            sale.paid_with = "an order"
        if answer.status_code == 201:
            if self.makes("forgets the try before"):
                sale.orders.clear()
            sale.orders.append(answer.json()["id"])
            if self.makes("ships before a transfer arrives") and sale.attempt is TRANSFER:
                sale.paid_with = answer.json()["id"]
            if self.makes("takes all but a cancelled order for paid"):
                sale.paid_with = "" if answer.json()["status"] == "cancelled" else answer.json()["id"]

    # What the service tells

    def look(self, order_id: str) -> None:
        """Read an order."""
        sale = next((each for each in self.sales if order_id in each.orders), None)
        if sale is None:
            if any(order_id in each.given_back.values() for each in self.sales):
                self.call("GET", f"{order_id}/")
            return
        if self.makes("takes the newest sale for the one that was paid"):
            sale = self.sales[-1]
        if self.makes("takes the oldest sale of that price for the one that was paid"):
            sale = next(each for each in self.sales if each.count == sale.count)
        status = self.call("GET", f"{order_id}/").json()["status"]
        self.note(sale, order_id, status)

    def note(self, sale: Sale, order_id: str, status: str) -> None:
        """Note the status of an order."""
        if sale.lost and (self.makes("looks away once a sale is lost") or self.makes(EXPIRED_TRY)):
            return
        is_progress = status == "processing" and self.makes("takes a payment in progress for paid")
        if status in PAID or is_progress:
            sale.paid_with, sale.lost = sale.paid_with or order_id, False
            self.give_back_others(sale)
        elif status == "cancelled" and self.makes(CANCELLED_TRY):
            sale.paid_with, sale.lost = "", True
        elif status == "expired" and self.makes(EXPIRED_TRY):
            sale.lost = not sale.paid_with
        elif (status in OVER and sale.paid_with and self.makes(FORGOTTEN_PAYMENT)) or (
            status in OVER and not sale.paid_with and order_id == sale.orders[-1]
        ):
            sale.lost = True

    def give_back_others(self, sale: Sale) -> None:
        """Refund or cancel the other tries of a sale that is paid."""
        others = {each for each in sale.orders if each != sale.paid_with} - {*sale.given_back}
        keeps = self.makes("keeps what is paid twice") or self.makes(CANCELLED_TRY)
        for other in others if not keeps else ():
            status = self.call("GET", f"{other}/").json()["status"]
            if status == "completed":
                refund = self.call("POST", f"{other}/refunds/", {"amount": sale.count * PRICE_CENTS})
                sale.given_back[other] = refund.json()["id"]
                sale.given_back_cents += sale.count * PRICE_CENTS
            elif status not in OVER:
                self.call("DELETE", f"{other}/")

    def give_back(self, sale: Sale, cents: int) -> None:
        """Refund a part of what was paid."""
        if not sale.paid_with:
            return
        refund = self.call("POST", f"{sale.paid_with}/refunds/", {"amount": cents})
        if refund.status_code == 201:
            sale.given_back[sale.paid_with] = refund.json()["id"]
        elif not self.makes("notes a refund that is refused"):
            return
        is_all = self.makes("notes a part of a refund as all of it")
        sale.given_back_cents += sale.count * PRICE_CENTS if is_all else cents

    # What the warehouse does

    def ship(self, sale: Sale, count: int) -> int:
        """Capture and ship; the status of the answer."""
        sale.wanted = sale.shipped + count
        is_bought = sale.paid_with and count <= sale.count - sale.shipped
        if not is_bought and not self.makes("ships what nobody bought"):
            return 409
        (order_id,) = sale.orders
        answer = self.call("GET", f"{order_id}/")
        capture = f"{order_id}/transactions/{answer.json()['transactions'][0]['id']}/captures/amount/"
        body = {"description": "a parcel", "amount": min(count, sale.count) * PRICE_CENTS}
        match = {} if self.makes(GONE) else {"If-Match": answer.headers["ETag"]}
        captured = self.call("POST", capture, body, **match)
        if captured.status_code >= 400:
            sale.lost = self.makes("gives up what is refused")
            if not self.ships_anyway(captured) and not self.is_captured(order_id, sale.shipped + count):
                return 409
        sale.shipped += sale.count if self.makes("ships all for a part") else count
        return 200

    def is_captured(self, order_id: str, count: int) -> bool:
        """Whether enough is captured for so many pieces, after a refusal."""
        if self.makes(NEVER_SHIPPED):
            return False
        order = self.call("GET", f"{order_id}/?fields[]=amount_details").json()
        return bool(order["amount_details"]["captured"] >= count * PRICE_CENTS)

    def ship_wanted(self) -> None:
        """Ship again what could not be shipped."""
        for sale in self.sales:
            if sale.wanted > sale.shipped:
                self.ship(sale, sale.wanted - sale.shipped)

    def ships_anyway(self, refused: Response) -> bool:
        """Whether a mistake lets it ship what could not be captured."""
        return (
            self.makes("ships what is refused")
            or (self.makes(GONE) and refused.status_code == 409)
            or (self.makes("ships an older version") and refused.status_code == 412)
        )

    # Its jobs

    def give_up(self) -> None:
        """Give up what nobody pays, and look at the others."""
        for sale in self.sales:
            if not sale.paid_with:
                sale.looks += 1
                sale.lost = sale.lost or sale.looks > 1
                for order_id in sale.orders:
                    self.look(order_id)

    def renew(self) -> None:
        """Charge each subscriber once."""
        for sale in self.sales:
            if not sale.token and sale.paid_with and sale.attempt is STORED:
                read = self.call("GET", f"{sale.orders[0]}/").json()
                sale.token = read["transactions"][0]["payment_method_details"]["vault_token"]
            if not sale.token or (sale.renewed and not self.makes("renews with every run")):
                continue
            is_late = self.makes("notes a renewal after the charge")
            sale.renewed += not is_late
            details = {"recurring_type": "recurring", "vault_token": sale.token}
            attempt = {"payment_method": "credit-card", "payment_method_details": details}
            body = {"currency": "EUR", "amount": PRICE_CENTS, "transactions": [attempt]}
            answer = self.call("POST", "", body).json()
            sale.renewed = 1
            self.sales.append(Sale(f"{sale.number}-renewed", 1, {}, [answer["id"]], renewed=1))


def line(count: int) -> dict[str, Any]:
    """An order line."""
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

    @app.post("/give_back")
    def give_back() -> str:
        shop.give_back(shop.mine, round(float(request.form["amount"]) * 100))
        return ""

    @app.post("/buy")
    def buy() -> str:
        return shop.buy(int(request.form["count"]), ATTEMPTS[request.form["method"]]).number

    @app.post("/again")
    def again() -> str:
        sale = shop.mine
        shop.pay(sale)
        return sale.number

    @app.post("/ship")
    def ship() -> tuple[str, int]:
        return "", shop.ship(shop.mine, int(request.form["count"]))

    @app.post("/cancelled")
    def cancelled() -> str:
        sale = shop.mine
        sale.lost = sale.lost or shop.makes("believes whoever comes back")
        return sale.number

    @app.post("/webhook")
    def webhook() -> tuple[str, int]:
        shop.look(request.get_json()["order_id"])
        return "", 204

    payment_sandbox.deliver_to(app)
    return app.test_client()


@pytest.fixture
def payment_books(shop: Shop) -> Callable[[], list[BookEntry]]:
    """What the shop believes."""

    def entry(sale: Sale) -> BookEntry:
        cents = sale.count * PRICE_CENTS
        return BookEntry(
            purchase=sale.number,
            orders=sale.orders,
            amount=cents,
            paid=cents if sale.paid_with else 0,
            shipped=sale.shipped * PRICE_CENTS,
            refunded=sale.given_back_cents,
            cancelled=sale.lost,
        )

    return lambda: [entry(sale) for sale in shop.sales]


@pytest.fixture
def payment_shop_restart(shop: Shop) -> Callable[[], None]:
    """Restart the shop; a mistake keeps payments in memory only."""

    def restart() -> None:
        for sale in shop.sales if shop.makes("keeps payments in memory") else ():
            sale.paid_with = ""

    return restart


class Case(NamedTuple):
    """A mistake, and the variation of a test that shows it."""

    mistake: str
    flow: str
    variation: str


CASES = (
    Case("takes a refused order for one that is there", "wallet", "create:1:refused"),
    Case("ships what is refused", "card", "change:1:refused"),
    Case("gives up what is refused", "card", "change:1:captured"),
    Case(GONE, "card", "change:1:voided"),
    Case(GONE, "card", "change:1:expired"),
    Case("ships an older version", "card", "change:1:changed"),
    Case("takes the newest sale for the one that was paid", "wallet", "press:1:another-pays"),
    Case("takes the oldest sale of that price for the one that was paid", "wallet", "press:1:another-unpaid"),
    Case("ships what nobody bought", "card", "press:2:one-more"),
    Case("ships all for a part", "card", "press:2:one-less"),
    Case("ships before a transfer arrives", "wallet from a page", "press:1:another-choice"),
    Case("notes a part of a refund as all of it", "given back", "press:2:cent-less"),
    Case("notes a refund that is refused", "given back", "press:2:cent-more"),
    Case(EXPIRED_TRY, "slow tries", "time:1:day-more"),
    Case("ships what is refused", "card after a wait", "time:1:lapses"),
    Case(NEVER_SHIPPED, "card with a job", "change:1:answer-lost"),
    Case("keeps payments in memory", "card after a wait", "time:1:restarted"),
    Case("looks away once a sale is lost", "wallet with a job", "action:1:last-moment"),
    Case("believes whoever comes back", "cancelled", "action:1:pays-instead"),
    Case("forgets the try before", "tries", "action:1:pays-earlier"),
    Case("keeps what is paid twice", "tries", "action:1:earlier-first"),
    Case(CANCELLED_TRY, "tries", "action:1:cancels-earlier"),
    Case(EXPIRED_TRY, "slow tries", "action:1:after-earlier"),
    Case(FORGOTTEN_PAYMENT, "failed tries", "webhook:2:after-payment"),
    Case("takes all but a cancelled order for paid", "later", "attempt:1:error"),
    Case("takes a payment in progress for paid", "slow screening", "action:1:not-approved"),
    Case("takes a payment in progress for paid", "settlement", "action:2:not-settled"),
    Case("looks away once a sale is lost", "renewal with a job", "attempt:2:charge-later"),
    Case("renews with every run", "renewal", "job:1:twice"),
    Case("notes a renewal after the charge", "renewal", "job:1:together"),
)


def cases() -> list[Any]:
    """The cases, each with its mistake and without."""
    return [
        pytest.param(
            case.flow,
            mistake,
            marks=pytest.mark.payment_rehearse(only=case.variation),
            id=f"{case.variation}-{'wrong' if mistake else 'right'}",
        )
        for case in CASES
        for mistake in (case.mistake, "")
    ]


@pytest.mark.parametrize(("flow", "mistake"), cases())
def test_a_cell(flow: str, shop: Shop, browser: FlaskClient, payment_sandbox: PaymentSandbox) -> None:
    """A customer buys, and what follows goes well."""
    method, *more = BUYS[flow]
    for step in more:
        if step == "slowly":
            shop.more = SLOWLY
    if "page" in more:
        browser.get("/")
    bought = browser.post("/buy", data={"count": 1 if method == "stored" else 2, "method": method})
    shop.mine = next(sale for sale in shop.sales if sale.number == bought.text)
    for step in more:
        STEPS[step](shop, browser, payment_sandbox)


BUYS = {
    "wallet": ("wallet", "pay"),
    "wallet from a page": ("wallet", "page", "pay"),
    "wallet with a job": ("wallet", "job", "pay"),
    "given back": ("wallet", "pay", "give back"),
    "card with a job": ("card", "pay", "shipping job", "ship", "day"),
    "card after a wait": ("card", "pay", "wait", "ship"),
    "card": ("card", "pay", "ship"),
    "cancelled": ("wallet", "cancel"),
    "tries": ("wallet", "again", "pay"),
    "failed tries": ("wallet", "fail", "again", "pay"),
    "slow tries": ("wallet", "wait", "again", "pay"),
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
    "give back": lambda shop, browser, sandbox: browser.post("/give_back", data={"amount": "20.00"}),
    "pay": lambda shop, browser, sandbox: sandbox.act(shop.mine.orders[-1]),
    "cancel": lambda shop, browser, sandbox: (
        sandbox.act(shop.mine.orders[-1], "customer", "cancel"),
        browser.post("/cancelled"),
    ),
    "fail": lambda shop, browser, sandbox: sandbox.act(shop.mine.orders[-1], "customer", "fail"),
    "ship": lambda shop, browser, sandbox: browser.post("/ship", data={"count": 2}),
    "again": lambda shop, browser, sandbox: browser.post("/again"),
    "wait": lambda shop, browser, sandbox: sandbox.clock.advance("PT20M"),
    "job": lambda shop, browser, sandbox: sandbox.every("PT10M", shop.give_up),
    "shipping job": lambda shop, browser, sandbox: sandbox.every("PT1H", shop.ship_wanted),
    "daily job": lambda shop, browser, sandbox: sandbox.every("PT6H", shop.give_up),
    "thirty days": lambda shop, browser, sandbox: sandbox.clock.advance("P30D"),
    "day": lambda shop, browser, sandbox: sandbox.clock.advance("P1D"),
    "approve": lambda shop, browser, sandbox: sandbox.act(shop.mine.orders[-1], "screening", "approve"),
    "renew": lambda shop, browser, sandbox: sandbox.every("P30D", shop.renew),
    "month": lambda shop, browser, sandbox: sandbox.clock.advance("P31D"),
    "settle": lambda shop, browser, sandbox: sandbox.act(shop.sales[-1].orders[0], "processor", "settle"),
}
