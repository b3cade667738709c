"""Many open pages share what was rendered a moment ago; whoever opens a page gets a fresh one."""

from collections.abc import Iterator

import pytest

from payment_sandbox.web.dashboard.frame import LIVE_HEADER, LIVE_PAGES, PAGES_MAX
from payment_sandbox.web.event_stream import BATCH_SECONDS_MAX, EventStream
from tests.support.dashboard import Dashboard
from tests.support.driver import Sandbox

RENEWS = {LIVE_HEADER: "1"}


@pytest.fixture
def crowd(sandbox: Sandbox) -> Iterator[Dashboard]:
    """A project with enough watchers for pages to be shared for hours."""
    project = sandbox.server.registry.find(sandbox.key)
    assert project is not None
    project.events.watchers += 1_000_000
    yield Dashboard(sandbox)
    project.events.watchers -= 1_000_000


def rows(dashboard: Dashboard, **headers: str) -> int:
    """How many orders the page shows."""
    answer = dashboard.http.get(f"{dashboard.base}orders/", headers=headers, timeout=5)
    return answer.text.count('data-testid="order-')


def test_pages_that_renew_themselves_share(crowd: Dashboard) -> None:
    """For a part of the time after which each is renewed; a page that is opened is fresh."""
    crowd.sandbox.place()
    assert rows(crowd, **RENEWS) == 1
    crowd.sandbox.place()
    assert rows(crowd, **RENEWS) == 1, "shared"
    assert rows(crowd) == 2, "opened"
    assert rows(crowd, Cookie="sandbox_dashboard=other", **RENEWS) == 2, "of somebody else"


def test_no_page_of_before_a_reset_is_shared(crowd: Dashboard) -> None:
    """However busy the project is."""
    crowd.sandbox.place()
    assert rows(crowd, **RENEWS) == 1
    crowd.sandbox.post("/control/reset/")
    assert rows(crowd, **RENEWS) == 0


def test_few_pages_are_shared(crowd: Dashboard) -> None:
    """The newest ones, and none of them for another project."""
    project = crowd.sandbox.server.registry.find(crowd.sandbox.key)
    assert project is not None
    pages = project.epoch.slots.of(LIVE_PAGES)
    for number in range(PAGES_MAX + 5):
        rows(crowd, Cookie=f"sandbox_dashboard={number}", **RENEWS)
    assert len(pages) == PAGES_MAX
    assert next(reversed(pages)).endswith(f" {PAGES_MAX + 4}")


def test_a_page_or_two_are_always_fresh(sandbox: Sandbox) -> None:
    """Where nobody else looks."""
    dashboard = Dashboard(sandbox)
    for count in (1, 2, 3):
        sandbox.place()
        assert rows(dashboard, **RENEWS) == count


def test_a_crowd_is_renewed_less_often(crowd: Dashboard, sandbox: Sandbox) -> None:
    """And gets events in batches, programs in smaller ones than pages; a few watchers get each at once."""
    project = sandbox.server.registry.find(sandbox.key)
    assert project is not None
    assert EventStream(project.events, None, 0.005).batch_seconds == BATCH_SECONDS_MAX
    project.events.watchers -= 999_900
    assert EventStream(project.events).batch_seconds < EventStream(project.events, None, 0.005).batch_seconds
    project.events.watchers -= 98
    assert EventStream(project.events).batch_seconds < 0.01
    project.events.watchers += 999_998
    text = crowd.http.get(f"{crowd.base}orders/", timeout=5).text
    assert text.partition('data-refresh="')[2].partition('"')[0] == "2000", "nobody waits longer"
