"""Diagrams fill their container, their text has a fixed size, and steps name the cause of a deviation."""

import re
from datetime import UTC, datetime
from typing import Any

from payment_sandbox.judge.history import TimelineEntry
from payment_sandbox.ui.pictures import draw_sequence, svg
from tests.support.dashboard import Dashboard
from tests.support.driver import Sandbox, card
from tests.support.shop import Shop

AT = datetime(2026, 3, 1, 12, tzinfo=UTC)
STEPS = [
    TimelineEntry("request-1", AT, AT, "shop", "service", "request", "creates the order", None, None, "o"),
    TimelineEntry("status-2", AT, AT, "service", "service", "status", "new", "new", "request-1", "o"),
]


def test_a_picture_is_as_wide_as_its_place() -> None:
    """The diagram fills the width of the page, and its text has a fixed size."""
    page = svg(draw_sequence(STEPS), "Sequence diagram")
    assert 'width="100%"' in page.partition(">")[0]
    assert "viewBox" not in page
    assert set(re.findall(r'font-size="(\d+)"', page)) == {"12", "13"}


def test_only_successful_statuses_look_successful() -> None:
    """A failed order is red; a cancelled or expired order is grey."""
    look_by_status = {
        status: draw_sequence([STEPS[1]._replace(label=status, status=status)]).rows[0].look
        for status in ("new", "processing", "completed", "error", "cancelled", "expired")
    }
    assert look_by_status == {
        "new": "quiet",
        "processing": "ok",
        "completed": "ok",
        "error": "failed",
        "cancelled": "quiet",
        "expired": "quiet",
    }


def read_story(sandbox: Sandbox, order: dict[str, Any]) -> str:
    """Return the diagram of an order as text."""
    return Dashboard(sandbox).open(f"orders/{order['id']}/").ids["story"]


def test_repeated_webhooks_are_marked(watched: Sandbox, shop: Shop) -> None:
    """Retries and duplicates are marked."""
    shop.answer = lambda received: 500 if len(shop.received) == 1 else 204
    order = watched.acted(watched.place(card()), "customer visit")
    watched.settle()
    watched.advance("PT2M")
    assert "webhook, attempt 2: processing · retry" in read_story(watched, order)
    watched.put("/control/faults/", {"webhooks": [{"then": {"duplicate": 2}}]})
    duplicated = watched.acted(watched.place(card()), "customer visit")
    watched.settle()
    steps = read_story(watched, duplicated)
    assert steps.count("webhook, attempt 1: processing") == 2
    assert steps.count("webhook, attempt 1: processing · a copy") == 1
    webhook = watched.webhooks(order_id=duplicated["id"])[0]
    text = Dashboard(watched).open(f"requests/{webhook['id']}/").text
    assert (text.count("Attempt 1, a copy"), text.count("Attempt 1")) == (1, 2)


def test_a_deviating_step_names_its_cause(watched: Sandbox) -> None:
    """A step names its cause: an action by hand, a scenario rule, a fault or a webhook rule."""
    by_hand = watched.acted(watched.place(card()), "customer pay")
    assert "pays · by hand" in read_story(watched, by_hand)
    watched.scenario({"then": {"customer": "fails", "reason": "Do not honour"}})
    watched.put("/control/faults/", {"webhooks": [{"then": {"answer": 503}}]})
    by_rule = watched.place(card())
    watched.settle()
    steps = read_story(watched, by_rule)
    assert "the payment fails · rule 1 of of-the-test" in steps
    assert "webhook, attempt 1: error · 503 (fault)" in steps
    watched.put("/control/faults/", {"faults": [{"then": {"status": 503, "phase": "after"}}]})
    watched.call("GET", f"/v1/orders/{by_rule['id']}/")
    assert "503 · sandbox fault: response lost (503 instead)" in read_story(watched, by_rule)
