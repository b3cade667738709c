"""Masking of secrets in text: card numbers, CVCs and the API key (CTL-29)."""

import re
import unicodedata
from base64 import b64decode
from collections.abc import Container, Iterator, Mapping
from functools import lru_cache
from typing import Any, Final, TypeVar
from urllib.parse import unquote

from payment_sandbox.kernel.patterns import Pattern, is_luhn

MASK: Final = "***"
SECRET_KINDS: Final = "a card number, a card code or an API key"
NUMBER_MASK: Final = "0"  # a digit, so that JSON stays valid
PAIR_LENGTH: Final = 2
DIGITS_MIN: Final = 12
DIGITS_MAX: Final = 19
KEY_LENGTH_MIN: Final = 16
"""Shorter API keys may be common words, which a configuration may contain anyway."""
CHECKS_MAX: Final = 1000  # per run of digits; the rest is masked unchecked

_INVISIBLE: Final = (
    "\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f"  # control characters except whitespace
    "\u00ad\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064"
    "\u2066-\u206f\ufeff\ufff9-\ufffb\U000110bd\U000110cd\U00013430-\U0001343f\U0001bca0-\U0001bca3"
    "\U0001d173-\U0001d17a\U000e0001\U000e0020-\U000e007f"  # format characters
    "\u0300-\u036f\u115f\u1160\u17b4\u17b5\u180b-\u180d\u180f\u20d0-\u20ff\u3164\ufe00-\ufe0f\uffa0"
    "\U000e0100-\U000e01ef"  # combining marks and blank characters
)
_INVISIBLE_RUN: Final = Pattern(f"[{_INVISIBLE}]+")
_DIGITS: Final = Pattern(rf"(?<!\d)\d(?:[\s.,_/+\-\u2010-\u2015\u2212{_INVISIBLE}]{{0,8}}\d){{11,}}")
_ASCII_BETWEEN: Final = bytes(range(33)) + b"\x7f.,_/+-"  # the ASCII separators that _DIGITS allows
_TWELVE_DIGITS: Final = Pattern(rb"\d{12}")
_GROUP: Final = Pattern(r"\d+")
_TWELVE_DIGIT_PREFIX: Final = Pattern(r"(?:5[0678]|6)\d*")  # the only brands with twelve-digit numbers
_PREFIX: Final = Pattern(r"(?:[456]|3[0456789]|2(?:22[1-9]|2[3-9]|[3-6]|7[01]|720))\d*")
_UUID: Final = Pattern("[0-9a-f]{8}-[0-9a-f]{4}-[1-8][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")
UUID_LENGTH: Final = 36
_HARMLESS_TEXT: Final = Pattern(
    rf"[a-z_-]{{0,40}}|{_UUID.pattern}|\d{{4}}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{{6}}\+00:00"
)
"""Words, identifiers and timestamps: most strings in a record match and skip the other checks."""

_PATH: Final = Pattern(rf"(?:/(?:v1|[a-z_-]{{0,40}}|{_UUID.pattern}))+")
_SECRET_WORD: Final = re.compile("cv|csc|code|verif")

_CODE_HINTS: Final = ("cvc", "cvv", "cvn", "csc", "code", "verification")
_NAME: Final = (
    r"(?:(?:cvc|cvv|card.?code|security.?code|verification.?(?:code|value|number))[a-z0-9_-]{0,20}"
    r"|(?:cvn|csc)2?(?![a-z0-9]))"
)
_CODE: Final = Pattern(
    rf"({_NAME})([^a-z0-9]{{1,40}})(?=[a-z._-]{{0,100}}\d)([a-z0-9](?:[._-]?[a-z0-9]){{0,100}})",
    re.IGNORECASE,
)
_CODE_PARTS: Final = Pattern(rf"{_NAME}[\"'\\]{{0,4}}\s{{0,8}}:\s{{0,8}}(?=[\[{{])", re.IGNORECASE)
_BRACKET: Final = Pattern(r"[\[\]{}]")
_CODE_NAME: Final = Pattern(_NAME, re.IGNORECASE)
_BASIC: Final = Pattern(r"(\bbasic[\s:]{1,8})([a-z0-9+/]{4,4000})={0,2}", re.IGNORECASE)
_CODE_TAG: Final = Pattern(rf"(<[^<>]{{0,60}}{_NAME}[^<>]{{0,200}}>)([^<>]{{1,100}})", re.IGNORECASE)
_ESCAPE: Final = Pattern(
    r"\\+u(d[89ab][0-9a-f]{2})\\+u(d[c-f][0-9a-f]{2})|\\+u([0-9a-f]{4})|&#(?:x([0-9a-f]{1,5})|(\d{1,6}));",
    re.IGNORECASE,
)
_ESCAPED_SPACE: Final = Pattern(r"\\+[bfnrtv]")

Record = TypeVar("Record")


