"""The receiver of webhooks: sequences of answers, delays, and waits for the nth webhook."""

from datetime import UTC, datetime, timedelta

import pytest
import requests

from payment_sandbox.client.receiver import WebhookReceiver
from payment_sandbox.testing.project_fixture import PaymentSandbox
from tests.support.in_process import place


@pytest.fixture
def receiver(payment_sandbox: PaymentSandbox, webhook_receiver: WebhookReceiver) -> WebhookReceiver:
    """The receiver of a project's webhooks."""
    payment_sandbox.client.change_settings(webhook_url=webhook_receiver.url)
    return webhook_receiver


def test_answers_in_sequence(payment_sandbox: PaymentSandbox, receiver: WebhookReceiver) -> None:
    """Answers are used in sequence, and the last one is repeated until ``clear``."""
    receiver.answer_with(503, 500, 204)
    order_id = place(payment_sandbox)
    payment_sandbox.act(order_id, action="visit")
    payment_sandbox.clock.advance(timedelta(minutes=10))
    statuses = [attempt["response"] for attempt in payment_sandbox.webhooks[0]["attempts"]]
    assert [status and status["status"] for status in statuses] == [503, 500, 204]
    assert receiver.wait_for(order_id, nth=3) is receiver.received[2]
    receiver.clear()
    assert receiver.received == []
    payment_sandbox.act(order_id)
    receiver.wait_for(order_id)
    payment_sandbox.client.wait(idle=True)
    response = payment_sandbox.webhooks[1]["attempts"][0]["response"]
    assert response is not None
    assert response["status"] == 200


def test_a_wait_that_times_out(payment_sandbox: PaymentSandbox, receiver: WebhookReceiver) -> None:
    """A timeout reports the number of received webhooks."""
    order_id = place(payment_sandbox)
    with pytest.raises(TimeoutError, match=f"no webhook for order {order_id} within 0.1 seconds"):
        receiver.wait_for(order_id, 0.1)
    payment_sandbox.act(order_id, action="visit")
    receiver.wait_for(order_id)
    with pytest.raises(TimeoutError, match=f"1 of 2 webhooks for order {order_id} within 0.1 seconds"):
        receiver.wait_for(order_id, timedelta(seconds=0.1), nth=2)


def test_other_bodies_and_arguments_are_refused(webhook_receiver: WebhookReceiver) -> None:
    """The receiver answers 400 to bodies that are no webhooks, and checks statuses and numbers."""
    for body in ("text", '["x"]', "{}", '{"order_id": 5}'):
        assert requests.post(webhook_receiver.url, data=body).status_code == 400
    assert webhook_receiver.received == []
    with pytest.raises(ValueError, match="answer_with takes statuses from 200 to 599"):
        webhook_receiver.answer_with(200, 777)
    with pytest.raises(ValueError, match="nth is 0, but the first webhook is number 1"):
        webhook_receiver.wait_for("x", nth=0)


@pytest.mark.payment_settings(clock=datetime(2029, 12, 30, tzinfo=UTC))
def test_times_and_durations_of_python_are_accepted(payment_sandbox: PaymentSandbox) -> None:
    """Settings, the clock, scenarios and faults take Python's times and durations."""
    payment_sandbox.clock.advance(to=datetime(2030, 1, 1, tzinfo=UTC), timeout_seconds=timedelta(seconds=10))
    rule = {"then": {"customer": "pays", "after": timedelta(days=1, seconds=2, microseconds=500000)}}
    stored = payment_sandbox.scenario({"name": "mine", "rules": [rule]})
    assert stored["rules"][0]["then"]["after"] == "P1DT2.5S"
    payment_sandbox.client.faults(webhooks=[{"then": {"delay": timedelta(hours=1)}}])
    with pytest.raises(ValueError, match="a period cannot be negative: -1 day"):
        payment_sandbox.clock.advance(timedelta(days=-1))
