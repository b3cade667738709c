"""The history of an order marks repeated webhooks and failures, and names the cause of a deviation."""

from typing import Any

import pytest

from tests.support.dashboard import Dashboard
from tests.support.driver import Sandbox, card
from tests.support.shop import Shop


def read_story(sandbox: Sandbox, order: dict[str, Any]) -> str:
    """Return the history on the page of an order."""
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


@pytest.mark.parametrize("outcome", ["fail", "cancel"])
def test_only_a_failed_order_looks_failed(watched: Sandbox, outcome: str) -> None:
    """A failed order is red; a cancelled order is not."""
    order = watched.acted(watched.place(card()), f"customer {outcome}")
    html = Dashboard(watched).open(f"orders/{order['id']}/").answer.text
    steps = html.partition('data-testid="story"')[2].partition("</ol>")[0].split("<li ")
    statuses = [step for step in steps if 'class="pill' in step]
    assert [step.startswith('class="failed"') for step in statuses][-1] == (outcome == "fail")
