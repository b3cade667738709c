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
Fill = Callable[[Project, int], int]
"""Add that many entries and return the number that the project holds."""


def fill_journal(project: Project, count: int) -> int:
    """Add requests to the journal."""
    entry = LoggedRequest("request-1", NOON, "GET", "/", "", 200, b"", b"")
    for _ in range(count):
        project.epoch.journal.add([entry])
    assert project.epoch.journal.dropped_count == EXCESS
    return len(list(project.epoch.journal.entries()))


def fill_decisions(project: Project, count: int) -> int:
    """Add the scenario's decisions about attempts."""
    decision: Any = object()
    journal = project.epoch.journal
    for number in range(count):
        journal.add([RecordedDecision(journal.next_id("decision"), f"attempt {number}", decision)])
    return len(journal.of(RecordedDecision))


ENTRIES = {
    "Actions of customers, banks and other actors": PerformedAction(
        "action-1", NOON, NOON, "customer", "visit", "page", "order", None, {}
    ),
    "Status changes": ReachedStatus("status-1", "order", None, None, "new", NOON, NOON, None),
    "Past scheduled events": AgendaEvent("event-1", "order", "expiry", "label", NOON, NOON),
    "Failed scheduled events": LoggedFailure("failure-1", "order", "expiry", "label", "error", NOON, NOON),
}


def fill_with(entry: Any) -> Fill:
    """Return a function that adds equal entries to the journal."""

    def fill(project: Project, count: int) -> int:
        project.epoch.journal.add([entry] * count)
        return len(project.epoch.journal.of(type(entry)))

    return fill


def delivery(number: int) -> Delivery:
    """A webhook without attempts."""
    return Delivery(f"delivery {number}", f"order {number}", "http://shop.example/", "completed", NOON)


def fill_webhooks(project: Project, count: int) -> int:
    """Add webhooks one by one."""
    store, stored_max = project.epoch.store, 0
    for number in range(count):
        store.commit(ChangeSet(deliveries=(delivery(number),)))
        stored_max = max(stored_max, number + 1 - store.deliveries_dropped)
    assert len(store.deliveries()) + store.deliveries_dropped == count
    return stored_max


def fill_attempts(project: Project, count: int) -> int:
    """Add delivery attempts to one webhook."""
    webhook, request = delivery(1), WebhookRequest("http://shop.example/", {}, b"")
    for number in range(count):
        attempt = WebhookAttempt(number + 1, NOON, NOON, request, Reply(1.0, status=500))
        webhook, _ = webhook.record_attempt(attempt, is_copy=False)
    assert (webhook.attempts[0].number, webhook.attempts[-1].number) == (1, count), "first and newest stay"
    return len(webhook.attempts)


def fill_unmatched(project: Project, count: int) -> int:
    """Note removed rules one by one."""
    for number in range(count):
        project.epoch.state = project.epoch.state.note_unmatched([f"rule {number}"])
    return len(project.epoch.state.unmatched)


def fill_events(project: Project, count: int) -> int:
    """Publish events for watchers."""
    before = project.events.number
    for _ in range(count):
        project.events.publish("idle")
    return len(project.events.events_after(before))


def fill_long_event(project: Project, count: int) -> int:
    """Publish an event with values that are too long; a remark replaces each of them."""
    before = project.events.number
    project.events.publish("settings", name="x" * count, aliases={"x" * count: "credit-card"}, mode="live")
    (event,) = project.events.events_after(before)
    assert event.data == {"name": TOO_LONG_REMARK, "aliases": TOO_LONG_REMARK, "mode": "live"}
    project.events.publish("settings", name="x" * (count - EXCESS))
    return max(len(event.data["name"]) for event in project.events.events_after(before))


def fill_scan_forms(project: Project, count: int) -> int:
    """Add forms of the pages of bank QR requests."""
    for number in range(count):
        with project.edit() as edit:
            edit.record_scan_form(f"form {number}", "order")
            edit.state = edit.state._replace(swapped=())
    return len(project.epoch.scan_forms)


def fill_notices(project: Project, count: int) -> int:
    """Add notices on the project's dashboards."""
    for number in range(count):
        with_notice(project, "/dashboard/p/", Notice(f"notice {number}"))
    return len(project.slots.of(NOTICES))


def fill_disconnected_listeners(project: Project, count: int) -> int:
    """Disconnect listeners."""
    for number in range(count):
        listener_of(project).disconnect(f"listener {number}")
    return sum(f"listener {number}" in listener_of(project).replaced for number in range(count))


def fill_answers(project: Project, count: int) -> int:
    """Make changes with keys."""
    for number in range(count):
        save_answer(project, number)
    return len(project.epoch.store.answers())


FILLS: dict[str, Fill] = {
    **{subject: fill_with(entry) for subject, entry in ENTRIES.items()},
    "Requests in the journal": fill_journal,
    "Scenario decisions": fill_decisions,
    "Webhooks": fill_webhooks,
    "Delivery attempts of a webhook": fill_attempts,
    "Events for watchers": fill_events,
    "A value in an event": fill_long_event,
    "Forms of bank QR pages": fill_scan_forms,
    "Removed faults and rules that never matched": fill_unmatched,
    "Answers to requests with an Idempotency-Key": fill_answers,
    "Notices on the dashboard": fill_notices,
    "Disconnected listeners": fill_disconnected_listeners,
}


def limit_of(subject: str) -> int:
    """Return the limit of a subject from the table that users read."""
    (maximum,) = [limit.maximum for limit in LIMITS if limit.subject == subject]
    return maximum


@pytest.mark.parametrize("subject", FILLS)
def test_stores_are_limited_as_the_table_says(subject: str) -> None:
    """Each store holds exactly as many entries as the table of limits says."""
    assert FILLS[subject](made_project(NOON), limit_of(subject) + EXCESS) == limit_of(subject)


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


def test_the_journal_omits_credentials_from_headers(watched: Sandbox) -> None:
    """The journal omits headers with credentials and has the others."""
    watched.get(
        "/v1/orders/x/", headers={"X-Shop": "1", "Cookie": "a=b", "Proxy-Authorization": "Basic eA=="}
    )
    (entry,) = watched.get("/control/journal/").json()["items"]
    headers = entry["headers"]["request"]
    assert headers["X-Shop"] == "1"
    assert not headers.keys() & {"Authorization", "Cookie", "Proxy-Authorization"}


def test_the_response_cache_is_limited(sandbox: Sandbox) -> None:
    """The answer cache holds the orders that were shown last, up to its limit."""
    project = sandbox.project_in_process
    maximum = limit_of("Cached responses")
    for _ in range(maximum + EXCESS):
        sandbox.http.post(
            f"{sandbox.url}/v1/orders/", json={"currency": "EUR", "amount": 1}, auth=(sandbox.key, "")
        )
    assert len(project.epoch.answer_cache) == maximum
    assert sandbox.place(card())["id"] in project.epoch.answer_cache
