"""Card numbers and CVCs are masked in every notation; similar texts stay."""

import gc
import json
import sys
import unicodedata
from base64 import b64encode
from html import escape
from time import thread_time
from urllib.parse import quote

import pytest

from payment_sandbox.kernel.masking import mask

GROUPS = ("4012", "8888", "8888", "1881")
SHORT = "501800000009"  # a card number with twelve digits
WIDE = "".join(chr(ord("０") + int(digit)) for digit in "".join(GROUPS))
SEPARATORS = (
    " ", "-", ", ", ",", " - ", "\u00a0", "\u2009", "\u202f", "\u200b", "\u2060", "\u00ad", "\u2013", "\u2212",
    "\n", "\r\n", "\r\n\r\n", "\t", "\v", "\f", "\x1f", "\x7f", "\x85", "\u2028", "\u3000", "\u202e", "\u2066",
    "\u0336", "\ufe0f\u20e3", "\u200b" * 40, " \u200d\n\u202e ", "\x1b", "      ",
)  # fmt: skip
ORDER_ID = "41111111-1111-4111-8111-111111111111"
HIDDEN_CATEGORIES = ("Cc", "Cf", "Zl", "Zp", "Zs")


@pytest.mark.parametrize("separator", SEPARATORS, ids=ascii)
def test_groups_of_a_card_number_are_masked(separator: str) -> None:
    """Groups of a card number are masked with every separator, as text, JSON, URL and XML."""
    number = separator.join(GROUPS)
    entities = "".join(f"&#{ord(letter)};" if not letter.isalnum() else letter for letter in number)
    for text in (
        f"card {number}.",
        json.dumps({"a": number}),
        json.dumps({"a": number}, ensure_ascii=False),
        json.dumps({"a": json.dumps(number)}),
        f"number={quote(number)}&x=1",
        f"<number>{escape(number)}</number>",
        f"<number>{entities}</number>",
    ):
        assert "1881" not in mask(text), text
        assert "8888" not in mask(text), text


def test_hidden_characters_between_digits_are_ignored() -> None:
    """Card numbers with any whitespace, control, format or separator character between digits are masked."""
    for code in range(sys.maxunicode + 1):
        letter = chr(code)
        if unicodedata.category(letter) in HIDDEN_CATEGORIES:
            number = letter.join("4012888888881881")
            assert mask(f"card {number}") == "card 0", hex(code)
            assert json.loads(mask(json.dumps({"a": number}))) == {"a": "0"}, hex(code)


@pytest.mark.parametrize(
    "separator", [chr(code) for code in range(128) if not chr(code).isalnum()], ids=ascii
)
def test_the_fast_check_of_ascii_text_misses_no_number(separator: str) -> None:
    """The fast check of ASCII text finds the same numbers as the full check of other text."""
    number = separator.join(GROUPS)
    assert mask(f"{number} x").removesuffix(" x") == mask(f"{number} \u00e9").removesuffix(" \u00e9")


@pytest.mark.parametrize("key", ["sandbox-key", "9f1c-4-Zq", "k" * 90])
def test_an_api_key_is_masked(key: str) -> None:
    """An API key is masked as plain text, with hidden characters, escaped, and in a Basic header."""
    credentials = b64encode(f"{key}:password".encode()).decode()
    hidden = "\u200b".join(key)
    for text in (
        f"key {key}!",
        json.dumps({hidden: hidden}),
        quote(f"?key={hidden}"),
        f"Basic {credentials}",
    ):
        masked = mask(text, key)
        assert key not in masked.replace("\u200b", "").replace("\\u200b", "")
        assert credentials not in masked
        assert "***" in masked
    for text in ("Basic information", "basic: 12345", "Basic SGVsbG8=", "BASIC zzzzz"):
        assert mask(text, key) == text


def test_an_api_key_with_a_card_number_in_it_is_masked_whole() -> None:
    """A key that contains a card number is masked as a whole."""
    number = "".join(GROUPS)
    for key in (f"ab{number}cdefabcdef1234", f"{number}abcdefabcdefabcd", f"abcdefabcdefabcd{number}"):
        assert mask(f"key {key}!", key) == "key ***!"


def test_masked_json_stays_valid() -> None:
    """Masked JSON stays valid, also with escaped emoji and line feeds beside the number."""
    body = json.dumps({"a": f"{''.join(GROUPS)} \N{GRINNING FACE}\n"})
    masked = mask(body)
    assert "1881" not in masked
    assert json.loads(masked.encode()) == {"a": "0 \N{GRINNING FACE}\n"}


