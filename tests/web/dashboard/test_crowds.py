"""Many open pages share a recent rendering; a newly opened page is always fresh."""

from collections.abc import Iterator

import pytest

from payment_sandbox.web.dashboard.frame import LIVE_HEADER, LIVE_PAGES, PAGES_MAX
from payment_sandbox.web.event_stream import BATCH_SECONDS_MAX, EventStream
from tests.support.dashboard import Dashboard
from tests.support.driver import Sandbox

RELOAD_HEADERS = {LIVE_HEADER: "1"}


@pytest.fixture
def crowd(sandbox: Sandbox) -> Iterator[Dashboard]:
    """A project with so many watchers that pages are shared for hours."""
    project = sandbox.server.registry.find(sandbox.key)
    assert project is not None
    project.events.watchers += 1_000_000
    yield Dashboard(sandbox)
    project.events.watchers -= 1_000_000


def count_orders(dashboard: Dashboard, **headers: str) -> int:
    """Return the number of orders that the page shows."""
    answer = dashboard.http.get(f"{dashboard.base}orders/", headers=headers, timeout=5)
    return answer.text.count('data-testid="order-')


def test_automatic_reloads_share_pages(crowd: Dashboard) -> None:
    """Automatic reloads share a rendering; a newly opened page is fresh."""
    crowd.sandbox.place()
    assert count_orders(crowd, **RELOAD_HEADERS) == 1
    crowd.sandbox.place()
    assert count_orders(crowd, **RELOAD_HEADERS) == 1, "shared"
    assert count_orders(crowd) == 2, "opened"
    assert count_orders(crowd, Cookie="sandbox_dashboard=other", **RELOAD_HEADERS) == 2, "another browser"


def test_a_reset_discards_shared_pages(crowd: Dashboard) -> None:
    """A reset discards the shared pages."""
    crowd.sandbox.place()
    assert count_orders(crowd, **RELOAD_HEADERS) == 1
    crowd.sandbox.post("/control/reset/")
    assert count_orders(crowd, **RELOAD_HEADERS) == 0


def test_few_pages_are_shared(crowd: Dashboard) -> None:
    """Only the newest pages of the project are shared."""
    project = crowd.sandbox.server.registry.find(crowd.sandbox.key)
    assert project is not None
    pages = project.epoch.slots.of(LIVE_PAGES)
    for number in range(PAGES_MAX + 5):
        count_orders(crowd, Cookie=f"sandbox_dashboard={number}", **RELOAD_HEADERS)
    assert len(pages) == PAGES_MAX
    assert next(reversed(pages)).endswith(f" {PAGES_MAX + 4}")


def test_few_watchers_get_fresh_pages(sandbox: Sandbox) -> None:
    """With few watchers each page is rendered anew."""
    dashboard = Dashboard(sandbox)
    for count in (1, 2, 3):
        sandbox.place()
        assert count_orders(dashboard, **RELOAD_HEADERS) == count


def test_many_watchers_get_events_in_batches(crowd: Dashboard, sandbox: Sandbox) -> None:
    """With many watchers events come in batches, for pages in larger ones than for programs."""
    project = sandbox.server.registry.find(sandbox.key)
    assert project is not None
    assert EventStream(project.events, None, 0.005).batch_seconds == BATCH_SECONDS_MAX
    project.events.watchers -= 999_900
    assert EventStream(project.events).batch_seconds < EventStream(project.events, None, 0.005).batch_seconds
    project.events.watchers -= 98
    assert EventStream(project.events).batch_seconds < 0.01
    project.events.watchers += 999_998
    text = crowd.http.get(f"{crowd.base}orders/", timeout=5).text
    assert text.partition('data-refresh="')[2].partition('"')[0] == "2000", "the longest interval"
