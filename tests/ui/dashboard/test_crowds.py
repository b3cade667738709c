"""Many open pages refresh less often."""

from payment_sandbox.web.event_stream import BATCH_SECONDS_MAX, EventStream
from tests.support.dashboard import Dashboard
from tests.support.driver import Sandbox


def test_many_watchers_get_events_in_batches(sandbox: Sandbox) -> None:
    """With many watchers events come in batches, for pages in larger ones than for programs."""
    events, dashboard = sandbox.project_in_process.events, Dashboard(sandbox)
    events.watchers = 1_000_000
    assert EventStream(events, None, 0.005).batch_seconds == BATCH_SECONDS_MAX
    text = dashboard.http.get(f"{dashboard.base}orders/").text
    assert text.partition('data-refresh="')[2].partition('"')[0] == "10000", "the longest interval"
    events.watchers = 100
    assert EventStream(events).batch_seconds < EventStream(events, None, 0.005).batch_seconds
    events.watchers = 2
    assert EventStream(events).batch_seconds < 0.01
