"""A mistake stays when the shop, or a test for it, reads the order much later."""

from collections.abc import Callable

import pytest

from payment_sandbox.judge.history import beliefs, history
from payment_sandbox.projects.journal import ENTRIES_MAX, ReachedStatus
from payment_sandbox.scenarios.risks import DEBT
from payment_sandbox.testing.project_fixture import PaymentSandbox
from tests.support.in_process import place, project_of, shop_that

Story = Callable[[PaymentSandbox], str]
DROPPED = [{"then": {"drop": True}}]


def place_and_pay(sandbox: PaymentSandbox, **fields: object) -> str:
    """Create an order through the shop, and let the customer pay it."""
    attempt = {"payment_method": "wallet-web"}
    body = {"currency": "EUR", "amount": 2450, "transactions": [attempt], **fields}
    order_id = str(sandbox.session.post(f"{sandbox.base_url}/v1/orders/", json=body).json()["id"])
    sandbox.act(order_id)
    return order_id


def lose_webhooks(sandbox: PaymentSandbox) -> None:
    """Lose all webhooks to the shop's address."""
    sandbox.deliver_to(shop_that(lambda order_id: None))
    sandbox.client.faults(webhooks=DROPPED)


def trusts_a_webhook(sandbox: PaymentSandbox) -> str:
    """Answer a webhook, and read nothing."""
    sandbox.deliver_to(shop_that(lambda order_id: None))
    return place_and_pay(sandbox)


def trusts_a_return(sandbox: PaymentSandbox) -> str:
    """Take the customer's return for a payment."""
    lose_webhooks(sandbox)
    app = shop_that(lambda order_id: None)
    order_id = place_and_pay(sandbox, return_url="http://testserver/thanks")
    sandbox.browser(app).returns(order_id)
    return order_id


def misses_a_payment(sandbox: PaymentSandbox) -> str:
    """Lose the webhook about a payment, and read nothing for a day."""
    lose_webhooks(sandbox)
    order_id = place_and_pay(sandbox)
    sandbox.clock.advance("P1D")
    return order_id


def keeps_the_money(sandbox: PaymentSandbox) -> str:
    """Ignore the refusal to cancel a paid order."""
    lose_webhooks(sandbox)
    order_id = place_and_pay(sandbox)
    sandbox.session.delete(f"{sandbox.base_url}/v1/orders/{order_id}/")
    return order_id


STORIES: dict[Story, str] = {
    trusts_a_webhook: "HOOK-08",
    trusts_a_return: "FLOW-15",
    misses_a_payment: "HOOK-12",
    keeps_the_money: "SET-50",
}


def read_by_the_shop(sandbox: PaymentSandbox, order_id: str) -> None:
    """Read an order as the shop."""
    sandbox.session.get(f"{sandbox.base_url}/v1/orders/{order_id}/")


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.__name__)
def test_a_late_read_leaves_the_finding(payment_sandbox: PaymentSandbox, story: Story) -> None:
    """The finding is the same three days later, and after a read; it names the delay of the read."""
    order_id = story(payment_sandbox)
    rules = [each.rule for each in payment_sandbox.review() if each.is_open]
    assert STORIES[story] in rules
    payment_sandbox.clock.advance("P3D")
    read_by_the_shop(payment_sandbox, order_id)
    after = {each.rule: each for each in payment_sandbox.review() if each.is_open}
    assert set(rules) <= set(after)
    if story is not keeps_the_money:
        days = 4 if story is misses_a_payment else 3
        assert f"did not read the order (read {days} days later)" in after[STORIES[story]].problem


@pytest.mark.parametrize(("period", "words"), [("PT10M", ""), ("PT10M1S", "10 minutes"), ("PT90M", "1 hour")])
def test_a_read_within_ten_minutes_is_in_time(
    payment_sandbox: PaymentSandbox, period: str, words: str
) -> None:
    """A job may read the order after its webhook, in sandbox time."""
    order_id = trusts_a_webhook(payment_sandbox)
    payment_sandbox.clock.advance(period)
    read_by_the_shop(payment_sandbox, order_id)
    problems = [each.problem for each in payment_sandbox.review()]
    late = f"Your shop answered a webhook, but did not read the order (read {words} later)"
    assert problems == ([late] if words else [])


def sends_too_much(sandbox: PaymentSandbox) -> str:
    """Transfer five euros too much."""
    order_id = create(sandbox)
    sandbox.act(order_id, "customer", "choose", payment_method="bank-transfer")
    sandbox.act(order_id, "bank", "credit", amount=2950)
    return order_id


