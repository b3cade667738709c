"""Periods and timestamps in ISO 8601."""

import re
from calendar import monthrange
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Final, NamedTuple

from payment_sandbox.kernel.patterns import Pattern

LAST_MOMENT: Final = datetime.max.replace(tzinfo=UTC)
DIGITS_MAX: Final = 9  # per number: more than any period that fits the calendar

_whole = rf"(?:(\d{{1,{DIGITS_MAX}}})%s)?"
_number = rf"(?:(\d{{1,{DIGITS_MAX}}}(?:[.,]\d{{1,6}})?)%s)?"
_DURATION_PATTERN: Final = Pattern(
    "P"
    + "".join(_whole % unit for unit in "YM")
    + "".join(_number % unit for unit in "WD")
    + "(?:T"
    + "".join(_number % unit for unit in "HMS")
    + ")?",
    re.ASCII,
)
_FRACTION: Final = Pattern(rf"[.,]\d{{1,{DIGITS_MAX}}}[A-Z].")  # a fraction before another number


def _match(spelling: str) -> "re.Match[str] | None":
    """Match a duration with at least one number; only its last number may have a fraction."""
    is_incomplete = spelling.endswith(("P", "T")) or _FRACTION.search(spelling)
    return None if is_incomplete else _DURATION_PATTERN.fullmatch(spelling)


class PeriodError(ValueError):
    """The text is not an ISO 8601 duration; ``nearest`` is the one that another notation means, if any."""

    def __init__(self, message: str, nearest: str | None = None) -> None:
        super().__init__(message)
        self.nearest = nearest


class Period(NamedTuple):
    """A duration: its original notation, calendar months, and an additional fixed length."""

    spelling: str
    months: int
    extra: timedelta

    @staticmethod
    @lru_cache(maxsize=1024)  # merchants use few different periods
    def parse(spelling: str) -> "Period":
        """Parse a duration such as ``PT30M``, ``P1M`` or ``P2W``.

        Raises:
            PeriodError: the text is not a duration, or is negative.
        """
        match = _match(spelling)
        if match is None:
            nearest = nearest_period(spelling)
            meant = f"; did you mean {nearest!r}?" if nearest else ""
            raise PeriodError(
                f"{spelling[:40]!r} is not an ISO 8601 duration such as PT30M or P7D{meant}", nearest
            )
        years, months = (int(part or 0) for part in match.groups()[:2])
        weeks, days, hours, minutes, seconds = (
            float((part or "0").replace(",", ".")) for part in match.groups()[2:]
        )
        try:
            extra = timedelta(days=days, weeks=weeks, hours=hours, minutes=minutes, seconds=seconds)
        except OverflowError:
            extra = timedelta.max
        return Period(spelling, years * 12 + months, extra)

    @classmethod
    def of(cls, period: "Period | str | timedelta") -> "Period":
        """Convert a text such as ``PT10M``, or a ``timedelta``, to a period.

        Raises:
            PeriodError: the text is not a duration, or is negative.
            ValueError: the ``timedelta`` is negative.
        """
        if isinstance(period, cls):
            return period
        return cls.parse(format_duration(period) if isinstance(period, timedelta) else str(period))

    @property
    def is_zero(self) -> bool:
        """Whether the length is zero."""
        return not self.months and not self.extra

    def after(self, moment: datetime) -> datetime:
        """Return the moment one period after ``moment``; a month after the 31st is the next month's last day.

        A result beyond the year 9999 becomes the last moment of that year.
        """
        try:
            return add_months(moment, self.months) + self.extra if self.months else moment + self.extra
        except OverflowError:
            return LAST_MOMENT

    def __str__(self) -> str:
        return self.spelling


