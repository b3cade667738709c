"""Many open pages refresh less often."""

from collections.abc import Iterator

import pytest

from payment_sandbox.web.event_stream import BATCH_SECONDS_MAX, EventStream
from tests.support.dashboard import Dashboard
from tests.support.driver import Sandbox


@pytest.fixture
def crowd(sandbox: Sandbox) -> Iterator[Dashboard]:
    """A project with a million watchers."""
    project = sandbox.project_in_process
    project.events.watchers += 1_000_000
    yield Dashboard(sandbox)
    project.events.watchers -= 1_000_000


def test_many_watchers_get_events_in_batches(crowd: Dashboard, sandbox: Sandbox) -> None:
    """With many watchers events come in batches, for pages in larger ones than for programs."""
    project = sandbox.project_in_process
    assert EventStream(project.events, None, 0.005).batch_seconds == BATCH_SECONDS_MAX
    project.events.watchers -= 999_900
    assert EventStream(project.events).batch_seconds < EventStream(project.events, None, 0.005).batch_seconds
    project.events.watchers -= 98
    assert EventStream(project.events).batch_seconds < 0.01
    project.events.watchers += 999_998
    text = crowd.http.get(f"{crowd.base}orders/").text
    assert text.partition('data-refresh="')[2].partition('"')[0] == "10000", "the longest interval"