def pays_twice(sandbox: PaymentSandbox) -> str:
    """Pay by card, and transfer the amount, too."""
    order_id = create(sandbox)
    for method in ("bank-transfer", "credit-card"):
        sandbox.act(order_id, "customer", "choose", payment_method=method)
    sandbox.act(order_id)
    sandbox.act(order_id, "bank", "credit")
    return order_id


def create(sandbox: PaymentSandbox) -> str:
    """Create an order without a method, which can take transfers, in a shop that reads it for each webhook."""
    sandbox.client.change_settings(mode="live")
    sandbox.deliver_to(shop_that(lambda order_id: read_by_the_shop(sandbox, order_id)))
    body = {"currency": "EUR", "amount": 2450}
    return str(sandbox.session.post(f"{sandbox.base_url}/v1/orders/", json=body).json()["id"])


OWED: dict[Story, tuple[str, int]] = {
    sends_too_much: ("HOOK-13", 500),
    pays_twice: ("A45", 2450),
    keeps_the_money: ("SET-50", 2450),
}


@pytest.mark.parametrize("story", OWED, ids=lambda story: story.__name__)
@pytest.mark.parametrize("cents", [100, None])
def test_a_late_refund_leaves_the_finding(
    payment_sandbox: PaymentSandbox, story: Story, cents: int | None
) -> None:
    """Money that goes back three days later was kept for three days; what has not gone back is owed."""
    order_id, (rule, owed) = story(payment_sandbox), OWED[story]
    payment_sandbox.clock.advance("P3D")
    refunds = f"{payment_sandbox.base_url}/v1/orders/{order_id}/refunds/"
    assert payment_sandbox.session.post(refunds, json={"amount": cents or owed}).status_code == 201
    (finding,) = (each for each in payment_sandbox.review() if each.rule == rule)
    returned = "returned €1.00 3 days later" if cents else "returned 3 days later"
    assert finding.problem.endswith(f"€{owed / 100:.2f} ({returned})")
    assert finding.is_open
    assert finding.amount == (owed - cents if cents else 0)
    assert finding.consequence == (DEBT if cents else "a customer waited for money")


@pytest.mark.parametrize("story", [sends_too_much, pays_twice])
def test_a_refund_within_a_day_is_in_time(payment_sandbox: PaymentSandbox, story: Story) -> None:
    """A shop that compares what it received with its orders once a day makes no mistake."""
    order_id = story(payment_sandbox)
    payment_sandbox.clock.advance("P1D")
    refunds = f"{payment_sandbox.base_url}/v1/orders/{order_id}/refunds/"
    payment_sandbox.session.post(refunds, json={"amount": OWED[story][1]})
    payment_sandbox.clock.advance("P3D")
    assert not [each.rule for each in payment_sandbox.review() if each.is_open]


@pytest.mark.parametrize(("pause", "rules"), [("", {"HOOK-10"}), ("P1D", set())])
def test_calls_on_two_days_do_not_follow_two_webhooks_alone(
    payment_sandbox: PaymentSandbox, pause: str, rules: set[str]
) -> None:
    """Two equal captures right after two webhooks are made for them; those of another day are parcels."""
    orders = f"{payment_sandbox.base_url}/v1/orders/"
    payment_sandbox.deliver_to(
        shop_that(lambda order_id: payment_sandbox.session.get(f"{orders}{order_id}/") and None)
    )
    attempt = {"payment_method": "credit-card", "capture_mode": "manual", "expiration_period": "P7D"}
    order_id = place_and_pay(payment_sandbox, transactions=[attempt])
    attempt_id = payment_sandbox.client.order(order_id)["transactions"][0]["id"]
    path = f"{orders}{order_id}/transactions/{attempt_id}/captures/amount/"
    for _ in range(2):
        payment_sandbox.client.redeliver(payment_sandbox.client.webhooks(order_id)[-1]["id"])
        if pause:
            payment_sandbox.clock.advance(pause)
        payment_sandbox.session.post(path, json={"amount": 1000})
    assert {each.rule for each in payment_sandbox.review() if each.rule == "HOOK-10"} == rules


def test_statuses_that_were_dropped_make_no_order_new(payment_sandbox: PaymentSandbox) -> None:
    """A paid order stays paid after ten thousand other status changes."""
    order_id = place(payment_sandbox)
    payment_sandbox.act(order_id)
    read_by_the_shop(payment_sandbox, order_id)
    project = project_of(payment_sandbox)
    journal, now = project.epoch.journal, project.now()
    journal.add(
        [
            ReachedStatus(journal.next_id("status"), "another", None, None, "new", now, now, None)
            for _ in range(ENTRIES_MAX)
        ]
    )
    known = beliefs(history(project.epoch, order_id), project.find_order(order_id))
    assert known[-1].shop == known[-1].service
    assert {belief.service for belief in known} == {"completed"}
