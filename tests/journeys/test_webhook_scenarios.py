"""Scenarios answer, drop, duplicate, delay and swap webhooks."""

from datetime import UTC, datetime, timedelta
from threading import Barrier
from typing import Any

import pytest

from tests.support.driver import Sandbox, by
from tests.support.shop import Received, Shop


def set_webhook_effect(sandbox: Sandbox, then: dict[str, Any], **when: Any) -> None:
    """Set a scenario with this effect on webhooks."""
    sandbox.scenario(webhooks=[{"when": when, "then": then}])


@pytest.mark.rule("SCN-06")
def test_a_scenario_can_answer_for_the_shop(watched: Sandbox, shop: Shop) -> None:
    """The first attempt is answered 503 without reaching the shop; the second one reaches it."""
    set_webhook_effect(watched, {"answer": 503}, attempt=1, status="processing")
    watched.place(by("bank-transfer"))
    watched.advance("PT2M")
    statuses = [attempt["response"]["status"] for attempt in watched.webhooks()[0]["attempts"]]
    assert (statuses, len(shop.received)) == ([503, 200], 1)


@pytest.mark.rule("SCN-06")
@pytest.mark.parametrize(("then", "state"), [({"drop": True}, "delivered"), ({"timeout": True}, "pending")])
def test_a_scenario_can_lose_a_webhook(
    watched: Sandbox, shop: Shop, then: dict[str, Any], state: str
) -> None:
    """A dropped webhook counts as delivered, a timed-out one as failed; the shop receives neither."""
    set_webhook_effect(watched, then)
    watched.place(by("bank-transfer"))
    watched.settle()
    assert (watched.webhooks()[0]["state"], shop.received) == (state, [])


@pytest.mark.rule("SCN-06")
def test_a_scenario_can_repeat_a_webhook(watched: Sandbox, shop: Shop) -> None:
    """The shop receives the webhook three times."""
    set_webhook_effect(watched, {"duplicate": 3})
    order = watched.place(by("bank-transfer"))
    watched.settle()
    assert shop.orders() == [order["id"]] * 3


@pytest.mark.rule("SCN-06")
def test_a_scenario_can_delay_a_webhook(watched: Sandbox, shop: Shop) -> None:
    """The webhook is sent once, ten minutes later."""
    set_webhook_effect(watched, {"delay": "PT10M"})
    watched.place(by("bank-transfer"))
    watched.advance("PT9M59S")
    assert shop.received == []
    watched.advance("PT1H")
    assert len(shop.received) == 1
    assert watched.webhooks()[0]["attempts"][0]["at"] == "2026-03-01T12:10:00.000000+00:00"


@pytest.mark.rule("SCN-06")
@pytest.mark.parametrize(
    ("conditions", "minutes"),
    [([{}], [10, 22, 34]), ([{"attempt": 2}, {"attempt": 3}], [0, 12, 24]), ([{"attempt": 2}], [0, 12, 14])],
    ids=["all", "two", "one"],
)
def test_a_delay_applies_to_each_matching_attempt(
    watched: Sandbox, shop: Shop, conditions: list[dict[str, int]], minutes: list[int]
) -> None:
    """Each matching attempt is sent ten minutes after its time, whether it is the first one or a retry."""
    shop.answer = lambda received: 500
    watched.scenario(webhooks=[{"when": when, "then": {"delay": "PT10M"}} for when in conditions])
    watched.place(by("bank-transfer"))
    watched.advance("PT35M")
    attempts = watched.webhooks()[0]["attempts"][:3]
    times = [datetime.fromisoformat(attempt["at"]) for attempt in attempts]
    assert [(at - datetime(2026, 3, 1, 12, tzinfo=UTC)) / timedelta(minutes=1) for at in times] == minutes


@pytest.mark.rule("SCN-06")
@pytest.mark.parametrize("timing", ["after_response", "before_response"])
def test_a_scenario_can_swap_webhooks(watched: Sandbox, shop: Shop, timing: str) -> None:
    """The first webhook is held until the second one is sent, with either timing."""
    watched.settings(webhook_timing=timing)
    set_webhook_effect(watched, {"swap": True}, status="processing")
    first = watched.place(by("bank-transfer"))
    watched.settle()
    assert shop.received == []
    second = watched.place_with_lines("invoice-later-b")
    watched.settle()
    assert shop.orders() == [second["id"], first["id"]]
    assert [webhook["state"] for webhook in watched.webhooks()] == ["delivered", "delivered"]


@pytest.mark.rule("SCN-06")
def test_copies_can_arrive_at_the_same_moment(watched: Sandbox, shop: Shop) -> None:
    """Both copies are in flight at the same time."""
    both = Barrier(2, timeout=4)

    def answer(received: Received) -> int:
        both.wait()
        return 200

    shop.answer = answer
    set_webhook_effect(watched, {"together": 2})
    order = watched.place(by("bank-transfer"))
    watched.settle()
    assert shop.orders() == [order["id"]] * 2
    assert [attempt["response"]["status"] for attempt in watched.webhooks()[0]["attempts"]] == [200, 200]
