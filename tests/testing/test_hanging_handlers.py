"""A handler that fails or hangs ends in time, and its report says where it was."""

import logging
import sqlite3
import threading
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from flask import Flask

from payment_sandbox.testing.deadlines import Interrupted, TimeLimit, interrupted_after
from payment_sandbox.testing.project import PaymentSandbox
from tests.support.in_process import place, shop_that

SLEEP_SECONDS = 60


def sleep() -> None:
    """Block, as a shop does that waits for something slow."""
    time.sleep(SLEEP_SECONDS)  # noqa: TID251 (it is interrupted)


def spin() -> None:
    """Keep the processor busy."""
    while True:
        pass


def lock() -> None:
    """Wait for a lock that nobody gives back."""
    held = threading.Lock()
    held.acquire()
    held.acquire()


@pytest.mark.parametrize("hang", [sleep, lock])
def test_a_handler_that_hangs_is_interrupted(payment_sandbox: PaymentSandbox, hang: Any) -> None:
    """On the test's own thread; the timeline shows the line."""
    payment_sandbox.deliver_to(shop_that(lambda order_id: hang()))
    begun = time.perf_counter()
    payment_sandbox.act(place(payment_sandbox), action="visit")
    assert 5 <= time.perf_counter() - begun < 9
    (attempt,) = payment_sandbox.webhooks[0]["attempts"]
    assert attempt["error"] == "no answer within 5 seconds"
    told = payment_sandbox.timeline()
    assert "The handler was here:" in told
    assert f"in {hang.__name__}" in told


def test_a_handler_on_a_thread_of_the_test_is_interrupted(payment_sandbox: PaymentSandbox) -> None:
    """Not only on the main thread; there, code that computes is, and code that blocks ends by itself."""
    payment_sandbox.deliver_to(shop_that(lambda order_id: spin()))
    order_id = place(payment_sandbox)
    caller = threading.Thread(target=payment_sandbox.act, args=(order_id, "customer", "visit"), daemon=True)
    caller.start()
    caller.join(12)
    assert not caller.is_alive()
    assert "in spin" in payment_sandbox.timeline()


def test_a_handler_that_goes_on_is_interrupted_again(payment_sandbox: PaymentSandbox) -> None:
    """One that catches whatever comes."""
    caught: list[str] = []

    def stubborn(order_id: str) -> None:
        try:
            sleep()
        except BaseException as error:
            caught.append(type(error).__name__)
            sleep()

    payment_sandbox.deliver_to(shop_that(stubborn))
    payment_sandbox.act(place(payment_sandbox), action="visit")
    assert caught == [Interrupted.__name__]
    assert {attempt["error"] for attempt in payment_sandbox.webhooks[0]["attempts"]} == {
        "no answer within 5 seconds"
    }


def test_deadlines_inside_each_other() -> None:
    """The outer one ends what the inner one is in."""
    with pytest.raises(TimeLimit), interrupted_after(0.2), interrupted_after(30):
        sleep()
    with pytest.raises(TimeLimit), interrupted_after(30), interrupted_after(0.2):
        sleep()


def test_what_ends_in_time_is_left_alone() -> None:
    """Also afterwards."""
    for _ in range(50):
        with interrupted_after(0.005):
            pass
    threading.Event().wait(0.1)


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
    assert "It ran on the thread worker-7, not on the test's (MainThread)" in told
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
