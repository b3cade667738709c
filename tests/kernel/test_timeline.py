"""A timeline goes from event to event, and never back."""

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from payment_sandbox.kernel.timeline import Timeline

START = datetime(2026, 3, 1, tzinfo=UTC)


def at(minutes: int) -> datetime:
    """Some minutes after the start."""
    return START + timedelta(minutes=minutes)


@given(st.lists(st.integers(-5, 20)), st.integers(-5, 25))
def test_items_come_by_their_time_and_ties_as_put_down(minutes: list[int], until: int) -> None:
    """Exactly those that are due come out; the clock shows the time of each, never an earlier one."""
    timeline: Timeline[tuple[int, int]] = Timeline(START)
    for index, minute in enumerate(minutes):
        timeline.schedule(at(minute), (minute, index))
    shown = [due.item for due in timeline]
    came = []
    while (due := timeline.step(at(until))) is not None:
        came.append(due.item)
        assert timeline.now == max(START, due.at)
    expected = sorted((minute, index) for index, minute in enumerate(minutes))
    assert shown == expected
    assert came == [item for item in expected if item[0] <= until]
    assert len(timeline) == len(minutes) - len(came)


def test_time_never_goes_back() -> None:
    """A moment that has passed changes nothing."""
    timeline: Timeline[str] = Timeline(START)
    timeline.move_to(at(5))
    timeline.move_to(at(3))
    assert timeline.now == at(5)


def test_the_head_can_be_seen_and_dropped() -> None:
    """Neither goes to its time."""
    timeline: Timeline[str] = Timeline(START)
    timeline.schedule(at(1), "first")
    head = timeline.head()
    assert head is not None
    assert head.item == "first"
    timeline.drop_head()
    assert (timeline.head(), timeline.now) == (None, START)
