"""Pages are available in five languages, with localized amounts and complete phrases."""

import re
from datetime import UTC, datetime, timedelta

import pytest

from payment_sandbox.orders.order import LOCALES
from payment_sandbox.ui.pages.language import DEFAULT_TAG, Language, phrases
from tests.support.driver import Sandbox, by
from tests.support.payer import Payer, payment_page


@pytest.mark.rule("CUS-12")
@pytest.mark.parametrize("locale", LOCALES)
def test_the_customer_s_locale_chooses_the_language(live: Sandbox, locale: str) -> None:
    """The customer's locale takes precedence over the browser's; a language chosen on the page persists."""
    payer = Payer(live, language="de-DE,de;q=0.9")
    order, other = (
        live.place(by("wallet-web"), customer={"locale": locale}, amount=123456) for _ in range(2)
    )
    page = payer.open(payment_page(order))
    assert page.language == locale
    assert Language(locale).say("wallet_title") in page.text
    assert page.ids["amount"] == Language(locale).amount(123456)
    switched = payer.open(f"{payment_page(order)}?language=fr-BE")
    assert switched.language == "fr-BE"
    assert payer.open(payment_page(order)).language == "fr-BE"
    assert payer.open(payment_page(other)).language == locale, "the choice is for one order"


@pytest.mark.parametrize(
    ("accepts", "language"),
    [
        ("nl-NL,nl;q=0.9", "nl"),
        ("nl-BE,nl;q=0.9", "nl-BE"),
        ("fr-CA", "fr-BE"),
        ("en-US,en;q=0.9,nl;q=0.8", "en-GB"),
        ("fr-FR,fr;q=0.9,nl;q=0.8", "fr-BE"),
        ("ja,de;q=0.5,nl;q=0.7", "nl"),
        ("", "en-GB"),
        ("*;q=0.1, ;;x", "en-GB"),
    ],
)
def test_the_browser_chooses_without_a_locale(live: Sandbox, accepts: str, language: str) -> None:
    """Without a locale the browser's preference decides, and English is the fallback."""
    order = live.place(by("wallet-web"))
    assert Payer(live, language=accepts).open(payment_page(order)).language == language


def test_amounts_and_times_are_written_as_the_language_does() -> None:
    """Amounts have the language's symbols, and times are in UTC."""
    noon = datetime(2026, 3, 1, 12, tzinfo=UTC)
    written = {
        tag: Language(tag).amount(123456).replace("\xa0", " ").replace("\u202f", " ") for tag in LOCALES
    }
    assert written == {
        "nl": "€ 1.234,56",
        "de": "1.234,56 €",
        "nl-BE": "€ 1.234,56",
        "fr-BE": "1 234,56 €",
        "en-GB": "€1,234.56",
    }
    assert "mars" in Language("fr-BE").moment(noon)
    assert "12:00:00 UTC" in Language("en-GB").moment(noon)
    in_three_days = Language("de").relative_moment(noon + timedelta(days=3), noon)
    assert in_three_days == "4. M\u00e4rz, 12:00 Uhr (in 3 Tagen)"


def test_no_phrase_is_missing() -> None:
    """Every language has all phrases with the same placeholders."""
    english = phrases(DEFAULT_TAG)
    placeholders = {key: sorted(re.findall(r"\{[a-z]*\}", text)) for key, text in english.items()}
    for tag in ("nl", "nl-BE", "de", "fr-BE"):
        translated = phrases(tag)
        assert translated.keys() == english.keys()
        for key, text in translated.items():
            assert text.strip(), (tag, key)
            assert sorted(re.findall(r"\{[a-z]*\}", text)) == placeholders[key], (tag, key)
