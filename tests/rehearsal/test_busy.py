"""A shop may serialize its work if the next attempt of a refused webhook succeeds."""

from pathlib import Path

import pytest

from tests.rehearsal.test_rehearsing import BOOKS
from tests.support.suites import suite

WITH_LOCK = """        with lock:
            look(request.json["order_id"])
"""
LOCKS_ONCE = """        if not lock.acquire(HOW):
            return "busy, send it again", 503
        try:
            look(request.json["order_id"])
        finally:
            lock.release()
"""
A_CHANGE_OF_MIND = """
def test_a_change_of_mind(payment_sandbox, shop):
    shop.test_client().post("/cancel/" + shop.test_client().post("/buy").text)
    order_id = shop.test_client().post("/buy").text
    payment_sandbox.act(order_id)
    assert shop.paid[order_id]
"""
LOCK_ARGUMENTS = {"waits": "", "waits a moment": "timeout=0.1", "refuses": "blocking=False"}


def suite_with_lock(manner: str) -> str:
    """Return the suite of a shop whose handler takes the lock in this manner."""
    handler = LOCKS_ONCE.replace("HOW", LOCK_ARGUMENTS[manner])
    return BOOKS.replace(WITH_LOCK, handler) + A_CHANGE_OF_MIND


EARLY = "change:1:early"


@pytest.mark.parametrize(
    ("manner", "only"),
    [
        *((manner, EARLY) for manner in LOCK_ARGUMENTS),
        ("refuses", "webhook:1:together"),
        ("refuses", "press:2:together"),
    ],
)
def test_a_busy_shop_may_wait_or_refuse_a_webhook_once(tmp_path: Path, manner: str, only: str) -> None:
    """The handler may wait for a lock that a call or another webhook holds, or refuse the webhook."""
    result = suite(tmp_path, suite_with_lock(manner), f"--payment-rehearse-only={only}")
    assert result.returncode == 0, result.stdout[-3000:]
    assert "rehearsed in 1 variation: no findings" in result.stdout


ALWAYS_REFUSES = """if request.json['order_id'] in refused or not lock.acquire(blocking=False):
            refused.add(request.json['order_id'])"""


@pytest.mark.parametrize(
    ("right", "wrong", "words"),
    [
        pytest.param(
            'return "busy, send it again", 503',
            "raise KeyError(lock)",
            [
                "Your shop answered the webhook with an error (500)",
                "the rehearsal delivered this webhook before the response to the call",
            ],
            id="an error requests no further attempt",
        ),
        pytest.param(
            "if not lock.acquire(blocking=False):",
            ALWAYS_REFUSES,
            ["Your shop answered the webhook with an error (503)"],
            id="the shop is always busy",
        ),
    ],
)
def test_a_shop_that_never_accepts_is_wrong(tmp_path: Path, right: str, wrong: str, words: list[str]) -> None:
    """A shop that fails, or refuses every attempt, has a finding; the report explains its timing."""
    tests = suite_with_lock("refuses").replace(right, wrong)
    tests = tests.replace("    app.paid, ", "    refused = set()\n    app.paid, ")
    result = suite(tmp_path, tests, f"--payment-rehearse-only={EARLY}")
    assert result.returncode == 1, result.stdout[-3000:]
    assert all(each in result.stdout for each in words), result.stdout[-3000:]
    assert "over a socket" not in result.stdout


def test_an_early_webhook_sees_the_connection_of_the_test(tmp_path: Path) -> None:
    """The handler of an early webhook runs on the test's thread, and can use its connection."""
    shop = BOOKS.replace("Lock()", "__import__('sqlite3').connect(':memory:')")
    shop = shop.replace("with lock:", "if lock.execute('SELECT 1'):")
    result = suite(tmp_path, shop + A_CHANGE_OF_MIND, f"--payment-rehearse-only={EARLY}")
    assert result.returncode == 0, result.stdout[-3000:]
