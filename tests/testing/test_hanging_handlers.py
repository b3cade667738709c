"""A handler that fails or hangs ends in time, and its report says where it was."""

import logging
import sqlite3
import threading
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from flask import Flask

from payment_sandbox.testing.project import PaymentSandbox
from tests.support.in_process import place, shop_that
from tests.support.suites import suite

LONG_SECONDS = 20
NO_ANSWER = "no answer within 5 seconds"


def test_a_handler_that_is_late_counts_as_unanswered(
    payment_sandbox: PaymentSandbox, too_late: threading.Event, caplog: pytest.LogCaptureFixture
) -> None:
    """The test goes on once it returns; the timeline and the log show where it was."""

    def hang(order_id: str) -> None:
        too_late.wait(LONG_SECONDS)

    payment_sandbox.deliver_to(shop_that(hang))
    payment_sandbox.act(place(payment_sandbox), action="visit")
    (attempt,) = payment_sandbox.webhooks[0]["attempts"]
    assert (attempt["error"], attempt["response"]) == (NO_ANSWER, None)
    for told in (payment_sandbox.timeline(), caplog.text):
        assert "Location of the handler:" in told
        assert "in hang" in told
    assert "pytest-timeout" in caplog.text


def test_a_handler_on_its_own_thread_is_given_up(payment_sandbox: PaymentSandbox) -> None:
    """The test goes on while it still runs, and the timeline shows where it is."""
    goes_on = threading.Event()

    def hang(order_id: str) -> None:
        goes_on.wait(LONG_SECONDS)

    payment_sandbox.deliver_to(shop_that(hang), thread="own")
    payment_sandbox.act(place(payment_sandbox), action="visit")
    try:
        (attempt,) = payment_sandbox.webhooks[0]["attempts"]
        assert attempt["error"] == NO_ANSWER
        assert "in hang" in payment_sandbox.timeline()
    finally:
        goes_on.set()


def test_a_late_handler_that_calls_the_sandbox_holds_nothing(
    payment_sandbox: PaymentSandbox, too_late: threading.Event
) -> None:
    """Nothing is raised into its calls, so no lock stays held, and other threads go on."""

    def call(order_id: str) -> None:
        while not too_late.is_set():
            payment_sandbox.client.orders()
            place(payment_sandbox)

    payment_sandbox.deliver_to(shop_that(call))
    order_id = place(payment_sandbox)
    payment_sandbox.act(order_id, action="visit")
    answered: list[Any] = []
    other = threading.Thread(target=lambda: answered.append(payment_sandbox.act(order_id)))
    other.start()
    other.join(LONG_SECONDS)
    assert [order["status"] for order in answered] == ["completed"]


def test_the_time_of_an_inner_handler_is_not_that_of_the_outer_one(
    payment_sandbox: PaymentSandbox, too_late: threading.Event
) -> None:
    """A handler that advances the clock waits for others, and only the one that hangs is late."""
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
    first = {webhook["order_id"]: webhook["attempts"][0] for webhook in reversed(payment_sandbox.webhooks)}
    assert first[inner[0]]["error"] == NO_ANSWER
    answered = first[outer]["response"]
    assert answered is not None
    assert (first[outer]["error"], answered["status"]) == (None, 200)


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
    """By pytest-timeout, as any other test that hangs; the next test has a sandbox that works."""
    ran = suite(tmp_path, HANGING)
    assert "1 failed, 1 passed" in ran.stdout, ran.stdout
    assert "in hang" in ran.stdout
    assert "Timeout (>2.0s)" in ran.stdout


def failing(raised: Exception, *, testing: bool) -> Flask:
    """A shop whose handler raises."""
    app = Flask("shop")
    app.testing = testing

    @app.post("/webhook")
    def webhook() -> str:
        raise raised

    return app


@pytest.mark.parametrize("testing", [True, False])
def test_the_traceback_of_a_handler_is_told(
    payment_sandbox: PaymentSandbox, testing: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """Whether the framework lets it through or answers 500 and logs it."""
    payment_sandbox.deliver_to(failing(RuntimeError("no such table: sale"), testing=testing))
    payment_sandbox.act(place(payment_sandbox), action="visit")
    (attempt,) = payment_sandbox.webhooks[0]["attempts"]
    assert attempt["response"] == (None if testing else attempt["response"])
    traceback = attempt.get("traceback") or ""
    assert "RuntimeError: no such table: sale" in traceback
    assert "in webhook" in traceback
    assert "site-packages" not in traceback, "only the shop's own code is shown"
    assert "RuntimeError: no such table: sale" in payment_sandbox.timeline()
    assert all("_Listener" not in type(handler).__name__ for handler in logging.root.handlers)


def test_a_handler_that_ran_elsewhere_says_so(payment_sandbox: PaymentSandbox) -> None:
    """As when a second thread of the test makes the call."""
    payment_sandbox.deliver_to(failing(RuntimeError("SQLite objects"), testing=True))
    order_id = place(payment_sandbox)
    other = threading.Thread(
        target=payment_sandbox.act, args=(order_id, "customer", "visit"), name="worker-7"
    )
    other.start()
    other.join()
    told = payment_sandbox.timeline()
    assert "The handler ran on the thread worker-7, not on the test's (MainThread)" in told
    assert "Make the call on the test's thread" in told


def test_a_handler_that_answers_after_the_test_changes_nothing(
    payment_sandbox_server: Any,
) -> None:
    """Its project is gone, and the next one hears nothing of it."""
    began, answers, ended = threading.Event(), threading.Event(), threading.Event()

    def late(order_id: str) -> None:
        began.set()
        answers.wait(10)
        ended.set()

    project = payment_sandbox_server.project()
    project.deliver_to(shop_that(late), thread="own")
    order_id = place(project)
    caller = threading.Thread(target=project.act, args=(order_id, "customer", "visit"))
    caller.start()
    assert began.wait(10)
    project.close()
    answers.set()
    caller.join(10)
    assert not caller.is_alive()
    assert ended.wait(10)
    with payment_sandbox_server.project() as following:
        assert following.webhooks == []


def test_a_row_that_the_test_has_locked(payment_sandbox: PaymentSandbox, tmp_path: Path) -> None:
    """The handler's own connection cannot write to it; the report shows the database's words and the line."""
    file = tmp_path / "shop.sqlite"
    with closing(sqlite3.connect(file)) as tests, closing(sqlite3.connect(file, timeout=0.1)) as shops:
        tests.execute("create table sale (id text, status text)")
        tests.commit()

        def handle(order_id: str) -> None:
            shops.execute("update sale set status = 'paid' where id = ?", (order_id,))
            shops.commit()

        payment_sandbox.deliver_to(shop_that(handle))
        order_id = place(payment_sandbox)
        tests.execute("insert into sale values (?, 'open')", (order_id,))  # and no commit
        payment_sandbox.act(order_id, action="visit")
        told = payment_sandbox.timeline()
        assert "sqlite3.OperationalError: database is locked" in told
        assert "in handle" in told
        tests.commit()
        payment_sandbox.clock.advance("PT2M")
        assert tests.execute("select status from sale").fetchone() == ("paid",)
