"""A right shop has no findings: each test is a false alarm of an earlier release."""

import os
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from threading import Event, Thread

import pytest

from payment_sandbox.testing.project_fixture import PaymentSandbox
from payment_sandbox.ui.docs.library import read_source
from pytest_payment_sandbox.hanging import RunWatchdog
from pytest_payment_sandbox.rehearsal.leaks import leaks_in_storage
from tests.rehearsal.running import run_suite
from tests.rehearsal.test_rehearsing import A_SALE, BOOKS, rehearse_suite
from tests.support.blocks import blocks
from tests.support.documentation import ROOT
from tests.support.in_process import project_of

ADDS_TO_A_CART = """    app.cart, app.amounts = [], {}

    @app.post("/cart")
    def add():
        app.cart.append(1000)
        return "added"

    @app.post("/buy")"""
BUYS_A_CART = """ORDER | {"amount": sum(app.cart)})["id"]
        app.amounts[order_id] = sum(app.cart)"""
CART = (
    BOOKS.replace('    @app.post("/buy")', ADDS_TO_A_CART)
    .replace('ORDER)["id"]', BUYS_A_CART)
    .replace("app.paid[order_id] = 1295", "app.paid[order_id] = app.amounts[order_id]")
    .replace("1295, paid)", "shop.amounts[order_id], paid, paid)")
    + """
def test_a_cart(payment_sandbox, shop):
    shop.test_client().post("/cart")
    bought(payment_sandbox, shop)
"""
)
LOOKS_OFTEN = (BOOKS + A_SALE).replace("PT1H", "PERIOD").replace("def payment_books", "def no_books")
CATCHES_UP = """
from datetime import timedelta


class Shop:
    def __init__(self, sandbox):
        self.sandbox, self.url = sandbox, f"{sandbox.base_url}/v1/orders/"
        self.order_id = sandbox.session.post(self.url, json=TRANSFER, timeout=60).json()["id"]
        self.next_look = self.now()

    def now(self):
        return self.sandbox.clock.now

    def read(self):
        self.sandbox.session.get(f"{self.url}{self.order_id}/", timeout=60).raise_for_status()

    def run_due_jobs(self):
        while self.next_look <= self.now():
            self.read()
            self.next_look += timedelta(hours=6)


TRANSFER = ORDER | {"transactions": [{"payment_method": "bank-transfer"}]}


def test_a_transfer_takes_a_day(payment_sandbox):
    shop = Shop(payment_sandbox)
    payment_sandbox.clock.advance("PT6H")
    shop.run_due_jobs()
"""


TRANSFER_TOO = """
@pytest.fixture
def shop(payment_sandbox):
    app = Flask("shop")
    app.orders, app.shipped, app.refunded = [], {}, {}

    def call(method, path, body=None):
        url = payment_sandbox.base_url + "/v1/orders/" + path
        answer = payment_sandbox.session.request(method, url, json=body, timeout=60)
        answer.raise_for_status()
        return answer.json()

    @app.post("/buy")
    def buy():
        app.orders.append(call("POST", "", {"currency": "EUR", "amount": 1295})["id"])
        return app.orders[-1]

    @app.post("/webhook")
    def webhook():
        order_id = request.json["order_id"]
        order = call("GET", f"{order_id}/?fields[]=amount_details")
        if order["status"] == "completed":
            app.shipped[order_id] = 1295
            received = order["amount_details"].get("received", 1295)
            surplus = received - 1295 - app.refunded.get(order_id, 0)
            if surplus > 0:
                call("POST", f"{order_id}/refunds/", {"amount": surplus})
                app.refunded[order_id] = app.refunded.get(order_id, 0) + surplus
        return "", 204

    payment_sandbox.deliver_to(app)
    return app


@pytest.fixture
def payment_books(shop):
    from payment_sandbox import BookEntry

    def entries():
        for each in shop.orders:
            shipped = shop.shipped.get(each, 0)
            yield BookEntry(each, [each], 1295, min(shipped, 1295), shipped, refunded=shop.refunded.get(each, 0))

    return lambda: list(entries())


@pytest.mark.payment_settings(mode="live")
def test_a_hosted_sale(payment_sandbox, shop):
    order_id = shop.test_client().post("/buy").text
    payment_sandbox.act(order_id, action="choose", payment_method="credit-card")
    payment_sandbox.act(order_id)
    assert shop.shipped[order_id]
"""
"""A shop whose customer pays on the hosted page; it returns what arrives twice."""


@pytest.mark.parametrize(
    ("tests", "variation"),
    [
        pytest.param(CART, "press:1:twice", id="the cart holds two items"),
        pytest.param(CART, "press:1:again-later", id="the cart changes after the checkout"),
        pytest.param(CART, "press:1:twice+press:2:twice", id="one of two orders for two items is paid"),
        pytest.param(CATCHES_UP, "time:1:day-more", id="a job catches up"),
        pytest.param(
            CATCHES_UP.replace("hours=6", "hours=24"), "time:1:year-more", id="a job catches up after a year"
        ),
        *(
            pytest.param(
                LOOKS_OFTEN.replace("PERIOD", period), "action:1:walks-away", id=f"a job each {period}"
            )
            for period in ("PT1M", "PT15M", "P1D")
        ),
        pytest.param(
            LOOKS_OFTEN.replace("PERIOD", "PT1M").replace(', "error")', ")"),
            "action:1:fails",
            id="a job reads an order that a webhook handler has read",
        ),
        pytest.param(TRANSFER_TOO, "action:2:transfer-too", id="a second payment is returned"),
        pytest.param(TRANSFER_TOO, "webhook:1:twice+action:2:transfer-too", id="once, although told twice"),
    ],
)
def test_a_right_shop_survives_a_variation(tmp_path: Path, tests: str, variation: str) -> None:
    """A right shop has no finding in a variation that looks like a mistake."""
    code, report, output = rehearse_suite(tmp_path, tests, f"--payment-rehearse-only={variation}")
    assert (code, report["findings"]) == (0, []), output[-3000:]