def mask(text: str, api_key: str | None = None) -> str:
    """Return the text with its secrets masked.

    Escaped secrets are masked, too, as in JSON, XML, or a URL.
    """
    is_harmless = (
        text.isalpha() or _HARMLESS_TEXT.compiled.fullmatch(text) is not None
    )  # a word has no digits
    if not is_harmless and _PATH.compiled.fullmatch(text) is not None:
        is_harmless = _SECRET_WORD.search(text) is None
    if is_harmless and (api_key is None or api_key not in text):
        return text
    plain = _decode_escapes(text)
    masked = _mask_number(plain, api_key)
    if masked == plain:
        return text
    as_written = _mask_number(text, api_key)
    remainder = _decode_escapes(as_written)
    return as_written if _mask_number(remainder, api_key) == remainder else masked


def _decode_escapes(text: str) -> str:
    """Decode escapes and drop invisible characters, which could hide a secret."""
    plain = text
    if "%" in plain:
        plain = unquote(plain, errors="replace")
    if "\\" in plain or "&#" in plain:
        plain = _ESCAPED_SPACE.sub(" ", _ESCAPE.sub(_unescape, plain))
    if plain.isascii() and plain.rstrip().isprintable():  # the usual case, and a cheap check
        return plain
    return _INVISIBLE_RUN.sub("", plain)


class Masking:
    """Masks the secrets of one project in all records other than its orders."""

    def __init__(self) -> None:
        self.api_key: str | None = None  # in memory only, and only to recognize the key in records

    def mask_text(self, text: str) -> str:
        """Return the text with its secrets masked."""
        return mask(text, self.api_key)

    def mask_record(self, record: Record) -> Record:
        """Return the record with the secrets masked in every string, at every level."""
        masked: Any = self._mask_value(record)
        return masked  # type: ignore[no-any-return]

    def mask_field(self, name: str, value: Any) -> Any:
        """Return the value of a field with its secrets masked; the field's name reveals a CVC."""
        return MASK if _is_code(name, value) else self._mask_value(value)

    def _mask_value(self, value: Any) -> Any:
        if type(value) is str:  # enumeration members are not free text
            return mask(value, self.api_key)
        if value is None:
            return None
        if isinstance(value, bytes):
            return self.mask_text(value.decode(errors="surrogateescape")).encode(errors="surrogateescape")
        if isinstance(value, dict):
            return {self._mask_value(key): self._mask_value(inner) for key, inner in self.masked_items(value)}
        if isinstance(value, list):
            return [self._mask_value(item) for item in value]
        if isinstance(value, tuple):
            return self._mask_tuple(value)
        return value

    def _mask_tuple(self, value: tuple[Any, ...]) -> Any:
        if hasattr(value, "_fields"):
            return type(value)(*map(self._mask_value, value))
        if len(value) == PAIR_LENGTH and isinstance(value[1], str):  # a name and its text, such as a header
            name, text = value
            return (self._mask_value(name), MASK if _is_code(name, text) else self._mask_value(text))
        return tuple(map(self._mask_value, value))

    def masked_items(self, record: Mapping[Any, Any]) -> Iterator[tuple[Any, Any]]:
        """Yield the items of a record with CVCs masked; booleans, such as results of checks, remain."""
        for name, value in record.items():
            yield name, MASK if _is_code(name, value) else value

    def secret_paths(self, document: Any, ignored: Container[str] = ()) -> Iterator[str]:
        """Yield the paths of the secrets in a configuration, except under ``ignored`` keys."""
        yield from _secret_paths(self.without_short_key(), document, "", ignored)

    def without_short_key(self) -> "Masking":
        """Return a masking that ignores a short API key, because it may be a common word."""
        masking = Masking()
        if self.api_key is not None and len(self.api_key) >= KEY_LENGTH_MIN:
            masking.api_key = self.api_key
        return masking


def _is_code(name: Any, value: Any) -> bool:
    if not isinstance(name, str) or not _is_code_name(name) or isinstance(value, bool):
        return False
    return any(map(str.isdigit, str(value)))


@lru_cache(maxsize=1024)
def _is_code_name(name: str) -> bool:
    """Whether a field or a header is named like a CVC; cached, because names repeat."""
    return _CODE_NAME.search(_decode_escapes(name)) is not None


def _secret_paths(masking: Masking, value: Any, path: str, ignored: Container[str]) -> Iterator[str]:
    if isinstance(value, Mapping):
        for name, inner in masking.masked_items(value):
            below = f"{path}.{name}" if path else str(name)
            if name in ignored:
                continue
            if inner is not value[name] or masking.mask_record(name) != name:
                yield masking.mask_text(below)
            yield from _secret_paths(masking, inner, below, ignored)
    elif isinstance(value, list | tuple):
        for index, inner in enumerate(value):
            yield from _secret_paths(masking, inner, f"{path}[{index}]", ignored)
    elif masking.mask_record(value) != value:
        yield masking.mask_text(path)


