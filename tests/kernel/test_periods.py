"""Durations keep their spelling and follow the calendar."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from payment_sandbox.kernel.times import LAST_MOMENT, Period, PeriodError, nearest_period

MOMENTS = st.datetimes(min_value=datetime(2000, 1, 1), max_value=datetime(2100, 1, 1), timezones=st.just(UTC))


@pytest.mark.parametrize(
    ("spelling", "start", "end"),
    [
        ("P1M", "2026-01-31T10:00", "2026-02-28T10:00"),
        ("P1M", "2024-01-31T10:00", "2024-02-29T10:00"),
        ("P1Y", "2024-02-29T10:00", "2025-02-28T10:00"),
        ("P1M1D", "2026-01-31T10:00", "2026-03-01T10:00"),
        ("PT36H", "2026-03-28T10:00", "2026-03-29T22:00"),
    ],
)
def test_a_period_ends_where_the_calendar_says(spelling: str, start: str, end: str) -> None:
    """A period ends according to the calendar, with last days of months and leap days."""
    start_time = datetime.fromisoformat(start).replace(tzinfo=UTC)
    assert Period.parse(spelling).after(start_time) == datetime.fromisoformat(end).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("spelling", "rest"),
    [
        ("PT1.5H", timedelta(minutes=90)),
        ("PT0,25S", timedelta(milliseconds=250)),
        ("P0,5D", timedelta(hours=12)),
        ("P1DT0.5M", timedelta(days=1, seconds=30)),
        ("P0.5W", timedelta(days=3.5)),
    ],
)
def test_the_last_number_may_have_a_fraction(spelling: str, rest: timedelta) -> None:
    """The last number may have a fraction, as in ISO 8601, except for months and years."""
    assert Period.parse(spelling).extra == rest


@pytest.mark.parametrize(
    "text",
    [
        *("", "P", "PT", "P1", "1D", "P-1D", "-P1D", "P1DT", "P1H", "PT1D", "P1Y1W1M", "P１D"),
        *("P1.5Y", "P1.5M", "P1.5DT1H", "PT1.5H30M", "P.5D", "P1.D"),
    ],
)
def test_other_texts_are_refused(text: str) -> None:
    """Signs, missing units and a wrong order of units are refused."""
    with pytest.raises(PeriodError):
        Period.parse(text)


@pytest.mark.parametrize(
    ("text", "nearest"),
    [
        *((text, "PT30M") for text in ("30m0s", "30 minutes", "30min", "pt30m", " PT30M", "0:30:00", "1800")),
        *((text, "PT1H30M") for text in ("1h30m", "1 hour and 30 minutes", "01:30", "PT1H 30M", "5400")),
        *((text, "P1D") for text in ("PT1D", "1 day", "P1DT", "86400", "1 day, 0:00:00")),
        *(("1.5h", "PT1.5H"), ("P1H", "PT1H"), ("2w", "P2W"), ("3 months", "P3M"), ("1 year", "P1Y")),
        *(
            (text, None)
            for text in ("", "soon", "P", "0", "-PT30M", "500ms", "P1.5DT1H", "9" * 41, "1m " * 40)
        ),
    ],
)
def test_other_notations_are_understood_for_a_suggestion(text: str, nearest: str | None) -> None:
    """A duration of Go, of Python, in words or in seconds is suggested in ISO 8601, and never a refused text."""
    assert nearest_period(text) == nearest
    if nearest is not None:
        Period.parse(nearest)
        with pytest.raises(PeriodError, match=f"did you mean '{nearest}'"):
            Period.parse(text)


@given(st.integers(0, 10**9 - 1), st.integers(0, 10**9 - 1), st.integers(0, 10**9 - 1), MOMENTS)
def test_any_period_keeps_its_spelling_and_moves_forward(
    years: int, days: int, hours: int, moment: datetime
) -> None:
    """A period keeps its spelling, and ends between its start and the end of the calendar."""
    spelling = f"P{years}Y{days}DT{hours}H"
    period = Period.parse(spelling)
    assert str(period) == spelling
    assert moment <= period.after(moment) <= LAST_MOMENT
    assert period.is_zero == (not years and not days and not hours)
