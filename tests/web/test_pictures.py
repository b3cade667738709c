"""Pictures are as wide as their place; text in them has one size, and steps say why they went otherwise."""

import re
from datetime import UTC, datetime
from typing import Any

from payment_sandbox.operations.history import TimelineEntry
from payment_sandbox.web.pictures import draw_sequence, svg
from tests.support.dashboard import Dashboard
from tests.support.driver import Sandbox, card
from tests.support.shop import Shop

AT = datetime(2026, 3, 1, 12, tzinfo=UTC)
STEPS = [
    TimelineEntry("request-1", AT, AT, "shop", "service", "request", "creates the order", None, None, "o"),
    TimelineEntry("status-2", AT, AT, "service", "service", "status", "new", "new", "request-1", "o"),
]


def test_a_picture_is_as_wide_as_its_place() -> None:
    """On a page it grows and its text does not; a file has a width of its own."""
    page, file = svg(draw_sequence(STEPS)), svg(draw_sequence(STEPS), is_file=True)
    assert 'width="100%"' in page.partition(">")[0]
    assert "viewBox" not in page
    assert 'width="720"' in file.partition(">")[0]
    assert set(re.findall(r'font-size="(\d+)"', page)) == {"12", "13"}


def test_only_success_looks_like_it() -> None:
    """An order that failed is red; one that was cancelled or has expired is grey."""
    looks = {
        status: draw_sequence([STEPS[1]._replace(label=status, status=status)]).rows[0].look
        for status in ("new", "processing", "completed", "error", "cancelled", "expired")
    }
    assert looks == {
        "new": "quiet",
        "processing": "ok",
        "completed": "ok",
        "error": "failed",
        "cancelled": "quiet",
        "expired": "quiet",
    }


def story(sandbox: Sandbox, order: dict[str, Any]) -> str:
    """The picture of an order as a list."""
    return Dashboard(sandbox).open(f"orders/{order['id']}/").ids["story"]


def test_webhooks_that_come_again_say_so(watched: Sandbox, shop: Shop) -> None:
    """A retry and a copy are no new webhooks."""
    shop.answer = lambda received: 500 if len(shop.received) == 1 else 204
    order = watched.acted(watched.place(card()), "customer visit")
    watched.settle()
    watched.advance("PT2M")
    assert "webhook, attempt 2: processing · retry" in story(watched, order)
    watched.put("/control/faults/", {"webhooks": [{"then": {"duplicate": 2}}]})
    twice = watched.acted(watched.place(card()), "customer visit")
    watched.settle()
    told = story(watched, twice)
    assert told.count("webhook, attempt 1: processing") == 2
    assert told.count("webhook, attempt 1: processing · a copy") == 1


def test_a_step_says_why_it_went_otherwise(watched: Sandbox) -> None:
    """By hand, by a rule of the scenario, by a fault, and by a rule for webhooks."""
    by_hand = watched.acted(watched.place(card()), "customer pay")
    assert "pays · by hand" in story(watched, by_hand)
    watched.scenario({"then": {"customer": "fails", "reason": "Do not honour"}})
    watched.put("/control/faults/", {"webhooks": [{"then": {"answer": 503}}]})
    by_rule = watched.place(card())
    watched.settle()
    told = story(watched, by_rule)
    assert "the payment fails · rule 1 of of-the-test" in told
    assert "webhook, attempt 1: error · 503 (fault)" in told
    watched.put("/control/faults/", {"faults": [{"then": {"status": 503, "phase": "after"}}]})
    watched.call("GET", f"/v1/orders/{by_rule['id']}/")
    assert "503 · sandbox fault: response lost (503 instead)" in story(watched, by_rule)