_UNITS: Final = (
    *(("years?|y", "Y"), ("months?|mo", "M"), ("weeks?|w", "W"), ("days?|d", "D")),
    *(("hours?|hrs?|h", "H"), ("minutes?|mins?|m", "M"), ("seconds?|secs?|s", "S")),
)
_digits = rf"\d{{1,{DIGITS_MAX}}}"
_amount = rf"({_digits}(?:[.,]{_digits})?)"
_SPELLED_OUT: Final = Pattern(
    r"\+?(?:p?t?)" + "".join(rf"(?:{_amount} ?(?:{words})(?: and |,? ?t?))?" for words, _ in _UNITS),
    re.ASCII,
)
_CLOCK: Final = Pattern(rf"({_digits}):(\d\d)(?::(\d\d))?", re.ASCII)
_SUGGESTED_FROM_MAX: Final = 40  # characters


def nearest_period(text: str) -> str | None:
    """Return the duration that another notation means, such as ``30m0s``, ``30 minutes`` or ``1800``."""
    words = text.strip().lower()
    if len(words) > _SUGGESTED_FROM_MAX:
        return None
    match = _SPELLED_OUT.fullmatch(_with_units(words))
    if match is None or _match(words.upper()):
        return words.upper() if _match(words.upper()) else None
    parts = [
        f"{number.lstrip('0') if number.isdigit() else number}{unit}" if number.strip("0.,") else ""
        for number, (_, unit) in zip(match.groups(""), _UNITS, strict=True)
    ]
    date, time = "".join(parts[:4]), "".join(parts[4:])
    period = f"P{date}T{time}" if time else f"P{date}"
    return period if _match(period) else None


def _with_units(words: str) -> str:
    """Add units to hours:minutes:seconds and to a number of seconds."""
    if words.isascii() and words.isdigit():
        minutes, seconds = divmod(int(words), 60)
        return f"{minutes // 1440}d{minutes // 60 % 24}h{minutes % 60}m{seconds}s"
    return _CLOCK.sub(lambda match: f"{match[1]}h{match[2]}m{match[3] or 0}s", words)


def format_duration(duration: timedelta) -> str:
    """Format a duration in ISO 8601, such as P2DT1H.

    Raises:
        ValueError: the duration is negative.
    """
    if duration < timedelta():
        raise ValueError(f"a period cannot be negative: {duration}")
    minutes, seconds = divmod(duration.seconds, 60)
    fraction = f".{duration.microseconds:06}".rstrip("0") if duration.microseconds else ""
    times = {"H": minutes // 60, "M": minutes % 60, "S": f"{seconds}{fraction}" if fraction else seconds}
    time = "".join(f"{count}{unit}" for unit, count in times.items() if count)
    date = f"{duration.days}D" if duration.days else ""
    return f"P{date}T{time}" if time else f"P{date or 'T0S'}"


PERIOD_UNITS: Final = ((86_400, "d", "day"), (3_600, "h", "hour"), (60, "min", "minute"), (1, "s", "second"))


def _in_units(period: timedelta) -> list[tuple[int, str, str]]:
    seconds, parts = max(0, int(period.total_seconds())), []
    for size, symbol, unit in PERIOD_UNITS:
        number, seconds = divmod(seconds, size)
        parts += [(number, symbol, unit)] if number else []
    return parts or [(0, *PERIOD_UNITS[-1][1:])]


def describe_period(period: timedelta) -> str:
    """Format a period in its two largest units, such as 6 d 23 h."""
    return " ".join(f"{number} {symbol}" for number, symbol, _ in _in_units(period)[:2])


def longest_unit(period: timedelta) -> str:
    """Format a period in its largest unit, such as 3 days."""
    number, _, unit = _in_units(period)[0]
    return f"{number} {unit}{'' if number == 1 else 's'}"


def add_months(moment: datetime, months: int) -> datetime:
    """Add calendar months.

    Raises:
        OverflowError: the year would be after 9999.
    """
    month_index = moment.month - 1 + months
    year, month = moment.year + month_index // 12, month_index % 12 + 1
    if year > LAST_MOMENT.year:
        raise OverflowError(f"the year {year} is after the calendar's end")
    return moment.replace(year=year, month=month, day=min(moment.day, monthrange(year, month)[1]))


@lru_cache(maxsize=256)  # a response repeats the same few moments
def timestamp(moment: datetime) -> str:
    """Format a moment in ISO 8601, with microseconds and +00:00 (SET-19)."""
    return moment.isoformat(timespec="microseconds")
