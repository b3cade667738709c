"""Failing and hanging handlers end in time, and the timeline shows their location."""

import logging
import sqlite3
import threading
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from payment_sandbox.testing.project_fixture import PaymentSandbox
from tests.support.in_process import place, shop_that
from tests.support.suites import suite

LONG_SECONDS = 20
NO_ANSWER = "no answer within 5 seconds"


def test_a_handler_that_is_late_counts_as_unanswered(
    payment_sandbox: PaymentSandbox, too_late: threading.Event, caplog: pytest.LogCaptureFixture
) -> None:
    """A late handler counts as unanswered; the timeline and the log show its location."""

    def hang(order_id: str) -> None:
        too_late.wait(LONG_SECONDS)

    payment_sandbox.deliver_to(shop_that(hang))
    payment_sandbox.act(place(payment_sandbox), action="visit")
    (attempt,) = payment_sandbox.webhooks[0]["attempts"]
    assert (attempt["error"], attempt["response"]) == (NO_ANSWER, None)
    for report in (payment_sandbox.timeline(), caplog.text):
        assert "Location of the handler:" in report
        assert "in hang" in report
    assert "pytest-timeout" in caplog.text


def test_a_handler_on_its_own_thread_is_abandoned(payment_sandbox: PaymentSandbox) -> None:
    """A hanging handler on a separate thread is abandoned, and the timeline shows its location."""
    may_continue = threading.Event()

    def hang(order_id: str) -> None:
        may_continue.wait(LONG_SECONDS)

    payment_sandbox.deliver_to(shop_that(hang), thread="own")
    payment_sandbox.act(place(payment_sandbox), action="visit")
    try:
        (attempt,) = payment_sandbox.webhooks[0]["attempts"]
        assert attempt["error"] == NO_ANSWER
        assert "in hang" in payment_sandbox.timeline()
    finally:
        may_continue.set()


def test_a_late_handler_that_calls_the_sandbox_holds_no_lock(
    payment_sandbox: PaymentSandbox, too_late: threading.Event
) -> None:
    """A late handler is not interrupted in its calls, so it holds no lock afterwards."""

    def call(order_id: str) -> None:
        while not too_late.is_set():
            payment_sandbox.client.orders()
            place(payment_sandbox)

    payment_sandbox.deliver_to(shop_that(call))
    order_id = place(payment_sandbox)
    payment_sandbox.act(order_id, action="visit")
    orders: list[Any] = []
    other = threading.Thread(target=lambda: orders.append(payment_sandbox.act(order_id)))
    other.start()
    other.join(LONG_SECONDS)
    assert [order["status"] for order in orders] == ["completed"]


def test_the_time_of_an_inner_handler_is_not_that_of_the_outer_one(
    payment_sandbox: PaymentSandbox, too_late: threading.Event
) -> None:
    """The time of an inner handler does not count for the outer one."""
    inner: list[str] = []

    def handle(order_id: str) -> None:
        if inner == [order_id]:
            too_late.wait(LONG_SECONDS)
        elif not inner:
            inner.append(place(payment_sandbox))
            payment_sandbox.clock.advance("PT1H")

    payment_sandbox.deliver_to(shop_that(handle))
    outer = place(payment_sandbox)
    payment_sandbox.act(outer, action="visit")
    attempts = {webhook["order_id"]: webhook["attempts"][0] for webhook in reversed(payment_sandbox.webhooks)}
    assert attempts[inner[0]]["error"] == NO_ANSWER
    response = attempts[outer]["response"]
    assert response is not None
    assert (attempts[outer]["error"], response["status"]) == (None, 200)


HANGING = """
import threading


@pytest.mark.timeout(2, method="signal", func_only=True)
def test_hangs(payment_sandbox):
    app = Flask("shop")

    @app.post("/webhook")
    def hang():
        threading.Event().wait()

    payment_sandbox.deliver_to(app)
    payment_sandbox.act(place(payment_sandbox)["id"])


def test_goes_on(payment_sandbox):
    assert payment_sandbox.act(place(payment_sandbox)["id"])["status"] == "completed"
"""


