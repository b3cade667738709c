"""A shop that serializes its work is right, as long as the next attempt of a webhook works."""

from pathlib import Path

import pytest

from tests.support.suites import suite

SERIALIZED = """
from threading import Lock

from payment_sandbox import BookEntry


@pytest.fixture
def shop(payment_sandbox):
    app, lock = Flask("shop"), Lock()
    app.paid = {}

    def call(method, path, body=None):
        url = payment_sandbox.base_url + path
        answer = payment_sandbox.session.request(method, url, json=body, timeout=3)
        answer.raise_for_status()
        return answer.json()

    @app.post("/buy")
    def buy():
        with lock:
            order_id = call("POST", "/v1/orders/", ORDER)["id"]
            app.paid[order_id] = 0
            return order_id

    @app.post("/cancel/<order_id>")
    def cancel(order_id):
        with lock:
            call("DELETE", f"/v1/orders/{order_id}/")
        return ""

    @app.post("/webhook")
    def webhook():
        if not lock.acquire(HOW):
            return "busy, send it again", 503
        try:
            look(request.json["order_id"])
        finally:
            lock.release()
        return "", 204

    def look(order_id):
        if call("GET", f"/v1/orders/{order_id}/")["status"] == "completed":
            app.paid[order_id] = 1295

    def look_at_open_orders():
        with lock:
            for order_id in [order_id for order_id, paid in app.paid.items() if not paid]:
                look(order_id)

    payment_sandbox.deliver_to(app)
    payment_sandbox.every("PT6H", look_at_open_orders)
    return app


@pytest.fixture
def payment_books(shop):
    return lambda: [BookEntry(order_id, [order_id], 1295, paid) for order_id, paid in shop.paid.items()]


def test_a_change_of_mind(payment_sandbox, shop):
    shop.test_client().post("/cancel/" + shop.test_client().post("/buy").text)
    order_id = shop.test_client().post("/buy").text
    payment_sandbox.act(order_id)
    assert shop.paid[order_id]
"""
WAYS = {"waits": "", "waits a moment": "timeout=0.1", "refuses": "blocking=False"}


def serialized(how: str) -> str:
    """The suite of a shop whose handler takes the lock in one of the ways."""
    return SERIALIZED.replace("HOW", WAYS[how])


@pytest.mark.parametrize("how", WAYS)
def test_an_early_webhook_may_wait_for_the_call(tmp_path: Path, how: str) -> None:
    """The shop holds a lock during its call: its handler waits for it, or wants the webhook again."""
    ran = suite(tmp_path, serialized(how), "--payment-rehearse-only=change:1:early")
    assert ran.returncode == 0, ran.stdout[-3000:]
    assert "rehearsed in 1 variation: no findings" in ran.stdout


@pytest.mark.parametrize("only", ["webhook:1:together", "press:2:together"])
def test_a_busy_shop_may_refuse_a_webhook_once(tmp_path: Path, only: str) -> None:
    """One of two that come at the same moment."""
    ran = suite(tmp_path, serialized("refuses"), f"--payment-rehearse-only={only}")
    assert ran.returncode == 0, ran.stdout[-3000:]


ACQUIRED = "if not lock.acquire(blocking=False):"


def test_an_error_is_no_request_for_another_attempt(tmp_path: Path) -> None:
    """The next attempt works, but the handler failed; the report says why it ran on another thread."""
    tests = serialized("refuses").replace('return "busy, send it again", 503', "raise KeyError(lock)")
    ran = suite(tmp_path, tests, "--payment-rehearse-only=change:1:early")
    assert ran.returncode == 1, ran.stdout[-3000:]
    assert "Your shop answered the webhook with an error (500)" in ran.stdout
    assert "the rehearsal delivered this webhook before the response to the call" in ran.stdout
    assert "over a socket" not in ran.stdout


def test_a_shop_that_is_always_busy_is_wrong(tmp_path: Path) -> None:
    """It never takes a webhook that it has refused."""
    tests = serialized("refuses").replace(
        ACQUIRED,
        "if request.json['order_id'] in refused or not lock.acquire(blocking=False):\n"
        "            refused.add(request.json['order_id'])",
    )
    tests = tests.replace("    app.paid = {}\n", "    app.paid, refused = {}, set()\n")
    ran = suite(tmp_path, tests, "--payment-rehearse-only=change:1:early")
    assert ran.returncode == 1, ran.stdout[-3000:]
    assert "Your shop answered the webhook with an error (503)" in ran.stdout


def test_an_early_webhook_sees_the_connection_of_the_test(tmp_path: Path) -> None:
    """As in a test inside a transaction: what the handler uses works on the test's thread only."""
    tests = SERIALIZED.replace("Lock()", "__import__('sqlite3').connect(':memory:')")
    tests = tests.replace("with lock:", "if lock.execute('SELECT 1'):")
    tests = tests.replace("if not lock.acquire(HOW):", "if not lock.execute('SELECT 1'):")
    tests = tests.replace("            lock.release()", "            pass")
    ran = suite(tmp_path, tests, "--payment-rehearse-only=change:1:early")
    assert ran.returncode == 0, ran.stdout[-3000:]