def _mask_number(text: str, api_key: str | None) -> str:
    lower = text.lower()
    # The key first: its digits may look like a card number, and masking only those would expose the rest.
    if api_key:
        if "basic" in lower:
            text = _BASIC.sub(lambda match: _mask_basic(match, api_key), text)
        text = text.replace(api_key, MASK)
    if any(map(lower.__contains__, _CODE_HINTS)):
        text = _mask_nested_codes(text)
        text = _CODE_TAG.sub(rf"\1{MASK}", text)
        text = _CODE.sub(_mask_code, text)
    return _DIGITS.sub(_mask_digits, text) if _may_contain_number(text) else text


def _may_contain_number(text: str) -> bool:
    """Whether the text may contain a card number; a cheap check before the slow search."""
    return (
        not text.isascii() or _TWELVE_DIGITS.search(text.encode().translate(None, _ASCII_BETWEEN)) is not None
    )


def _mask_basic(match: re.Match[str], api_key: str) -> str:
    """Mask a Basic authorization header that contains the key, even inside a longer text."""
    encoded = match[2]
    sent = b64decode(encoded + "=" * (-len(encoded) % 4)) if len(encoded) % 4 != 1 else b""
    return f"{match[1]}{MASK}" if api_key.encode() in sent else match[0]


def _mask_nested_codes(text: str) -> str:
    """Mask each object or list that is the value of a CVC field."""
    parts: list[str] = []
    at = 0
    for name in _CODE_PARTS.compiled.finditer(text):
        if name.start() >= at:
            parts += [text[at : name.end()], f'"{MASK}"']
            at = _end_of_value(text, name.end())
    return "".join([*parts, text[at:]])


def _end_of_value(text: str, begin: int) -> int:
    """Return the end of the object or list at ``begin``, or the end of the text if it is unclosed."""
    depth = 0
    for bracket in _BRACKET.compiled.finditer(text, begin):
        depth += 1 if bracket.group() in "[{" else -1
        if not depth:
            return bracket.end()
    return len(text)


def _mask_code(match: re.Match[str]) -> str:
    """Mask the value of a CVC field; the pattern skips values without digits, such as error messages."""
    name, between, _ = match.groups()
    is_bare = between.rstrip().endswith(":")  # a JSON number
    return f'{name}{between}"{MASK}"' if is_bare else f"{name}{between}{MASK}"


def _unescape(match: re.Match[str]) -> str:
    high, low, in_json, in_hexadecimal, in_decimal = match.groups()
    if high:
        code = 0x10000 + (int(high, 16) - 0xD800) * 0x400 + int(low, 16) - 0xDC00
    else:
        code = int(in_decimal) if in_decimal else int(in_json or in_hexadecimal, 16)
    letter = chr(code)
    category = unicodedata.category(letter)
    if category == "Cs":  # a lone surrogate is not text, so it cannot be part of a secret
        return match.group()
    return " " if category == "Cc" else letter  # a raw line feed would break a JSON string


def _mask_digits(match: re.Match[str]) -> str:
    """Mask the card numbers in a run of groups of digits, except inside identifiers."""
    text, begin, end = match.string, match.start(), match.end()
    around = _UUID.compiled.finditer(text, max(0, begin - UUID_LENGTH + 1), end + UUID_LENGTH)
    masked: list[str] = []
    at = begin
    for digits in around:
        if digits.end() <= begin or digits.start() >= end:
            continue
        masked += [
            _mask_run(text[at : max(at, digits.start())]),
            text[max(at, digits.start()) : min(end, digits.end())],
        ]
        at = min(end, digits.end())
    return "".join([*masked, _mask_run(text[at:end])])


def _mask_run(text: str) -> str:
    """Mask the card numbers in a run; a card number begins and ends at the edge of a group."""
    groups = list(_GROUP.compiled.finditer(text))
    masked: list[str] = []
    at = first = checks = 0
    while first < len(groups):
        if checks > CHECKS_MAX:
            return "".join([*masked, text[at : groups[first].start()], NUMBER_MASK])
        last, checked = _last_group(groups, first)
        checks += checked
        if last is None:
            first += 1
            continue
        masked += [text[at : groups[first].start()], NUMBER_MASK]
        at, first = groups[last].end(), last + 1
    return "".join([*masked, text[at:]])


def _last_group(groups: list[re.Match[str]], first: int) -> tuple[int | None, int]:
    """Return the last group of the longest card number that begins at ``first``, and the number of checks.

    A shorter match may be only the beginning of a longer card number.
    """
    digits, checked = "", 0
    last: int | None = None
    for index in range(first, len(groups)):
        digits += groups[index].group()
        if len(digits) > DIGITS_MAX:
            break
        if len(digits) >= DIGITS_MIN:
            checked += 1
            last = index if _is_card_number(digits) else last
    return last, checked


def _is_card_number(digits: str) -> bool:
    begin = "".join(str(int(digit)) for digit in digits[:4])  # int() also reads the digits of other scripts
    prefix = _TWELVE_DIGIT_PREFIX if len(digits) == DIGITS_MIN else _PREFIX
    return prefix.fullmatch(begin) is not None and is_luhn(digits)