@pytest.mark.parametrize(
    ("tests", "right", "wrong", "variation", "words"),
    [
        pytest.param(
            CART,
            "app.paid[order_id] = app.amounts[order_id]",
            "app.paid[order_id] = sum(app.cart)",
            "press:1:again-later",
            "€20.00 were shipped, but the purchase costs only €10.00",
            id="a shop that looks at its cart, rather than at the paid order",
        ),
        pytest.param(
            CATCHES_UP,
            "self.next_look = self.now()",
            "self.next_look = self.now()\n        for _ in range(9):\n            self.read()",
            "time:1:day-more",
            "read the order at least",
            id="a shop that polls before its job catches up",
        ),
        *(
            pytest.param(TRANSFER_TOO, *change, "action:2:transfer-too", words, id=name)
            for name, words, *change in (
                (
                    "a shop that ignores a second payment",
                    "paid an order of €12.95 twice",
                    "if surplus > 0:",
                    "if False:",
                ),
                (
                    "a shop that ships for a second payment",
                    "€25.90 were shipped, but the purchase costs only €12.95",
                    "= 1295\n            received",
                    "= app.shipped.get(order_id, 0) + 1295\n            received",
                ),
                (
                    "a shop that returns more than the second payment",
                    "the shop recorded refunds of €12.95, but the customer received €13.95",
                    '"amount": surplus}',
                    '"amount": surplus + 100}',
                ),
            )
        ),
    ],
)
def test_a_wrong_shop_that_resembles_it_does_not(
    tmp_path: Path, tests: str, right: str, wrong: str, variation: str, words: str
) -> None:
    """A shop with the mistake that the variation looks for has a finding."""
    changed = tests.replace(right, wrong)
    code, report, output = rehearse_suite(tmp_path, changed, f"--payment-rehearse-only={variation}")
    assert code == 1, output[-3000:]
    assert words in report["findings"][0]["sentence"]


def test_nobody_pays_an_order_whose_creation_lost_its_response(tmp_path: Path) -> None:
    """Nobody has the address of an order whose response was lost: neither this customer nor another one."""
    (block,) = [block for block in blocks(read_source("agents")) if block.language == "python"]
    for only in ("create:1:answer-lost+press:1:another-pays", "create:1:answer-lost"):
        code, report, output = rehearse_suite(tmp_path, f"\n{block.text}", f"--payment-rehearse-only={only}")
        assert (code, report["findings"]) == (0, []), output[-3000:]


def test_bytes_of_a_database_are_no_secret(payment_sandbox: PaymentSandbox, tmp_path: Path) -> None:
    """Only values of a database can be secrets: random bytes of its files can look like a card code."""
    project = project_of(payment_sandbox)
    path = tmp_path / "shop.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("CREATE TABLE sales (number TEXT)")
        connection.commit()
        log = path.with_name("shop.db-wal")
        with log.open("ab") as file:
            file.write(b"\xff cVc\n123 \xff")
        assert leaks_in_storage(project, lambda: [path, log, path.with_name("shop.db-shm")]) == []


def test_a_run_is_not_stopped_in_the_code_of_pytest() -> None:
    """pytest may format a traceback for longer than a run may take; the test itself may not."""
    stopped, over = list[str](), Event()

    def stop(location: str) -> None:
        stopped.append(location)
        over.set()

    formatting, watchdog = Event(), RunWatchdog(0.01, stop, stop)

    def watch() -> None:
        formatting.wait()
        with watchdog:
            over.wait(0.3)

    watching = Thread(target=watch)
    watching.start()
    code = compile("formatting.set(); watching.join()", f"{os.sep}_pytest{os.sep}x.py", "exec")
    exec(code, {"formatting": formatting, "watching": watching})
    assert stopped == []
    with RunWatchdog(0.01, stop, stop):
        assert over.wait(60)
    assert "test_a_run_is_not_stopped_in_the_code_of_pytest" in stopped[0]


@pytest.mark.prove
def test_a_shop_on_the_event_loop_of_a_failed_test_owes_no_answer(tmp_path: Path) -> None:
    """The shop cannot answer webhooks once the test has failed, and with it ended the shop's event loop."""
    shutil.copytree(ROOT / "tests" / "howto" / "projects" / "asyncio", tmp_path, dirs_exist_ok=True)
    result = run_suite(tmp_path, "--payment-rehearse-only=action:1:opens-page", "-k", "same_loop")
    assert (result.code, result.findings) == (0, []), result.text
    assert result.count("variations") == 1
