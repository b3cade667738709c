"""The language of a page: its phrases, and its formats for amounts and times."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from functools import cache, lru_cache
from importlib.util import find_spec
from typing import Final, NamedTuple

from payment_sandbox.extensions import dates, numbers
from payment_sandbox.methods.common import Labels
from payment_sandbox.orders.amounts import CURRENCY, Cents
from payment_sandbox.orders.order import DEFAULT_LOCALE, LOCALES, locale_of
from payment_sandbox.packaged import read_packaged

DEFAULT_TAG: Final = DEFAULT_LOCALE
FALLBACK_TAGS: Final = {"nl-BE": "nl"}  # the nl-BE column has only the phrases that differ
LANGUAGE_NAMES: Final = {
    "nl": "Nederlands",
    "de": "Deutsch",
    "nl-BE": "Nederlands (België)",
    "fr-BE": "Français",
    "en-GB": "English",
}
DAY_PHRASES: Final = {0: "today", 1: "tomorrow"}


class Language(NamedTuple):
    """One of the five languages; ``tag`` is the page's ``lang`` attribute."""

    tag: str

    def say(self, key: str, **values: object) -> str:
        """Return a phrase with its placeholders filled in.

        Raises:
            KeyError: there is no such phrase.
        """
        return phrases(self.tag)[key].format_map(values)

    @lru_cache(maxsize=4096)  # noqa: B019 (a language is a value)
    def amount(self, amount_cents: Cents) -> str:
        """Format an amount of money."""
        return numbers.format_currency(Decimal(amount_cents) / 100, CURRENCY, locale=self._locale)

    @lru_cache(maxsize=4096)  # noqa: B019 (a language is a value)
    def moment(self, moment: datetime) -> str:
        """Format a date and time, in UTC."""
        return dates.format_datetime(moment, "long", locale=self._locale)

    @property
    def _locale(self) -> str:
        return self.tag.replace("-", "_")

    def relative_moment(self, moment: datetime, now: datetime) -> str:
        """Format a time relative to now, such as "today 20:13 (in 3 hours)"."""
        days = (moment.date() - now.date()).days
        day = (
            self.say(DAY_PHRASES[days], time=f"{moment:%H:%M}")
            if days in DAY_PHRASES
            else self.short_moment(moment)
        )
        if moment <= now:
            return day
        offset = dates.format_timedelta(moment - now, add_direction=True, locale=self._locale)
        return f"{day} ({offset})"

    @lru_cache(maxsize=4096)  # noqa: B019 (a language is a value)
    def short_moment(self, moment: datetime) -> str:
        """Format a day and time, without the year."""
        day = dates.format_skeleton("MMMd", moment, locale=self._locale)
        return self.say("moment", day=day, time=f"{moment:%H:%M}")

    def label(self, labels: Labels) -> str:
        """Return the label in this language."""
        return str(labels[self.tag])


@cache
def phrases(tag: str) -> Mapping[str, str]:
    """Load the phrases of a language, by key."""
    lines = read_packaged("ui/pages/phrases.tsv").decode().splitlines()
    tags = lines[0].split("\t")
    column, fallback = tags.index(tag), tags.index(FALLBACK_TAGS.get(tag, tag))
    return {row[0]: row[column] or row[fallback] for row in (line.split("\t") for line in lines[1:])}


def choose(requested: str | None, locale: str | None, accepted: Sequence[str]) -> Language:
    """Choose the requested language, the order's ``locale``, or the browser's, in this order (CUS-12).

    ``accepted`` has the browser's languages, best first; a missing variant falls back to the available one,
    for example fr-FR to fr-BE.
    """
    for tag in (requested, locale):
        if tag in LOCALES:
            return Language(str(tag))
    return Language(next(filter(None, map(locale_of, accepted)), DEFAULT_TAG))


def require_babel() -> None:
    """Check that a page with amounts can be shown, before the customer's visit changes an order.

    Raises:
        ModuleNotFoundError: the library is missing.
    """
    if find_spec("babel") is None:
        raise ModuleNotFoundError("no module named 'babel'", name="babel")
