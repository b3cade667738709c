"""Permitted calls and failures of webhook handlers in this process."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Any

import pytest

from payment_sandbox.client.client import SandboxClient
from payment_sandbox.testing.project_fixture import PaymentSandbox
from tests.support.in_process import in_time, place, shop_that

HOSTED = {"currency": "EUR", "amount": 5}


def errors(sandbox: PaymentSandbox) -> set[str]:
    """Return the errors of all attempts."""
    return {str(attempt["error"]) for webhook in sandbox.webhooks for attempt in webhook["attempts"]}


@pytest.mark.parametrize("outcome", [pytest.fail, pytest.skip, pytest.exit])
def test_a_handler_may_end_its_test(payment_sandbox: PaymentSandbox, outcome: Callable[[str], Any]) -> None:
    """An outcome of pytest in a handler ends the test, and fails the webhook."""
    payment_sandbox.deliver_to(shop_that(lambda order_id: outcome("no webhook expected")))
    order_id = place(payment_sandbox)
    with pytest.raises(BaseException, match="no webhook expected") as raised:
        payment_sandbox.act(order_id, action="visit")
    assert type(raised.value).__name__ in ("Failed", "Skipped", "Exit")
    assert payment_sandbox.client.order(order_id)["status"] == "processing"
    assert len(payment_sandbox.webhooks[0]["attempts"]) == 1


@pytest.mark.parametrize("timing", ["before_response", "after_response"])
def test_a_handler_may_make_orders_and_refunds(payment_sandbox: PaymentSandbox, timing: str) -> None:
    """A handler may create refunds without a deadlock, and each webhook is delivered once."""
    payment_sandbox.client.change_settings(webhook_timing=timing)
    refunds: list[str] = []

    def refund(order_id: str) -> None:
        order = payment_sandbox.session.get(f"{payment_sandbox.base_url}/v1/orders/{order_id}/").json()
        if order["status"] == "completed" and "is-refund" not in order["flags"] and not refunds:
            url = f"{payment_sandbox.base_url}/v1/orders/{order_id}/refunds/"
            refunds.append(payment_sandbox.session.post(url, json={"amount": 5}).json()["id"])
            payment_sandbox.session.get(f"{payment_sandbox.base_url}/v1/orders/{refunds[0]}/")

    payment_sandbox.deliver_to(shop_that(refund))
    order_id = place(payment_sandbox)
    in_time(lambda: payment_sandbox.act(order_id))
    payment_sandbox.client.wait(idle=True)
    assert len(refunds) == 1
    assert [[a["number"] for a in webhook["attempts"]] for webhook in payment_sandbox.webhooks] == [[1]] * 3
    assert errors(payment_sandbox) == {"None"}


@pytest.mark.parametrize("call", ["advance", "wait", "act"])
def test_a_handler_may_advance_and_wait(payment_sandbox: PaymentSandbox, call: str) -> None:
    """A handler on the test's thread may advance, wait and act without a deadlock."""
    notified_orders: list[str] = []

    def handle(order_id: str) -> None:
        if notified_orders:
            return
        notified_orders.append(order_id)
        if call == "advance":
            payment_sandbox.clock.advance("PT1M")
        elif call == "wait":
            payment_sandbox.wait_for(order_id, "processing", timeout_seconds=60)
        else:
            payment_sandbox.act(place(payment_sandbox))

    payment_sandbox.scenario({"name": "silent", "rules": []})
    payment_sandbox.deliver_to(shop_that(handle))
    order = payment_sandbox.session.post(f"{payment_sandbox.base_url}/v1/orders/", json=HOSTED).json()
    in_time(lambda: payment_sandbox.act(order["id"], action="choose", payment_method="credit-card"))
    in_time(lambda: payment_sandbox.act(order["id"]))
    assert notified_orders
    assert errors(payment_sandbox) == {"None"}
    payment_sandbox.client.wait(idle=True, timeout_seconds=60)


def test_any_exception_of_a_handler_fails_the_delivery(payment_sandbox: PaymentSandbox) -> None:
    """Any raised exception, even one that would end the process, fails the delivery, which is retried."""
    problems: list[type[BaseException]] = [ZeroDivisionError, SystemExit, GeneratorExit]

    def fail(order_id: str) -> None:
        if problems:
            raise problems.pop()

    payment_sandbox.deliver_to(shop_that(fail))
    in_time(lambda: payment_sandbox.act(place(payment_sandbox), action="visit"))
    payment_sandbox.clock.advance("PT20M")
    (webhook,) = payment_sandbox.webhooks
    assert [attempt["error"] is None for attempt in webhook["attempts"]] == [False, False, False, True]


def test_calls_by_the_test_wait_although_other_handlers_run(payment_sandbox: PaymentSandbox) -> None:
    """A call waits for its webhooks, although a handler of another thread still runs; that may wait, too."""
    has_begun, notified = threading.Event(), list[str]()

    def slow(order_id: str) -> None:
        if order_id == orders[0]:
            has_begun.set()
            payment_sandbox.wait_for(orders[1], "processing")
        notified.append(order_id)

    payment_sandbox.deliver_to(shop_that(slow))
    orders = [place(payment_sandbox), place(payment_sandbox)]
    other = threading.Thread(target=payment_sandbox.act, args=(orders[0],), kwargs={"action": "visit"})
    other.start()
    assert has_begun.wait(60)
    payment_sandbox.act(orders[1], action="visit")
    assert notified == orders
    other.join(60)


def test_a_handler_runs_on_the_thread_that_waits(payment_sandbox: PaymentSandbox) -> None:
    """That is the test's, also in an advance; it is another thread if requested, or after a call over a socket."""
    threads: list[threading.Thread] = []
    app = shop_that(lambda order_id: threads.append(threading.current_thread()))

    def used(call: Callable[[], object]) -> set[bool]:
        threads.clear()
        call()
        return {thread is threading.current_thread() for thread in threads}

    payment_sandbox.deliver_to(app)
    order_id = place(payment_sandbox)
    assert used(lambda: payment_sandbox.act(order_id)) == {True}
    place(payment_sandbox)
    assert used(lambda: payment_sandbox.clock.advance("P1D")) == {True}

    def pay_outside() -> None:
        with closing(SandboxClient(payment_sandbox.base_url, payment_sandbox.api_key)) as outside:
            outside.act(place(payment_sandbox), "customer", "pay")
            outside.wait(idle=True)

    assert used(pay_outside) == {False}
    payment_sandbox.deliver_to(app, thread="own")
    assert used(lambda: payment_sandbox.act(place(payment_sandbox))) == {False}
    with pytest.raises(ValueError, match="thread is 'mine', but must be 'waiting' or 'own'"):
        payment_sandbox.deliver_to(app, thread="mine")  # type: ignore[arg-type]


def test_a_handler_may_call_from_another_thread(payment_sandbox: PaymentSandbox) -> None:
    """A handler may call the sandbox from another thread, as thread pools do."""
    seen: list[str] = []
    with ThreadPoolExecutor(1) as pool:

        def read(order_id: str) -> None:
            seen.append(pool.submit(payment_sandbox.client.order, order_id).result()["status"])

        payment_sandbox.deliver_to(shop_that(read))
        in_time(lambda: payment_sandbox.act(place(payment_sandbox)))
    assert seen == ["completed"] * 2
    assert errors(payment_sandbox) == {"None"}
