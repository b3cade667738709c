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
    while (due := timeline.head()) is not None and due.at <= at(until):
        assert next(timeline.in_order()) == due
        timeline.move_to(due.at)
        timeline.remove([due.sequence])
        came.append(due.item)
        assert timeline.now == max(START, due.at)
    expected = sorted((minute, index) for index, minute in enumerate(minutes))
    assert shown == expected
    assert sorted(due.item for due in timeline.in_order()) == expected[len(came) :]
    assert came == [item for item in expected if item[0] <= until]
    assert len(timeline) == len(minutes) - len(came)


def test_time_never_goes_back() -> None:
    """A moment that has passed changes nothing."""
    timeline: Timeline[str] = Timeline(START)
    timeline.move_to(at(5))
    timeline.move_to(at(3))
    assert timeline.now == at(5)


@given(st.lists(st.integers(0, 9)), st.sets(st.integers(1, 12)))
def test_what_is_removed_is_gone_and_the_rest_keeps_its_order(minutes: list[int], gone: set[int]) -> None:
    """Wherever on the agenda it was; time does not move."""
    timeline: Timeline[int] = Timeline(START)
    for minute in minutes:
        timeline.schedule(at(minute), minute)
    left = [due for due in timeline if due.sequence not in gone]
    timeline.remove(gone)
    assert list(timeline) == list(timeline.in_order()) == left
    assert timeline.now == START
