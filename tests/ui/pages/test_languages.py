"""Pages are available in five languages, with localized amounts and complete phrases."""

import re
from datetime import UTC, datetime, timedelta

import pytest

from payment_sandbox.methods import ALL_METHODS
from payment_sandbox.methods.messages import DECLINED, MESSAGES, REASONS
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
        ("fr-FR,fr;q=0.9", "fr-BE"),
        ("fr-CA", "fr-BE"),
        ("en-US,en;q=0.9,nl;q=0.8", "en-GB"),
        ("fr-FR,fr;q=0.9,nl;q=0.8", "fr-BE"),
        ("ja,de;q=0.5,nl;q=0.7", "nl"),
        ("de", "de"),
        ("ja", "en-GB"),
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
    from datetime import UTC, datetime

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


def test_belgian_pages_are_not_dutch_ones() -> None:
    """Flemish has some phrases of its own and inherits the others from Dutch."""
    dutch, flemish = phrases("nl"), phrases("nl-BE")
    own = {key for key in dutch if dutch[key] != flemish[key]}
    assert {"the_shop", "choose_method"} <= own
    assert "failed_text" not in own


@pytest.mark.parametrize(
    ("tag", "hours", "text"),
    [
        ("en-GB", 3, "15:00 today (in 3 hours)"),
        ("nl", 24, "morgen 12:00 uur (over 1 dag)"),
        ("de", 72, "4. M\u00e4rz, 12:00 Uhr (in 3 Tagen)"),
        ("fr-BE", -1, "aujourd'hui \u00e0 11:00"),
    ],
)
def test_times_are_relative_to_now(tag: str, hours: int, text: str) -> None:
    """Near times name the day, and future times have a duration."""
    noon = datetime(2026, 3, 1, 12, tzinfo=UTC)
    assert Language(tag).relative_moment(noon + timedelta(hours=hours), noon) == text


def texts(tag: str) -> list[str]:
    """Return everything that a payer reads in a language."""
    known = [each.capabilities for each in ALL_METHODS]
    labels = [DECLINED, *MESSAGES.values(), *REASONS.values()]
    labels += [label for each in known for label in (each.labels, each.hint, each.bank) if label is not None]
    return [*phrases(tag).values(), *(str(label[tag]) for label in labels)]


def test_german_says_sie_and_handy() -> None:
    """German pages address the payer formally, and use one word for a phone."""
    wrong = re.compile(r"\b(du|dich|dir|dein\w*|wähle|gib|tippe|telefon\w*)\b", re.IGNORECASE)
    assert [text for text in texts("de") if wrong.search(text)] == []


def test_dutch_has_one_word_for_a_thing() -> None:
    """Dutch pages have one word each for a device, a payment method and typing."""
    for tag in ("nl", "nl-BE"):
        wrong = re.compile(r"toestel|betaalwijze|betaaltijd|\btyp\b|modus live", re.IGNORECASE)
        assert [text for text in texts(tag) if wrong.search(text)] == []


def test_french_punctuation_has_a_narrow_space(live: Sandbox) -> None:
    """A narrow no-break space precedes colons, semicolons and question marks, also between label and value."""
    assert [text for text in texts("fr-BE") if re.search("[^\u202f][:;?!]", text)] == []
    order = live.place(by("wallet-apple"), customer={"locale": "fr-BE"}, merchant_order_id="S-1")
    text = Payer(live).open(payment_page(order)).text
    for label in ("Carte", "Numéro de commande", "Heure de test"):
        assert f"{label}\u202f: " in text


def test_a_page_without_a_name_of_the_shop_has_no_row_for_it(live: Sandbox) -> None:
    """The fallback for the name stands in sentences only."""
    order = live.place(by("wallet-web"), customer={"locale": "de"})
    text = Payer(live).open(payment_page(order)).text
    assert "An den Shop" in text
    assert "Shop den Shop" not in " ".join(text.split())
