"""Everything that the sandbox stores for clients is bounded."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from payment_sandbox.delivery.receivers import listener_of
from payment_sandbox.orders.webhooks import Delivery, Reply, WebhookAttempt, WebhookRequest
from payment_sandbox.projects.events import TOO_LONG_REMARK
from payment_sandbox.projects.journal import (
    AgendaEvent,
    LoggedFailure,
    LoggedRequest,
    PerformedAction,
    ReachedStatus,
    RecordedDecision,
)
from payment_sandbox.projects.project import Project
from payment_sandbox.projects.store import ChangeSet
from payment_sandbox.ui.dashboard.notices import NOTICES, Notice, with_notice
from tests.documentation.parts import LIMITS
from tests.support.driver import Sandbox, by, card
from tests.support.projects import made_project, save_answer
from tests.support.shop import Shop

EXCESS = 30
"""The number of entries beyond the limit."""
NOON = datetime(2027, 1, 1, 12, tzinfo=UTC)
Add = Callable[[Project, int], object]
"""Add an entry with a number."""
Count = Callable[[Project], int]
ENTRIES: dict[str, Any] = {
    "Requests in the journal": LoggedRequest("request-1", NOON, "GET", "/", "", 200, b"", b""),
    "Actions of customers, banks and other actors": PerformedAction(
        "action-1", NOON, NOON, "customer", "visit", "page", "order", None, {}
    ),
    "Status changes": ReachedStatus("status-1", "order", None, None, "new", NOON, NOON, None),
    "Past scheduled events": AgendaEvent("event-1", "order", "expiry", "label", NOON, NOON),
    "Failed scheduled events": LoggedFailure("failure-1", "order", "expiry", "label", "error", NOON, NOON),
}


def add_decision(project: Project, number: int) -> None:
    """Add a decision of the scenario about an attempt."""
    decision: Any = object()
    journal = project.epoch.journal
    journal.add([RecordedDecision(journal.next_id("decision"), f"attempt {number}", decision)])


def delivery(number: int) -> Delivery:
    """Return a webhook without attempts."""
    return Delivery(f"delivery {number}", f"order {number}", "http://shop.example/", "completed", NOON)


def note_unmatched(project: Project, number: int) -> None:
    """Note a removed rule."""
    project.epoch.state = project.epoch.state.note_unmatched([f"rule {number}"])


def add_scan_form(project: Project, number: int) -> None:
    """Add a form of the page of a bank QR request."""
    with project.edit() as edit:
        edit.record_scan_form(f"form {number}", "order")
        edit.state = edit.state._replace(swapped=())


STORES: dict[str, tuple[Add, Count]] = {
    "Scenario decisions": (add_decision, lambda project: len(project.epoch.journal.of(RecordedDecision))),
    "Events for watchers": (
        lambda project, _: project.events.publish("idle"),
        lambda project: len(project.events.events_after(0)),
    ),
    "Forms of bank QR pages": (add_scan_form, lambda project: len(project.epoch.scan_forms)),
    "Removed faults and rules that never matched": (
        note_unmatched,
        lambda project: len(project.epoch.state.unmatched),
    ),
    "Answers to requests with an Idempotency-Key": (
        save_answer,
        lambda project: len(project.epoch.store.answers()),
    ),
    "Notices on the dashboard": (
        lambda project, number: with_notice(project, "/dashboard/p/", Notice(f"notice {number}")),
        lambda project: len(project.slots.of(NOTICES)),
    ),
    "Disconnected listeners": (
        lambda project, number: listener_of(project).disconnect(f"listener {number}"),
        lambda project: len(listener_of(project).replaced),
    ),
}


def limit_of(subject: str) -> int:
    """Return the limit of a subject from the table that users read."""
    (maximum,) = [limit.maximum for limit in LIMITS if limit.subject == subject]
    return maximum


@pytest.mark.parametrize("subject", STORES)
def test_stores_are_limited_as_the_table_says(subject: str) -> None:
    """Each store holds exactly as many entries as the table of limits says."""
    (add, count), project = STORES[subject], made_project(NOON)
    for number in range(limit_of(subject) + EXCESS):
        add(project, number)
    assert count(project) == limit_of(subject)


@pytest.mark.parametrize("subject", ENTRIES)
def test_the_journal_is_limited_as_the_table_says(subject: str) -> None:
    """The journal holds so many entries of each kind, and counts the requests that it drops."""
    journal = made_project(NOON).epoch.journal
    journal.add([ENTRIES[subject]] * (limit_of(subject) + EXCESS))
    assert len(journal.of(type(ENTRIES[subject]))) == limit_of(subject)
    assert journal.dropped_count == (EXCESS if subject == "Requests in the journal" else 0)


def test_webhooks_and_their_attempts_are_limited() -> None:
    """Webhooks beyond the limit are dropped and counted; the first and the newest attempts of one stay."""
    store, stored_max = made_project(NOON).epoch.store, 0
    count = limit_of("Webhooks") + EXCESS
    for number in range(count):
        store.commit(ChangeSet(deliveries=(delivery(number),)))
        stored_max = max(stored_max, number + 1 - store.deliveries_dropped)
    assert len(store.deliveries()) + store.deliveries_dropped == count
    assert stored_max == limit_of("Webhooks")
    webhook, request = delivery(1), WebhookRequest("http://shop.example/", {}, b"")
    attempts_max = limit_of("Delivery attempts of a webhook")
    for number in range(attempts_max + EXCESS):
        attempt = WebhookAttempt(number + 1, NOON, NOON, request, Reply(1.0, status=500))
        webhook, _ = webhook.record_attempt(attempt, is_copy=False)
    assert len(webhook.attempts) == attempts_max
    assert (webhook.attempts[0].number, webhook.attempts[-1].number) == (1, attempts_max + EXCESS)


def test_long_values_in_events_are_replaced() -> None:
    """A remark replaces each value of an event that is too long."""
    events, maximum = made_project(NOON).events, limit_of("A value in an event")
    long_text = "x" * (maximum + 1)
    events.publish("settings", name=long_text, aliases={long_text: "credit-card"}, mode="live")
    events.publish("settings", name="x" * maximum)
    first, second = (event.data for event in events.events_after(0))
    assert first == {"name": TOO_LONG_REMARK, "aliases": TOO_LONG_REMARK, "mode": "live"}
    assert second == {"name": "x" * maximum}


def test_long_fields_are_truncated(watched: Sandbox, shop: Shop) -> None:
    """Long fields of the journal and long responses of receivers are truncated."""
    shop.says = b"y" * (limit_of("A receiver's response") + EXCESS)
    watched.place(by("bank-transfer"), description="x" * (limit_of("A body in the journal") + EXCESS))
    long_text = "z" * (limit_of("A path, query or order ID in the journal") + EXCESS)
    header = "h" * (limit_of("A header in the journal") + EXCESS)
    many = {f"X-{number}": header for number in range(10)}
    watched.get(f"/v1/orders/{long_text}/?{long_text}", headers=many)
    watched.settle()
    body, path = watched.get("/control/journal/").json()["items"]
    assert len(body["request"]) == len(body["response"]) == limit_of("A body in the journal")
    length = limit_of("A path, query or order ID in the journal")
    assert (len(path["path"]), len(path["query"]), len(path["order_id"])) == (length, length, length)
    assert len(path["headers"]["request"]["X-0"]) == limit_of("A header in the journal")
    (attempt,) = watched.webhooks()[0]["attempts"]
    assert len(attempt["response"]["body"]) == limit_of("A receiver's response")


def test_the_response_cache_is_limited(sandbox: Sandbox) -> None:
    """The answer cache holds the orders that were shown last, up to its limit."""
    cache, maximum = sandbox.project_in_process.epoch.answer_cache, limit_of("Cached responses")
    cache.update({f"order {number}": ("", b"") for number in range(maximum)})
    assert sandbox.place(card())["id"] in cache
    assert len(cache) == maximum
    assert "order 0" not in cache