def test_a_handler_that_never_returns_is_ended_with_its_test(tmp_path: Path) -> None:
    """pytest-timeout ends a hanging handler with its test, and the next test passes."""
    result = suite(tmp_path, HANGING)
    assert "1 failed, 1 passed" in result.stdout, result.stdout
    assert "in hang" in result.stdout
    assert "Timeout (>2.0s)" in result.stdout


def no_such_table(order_id: str) -> None:
    """Fail in the handler."""
    raise RuntimeError("no such table: sale")


@pytest.mark.parametrize("testing", [True, False])
def test_the_traceback_of_a_handler_is_shown(
    payment_sandbox: PaymentSandbox, testing: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """The traceback is shown, whether the framework propagates or logs the exception."""
    shop = shop_that(no_such_table)
    shop.testing = testing
    payment_sandbox.deliver_to(shop)
    payment_sandbox.act(place(payment_sandbox), action="visit")
    (attempt,) = payment_sandbox.webhooks[0]["attempts"]
    assert attempt["response"] == (None if testing else attempt["response"])
    traceback = attempt.get("traceback") or ""
    assert "RuntimeError: no such table: sale" in traceback
    assert "in no_such_table" in traceback
    assert "site-packages" not in traceback, "only the shop's own code is shown"
    assert "RuntimeError: no such table: sale" in payment_sandbox.timeline()
    assert all("_Listener" not in type(handler).__name__ for handler in logging.root.handlers)


def test_a_handler_on_another_thread_is_reported(payment_sandbox: PaymentSandbox) -> None:
    """The timeline reports that a handler ran on another thread than the test."""
    payment_sandbox.deliver_to(shop_that(no_such_table))
    order_id = place(payment_sandbox)
    other = threading.Thread(
        target=payment_sandbox.act, args=(order_id, "customer", "visit"), name="worker-7"
    )
    other.start()
    other.join()
    report = payment_sandbox.timeline()
    assert "The handler ran on the thread worker-7, not on the test's (MainThread)" in report
    assert "Make the call on the test's thread" in report


def test_a_handler_that_answers_after_the_test_changes_nothing(
    payment_sandbox_server: Any,
) -> None:
    """A handler that ends after its project is closed does not affect the next project."""
    has_begun, may_answer, ended = threading.Event(), threading.Event(), threading.Event()

    def late(order_id: str) -> None:
        has_begun.set()
        may_answer.wait(10)
        ended.set()

    project = payment_sandbox_server.project()
    project.deliver_to(shop_that(late), thread="own")
    order_id = place(project)
    caller = threading.Thread(target=project.act, args=(order_id, "customer", "visit"))
    caller.start()
    assert has_begun.wait(60)
    project.close()
    may_answer.set()
    caller.join(60)
    assert not caller.is_alive()
    assert ended.wait(60)
    with payment_sandbox_server.project() as following:
        assert following.webhooks == []


def test_a_row_that_the_test_has_locked(payment_sandbox: PaymentSandbox, tmp_path: Path) -> None:
    """A handler that meets a locked database fails, and the timeline shows the error and its line."""
    file = tmp_path / "shop.sqlite"
    with (
        closing(sqlite3.connect(file)) as test_connection,
        closing(sqlite3.connect(file, timeout=0.1)) as shop_connection,
    ):
        test_connection.execute("create table sale (id text, status text)")
        test_connection.commit()

        def handle(order_id: str) -> None:
            shop_connection.execute("update sale set status = 'paid' where id = ?", (order_id,))
            shop_connection.commit()

        payment_sandbox.deliver_to(shop_that(handle))
        order_id = place(payment_sandbox)
        test_connection.execute("insert into sale values (?, 'open')", (order_id,))  # and no commit
        payment_sandbox.act(order_id, action="visit")
        report = payment_sandbox.timeline()
        assert "sqlite3.OperationalError: database is locked" in report
        assert "in handle" in report
        test_connection.commit()
        payment_sandbox.clock.advance("PT2M")
        assert test_connection.execute("select status from sale").fetchone() == ("paid",)
