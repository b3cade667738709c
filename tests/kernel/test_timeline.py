"""A timeline moves from event to event, and never back."""

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from payment_sandbox.kernel.timeline import Timeline

START = datetime(2026, 3, 1, tzinfo=UTC)


def after_start(minutes: int) -> datetime:
    """Return the time some minutes after the start."""
    return START + timedelta(minutes=minutes)


@given(st.lists(st.integers(-5, 20)), st.integers(-5, 25))
def test_items_are_returned_by_time_and_order_of_scheduling(minutes: list[int], until: int) -> None:
    """Due items are returned by time, ties in the order of scheduling, and the clock moves to each."""
    timeline: Timeline[tuple[int, int]] = Timeline(START)
    for index, minute in enumerate(minutes):
        timeline.schedule(after_start(minute), (minute, index))
    scheduled = [due.item for due in timeline]
    returned = []
    while (due := timeline.head()) is not None and due.at <= after_start(until):
        assert next(timeline.in_order()) == due
        timeline.move_to(due.at)
        timeline.remove([due.sequence])
        returned.append(due.item)
        assert timeline.now == max(START, due.at)
    expected = sorted((minute, index) for index, minute in enumerate(minutes))
    assert scheduled == expected
    assert sorted(due.item for due in timeline.in_order()) == expected[len(returned) :]
    assert returned == [item for item in expected if item[0] <= until]
    assert len(timeline) == len(minutes) - len(returned)
