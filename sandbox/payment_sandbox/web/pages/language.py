"""The language of a page: its phrases, and its formats for amounts and times."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import cache, lru_cache
from importlib.resources import files
from typing import Final, NamedTuple

from payment_sandbox.orders.amounts import CURRENCY, Cents
from payment_sandbox.orders.customers import LOCALES

DEFAULT: Final = "en-GB"
PHRASES_OF: Final = {"nl-BE": "nl"}  # both use the same phrases
NAMES: Final = {
    "nl": "Nederlands",
    "de": "Deutsch",
    "nl-BE": "Nederlands (België)",
    "fr-BE": "Français",
    "en-GB": "English",
}
EXACT: Final = {tag.lower(): tag for tag in LOCALES}
BY_TONGUE: Final = {"nl": "nl", "de": "de", "fr": "fr-BE", "en": "en-GB"}


class Language(NamedTuple):
    """One of the five languages; ``tag`` is the page's ``lang`` attribute."""

    tag: str

    def say(self, key: str, **values: object) -> str:
        """A phrase with its placeholders filled in.

        Raises:
            KeyError: there is no such phrase.
        """
        return phrases(PHRASES_OF.get(self.tag, self.tag))[key].format_map(values)

    def amount(self, amount_cents: Cents) -> str:
        """A sum of money as this language writes it."""
        return _amount(self.tag, amount_cents)

    def moment(self, moment: datetime) -> str:
        """A date and time as this language writes it, in UTC."""
        return _moment(self.tag, moment)


@cache
def phrases(tag: str) -> Mapping[str, str]:
    """All phrases of a language, by key."""
    lines = (
        files("payment_sandbox.web.pages").joinpath("phrases.tsv").read_text(encoding="utf-8").splitlines()
    )
    column = lines[0].split("\t").index(tag)
    return {row[0]: row[column] for row in (line.split("\t") for line in lines[1:])}


def choose(asked: str | None, customer: Mapping[str, object] | None, accepted: Sequence[str]) -> Language:
    """The language chosen on the page, else the customer's locale, else the browser's language (CUS-12).

    ``accepted`` are the browser's languages, best first; a variant that is not available falls back to the
    one that is, for example fr-FR to fr-BE.
    """
    for tag in (asked, (customer or {}).get("locale")):
        if tag in LOCALES:
            return Language(str(tag))
    for tag in accepted:
        found = EXACT.get(tag.lower()) or BY_TONGUE.get(tag.lower().partition("-")[0])
        if found is not None:
            return Language(found)
    return Language(DEFAULT)


@lru_cache(maxsize=4096)
def _amount(tag: str, amount_cents: Cents) -> str:
    from decimal import Decimal

    from babel.numbers import format_currency  # imported late: faster startup

    return format_currency(Decimal(amount_cents) / 100, CURRENCY, locale=tag.replace("-", "_"))


@lru_cache(maxsize=4096)
def _moment(tag: str, moment: datetime) -> str:
    from babel.dates import format_datetime  # imported late: faster startup

    return format_datetime(moment, "long", locale=tag.replace("-", "_"))