@pytest.mark.parametrize("number", [SHORT, WIDE], ids=ascii)
def test_other_card_numbers_are_masked(number: str) -> None:
    """Numbers with twelve digits, and with full-width digits, are masked."""
    assert number[-4:] not in mask(f"card {number}")
    escaped = json.dumps(number)
    assert mask(escaped) != escaped


@pytest.mark.parametrize(
    "text",
    [
        "400000000006",
        "501800000008",
        "2026-03-01T12:00:00.000000+00:00",
        "1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11",
        json.dumps({"phone_numbers": ["+31 6 12345678", "+31 20 1234567"]}, indent=2),
        json.dumps("Dam 1\n1012 JS Amsterdam\nNetherlands"),
        "NL91 ABNA 0417 1643 00\nDE89 3704 0044 0532 0130 00",
        "0612345678\n0201234567\r\n0031612345678",
        "2026-03-01\t2026-04-01\n1772366400\t1775044800",
        json.dumps({"amounts": [1000, 2500, 1295, 705], "quantity": 3}, indent=4),
        "order 2026112212345678\ninvoice 2026000123",
    ],
    ids=[
        "no card has twelve digits and a 4",
        "a wrong check digit",
        "a time",
        "a list",
        "phone numbers in JSON",
        "an address",
        "account numbers",
        "phone numbers on lines",
        "dates and times on lines",
        "amounts in JSON",
        "numbers of orders",
    ],
)
def test_other_texts_stay(text: str) -> None:
    """Order numbers, times, lists and similar texts are not masked."""
    assert mask(text) == text


@pytest.mark.parametrize(
    "value",
    [
        {"a": {"b": 1}, "value": "123"},
        [[1], {"value": "123"}],
        {"a": [], "b": {"c": []}, "d": {"value": "123"}},
    ],
    ids=["an object in an object", "lists", "many"],
)
def test_a_cvc_is_masked_up_to_its_last_bracket(value: object) -> None:
    """A structured CVC is masked up to its closing bracket; later text stays."""
    text = mask(json.dumps({"cvc": value, "amount": 777}))
    assert "123" not in text
    assert '"amount": 777' in text


def test_unclosed_brackets_take_little_time() -> None:
    """Many unclosed brackets after a CVC key take little time."""
    started = thread_time()
    assert "123" not in mask('{"cvc": [123' * 20_000)
    assert thread_time() - started < 2


@pytest.mark.parametrize(
    "text",
    [
        "1" * 400_000,
        "4 " * 200_000,
        "4\u200b" * 200_000,
        "4\n\n\n\n\n\n\n\n" * 50_000,
        "4         " * 40_000,
        "\\n" * 200_000,
        "%0A4" * 100_000,
        "\\u202e4" * 60_000,
        "basic " * 60_000,
        "cvc" * 130_000,
    ],
    ids=lambda text: ascii(text[:8]),
)
def test_long_texts_take_time_in_proportion(text: str) -> None:
    """The time of masking is proportional to the length of the text."""
    half_seconds, seconds = _masking_seconds(text[: len(text) // 2]), _masking_seconds(text)
    assert seconds < 4
    assert seconds < 3 * half_seconds + 0.2


def _masking_seconds(text: str) -> float:
    """Return the processor time of masking, without garbage collection."""
    durations = []
    gc.disable()
    for _ in range(3):
        started = thread_time()
        mask(text, "sandbox-key")
        durations.append(thread_time() - started)
    gc.enable()
    return min(durations)


@pytest.mark.parametrize(
    ("path", "masked"),
    [
        (f"/v1/orders/{ORDER_ID}/", None),
        (f"/v1/orders/{ORDER_ID}/transactions/{ORDER_ID}/cancel/", None),
        (f"/v1/cvc/{ORDER_ID}/", "/v1/cvc/***/"),
        (f"/v1/security-code/{ORDER_ID}", "/v1/security-code/***"),
        ("/v1/4111/1111/1111/1111/", "/v1/0/"),
        (f"/v1/orders/4111111111111111/{ORDER_ID}/", f"/v1/orders/0/{ORDER_ID}/"),
        ("/v1/orders/key-of-shop/", "/v1/orders/***/"),
    ],
)
def test_paths_of_words_and_identifiers_stay(path: str, masked: str | None) -> None:
    """Paths of words and identifiers stay; card numbers, keys and values after the name of a code do not."""
    assert mask(path, "key-of-shop") == (masked or path)
