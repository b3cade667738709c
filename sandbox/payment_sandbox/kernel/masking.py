"""Masking of secrets in text: the API key, card numbers and card codes (CTL-29).

The key is masked exactly as the project has it, also in a Basic header; a card number as digits, alone or in
the usual groups; a card code as the value of a field with its name. Secrets in any other spelling are not
recognized.

Masking a text takes at most 20 times as long as ``json.dumps``, because others wait meanwhile: the whole
text is scanned only by patterns that begin with a literal or a class of characters. What they match is
examined more closely, up to a number of matches in proportion to the length; in a text with more, all digits
from there on are masked.
"""

import json
import re
from base64 import b64decode, b64encode
from collections.abc import Container, Iterator, Mapping
from contextlib import suppress
from functools import lru_cache
from math import ceil
from typing import Any, Final, TypeVar

from payment_sandbox.kernel.ids import TOKEN_PATTERN
from payment_sandbox.kernel.patterns import Pattern, is_luhn

MASK: Final = "***"
SECRET_KINDS: Final = "a card number, a card code or an API key"
NUMBER_MASK: Final = "0"  # a digit, so that JSON stays valid
PAIR_LENGTH: Final = 2
NAME_LENGTH_MAX: Final = 100
SHORT_NUMBER_LENGTH: Final = 12
KEY_LENGTH_MIN: Final = 16
"""Shorter API keys may be common words, which a configuration may contain anyway."""

_UUID: Final = "[0-9a-f]{8}-[0-9a-f]{4}-[1-8][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"
_IDENTIFIER: Final = f"{_UUID}|(?<![0-9a-z]){TOKEN_PATTERN}(?![0-9a-z])"
"""Identifiers and stored cards' tokens, whose digits may look like a card number."""
_HARMLESS_TEXT: Final = Pattern(
    rf"[a-z_-]{{0,40}}|{_IDENTIFIER}|\d{{4}}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{{6}}\+00:00"
)
"""Words, identifiers and timestamps: most strings in a record match and skip the other checks."""

_GAPS: Final = (b"\xc2\xa0", b"%20", b"%C2%A0", b"\\u00a0")  # besides the characters in ``_GAP_CHARACTERS``
_GAP_CHARACTERS: Final = b" +-"
_DIGITS: Final = b"0123456789"
_SHAPE: Final = bytes.maketrans(_DIGITS + _GAP_CHARACTERS, b"0" * 10 + b"_" * 3)
_UNDERSCORE: Final = bytes.maketrans(b"_", b"x")  # an underscore of the text is no gap
_ALL_BUT_DIGITS: Final = bytes(set(range(256)) - set(_DIGITS))
_LONG: Final = (b"0" * 20, b"9" * 20)  # too many digits for a number
_NUMBER: Final = Pattern(
    b"0000(?:(?<![09]0000)|(?<=%[0A-Fa-f]00000))(?<!%0000)(?<!%[A-Fa-f]0000)"
    b"(?:0{8,15}|_{1,6}0{6}_{1,6}0{4,6}|_{1,6}0000_{1,6}0000(?:_{1,6}0000(?:_{0,6}0{1,3})?)?)(?![09])"
)
"""A number in a shape, not beginning in an escape such as %22; begins with a literal, for speed."""
_IDENTIFIERS: Final = Pattern(_IDENTIFIER.encode())
_IDENTIFIER_LENGTH: Final = 36
_IN_IDENTIFIERS: Final = b"0123456789abcdef-"
_TWELVE_DIGIT_PREFIX: Final = Pattern(r"(?:5[0678]|6)\d*")  # the only brands with twelve-digit numbers
_PREFIX: Final = Pattern(r"(?:[456]|3[0456789]|2(?:22[1-9]|2[3-9]|[3-6]|7[01]|720))\d*")
_CODE_HINTS: Final = ("cvc", "cvv", "cvn", "csc", "code", "verification")
_NAME: Final = (
    "(?:c(?:vc|vv|ard.?code|(?:vn|sc)2?(?![a-z0-9]))|security.?code|verification.?(?:code|value|number))"
)
_CODE_NAME: Final = Pattern(_NAME, re.IGNORECASE)
_LOWER_NAME: Final = Pattern(_NAME)  # for lower-case text, which is faster
_QUOTES: Final = r"(?:[\"'\\]|%2[27]){0,4}"
_SPACES: Final = r"(?:[\s+]|%20){0,20}"
_VALUES: Final = (
    r'(?<=")[^"\\]{1,100}(?=\\{0,3}")',
    r"\[[^\[\]{}]{0,200}\]",
    r"\{[^\[\]{}]{0,200}\}",
    f"(?!{_NAME})[a-z0-9._-]{{1,100}}",
)
_AFTER_NAME: Final = Pattern(
    rf"[\w-]{{0,30}}+(?:\]|%5d)?{_QUOTES}{_SPACES}(?:[\s:=]|%3[ad]){_SPACES}", re.IGNORECASE
)
_VALUE: Final = Pattern(rf"({_QUOTES})({'|'.join(_VALUES)})", re.IGNORECASE)
_ANY_DIGIT: Final = Pattern(r"\d")
_DECODER: Final = json.JSONDecoder()
_WITHOUT_DIGITS: Final = bytes.maketrans(_DIGITS, NUMBER_MASK.encode() * 10)
_LOWER: Final = str.maketrans("ABCDEFGHIJKLMNOPQRSTUVWXYZ", "abcdefghijklmnopqrstuvwxyz")
_CHARACTERS_PER_CODE: Final = 200
_CHARACTERS_PER_NUMBER: Final = 150
_MATCHES_MIN: Final = 5
_BASIC: Final = Pattern(r"(\bbasic[\s:]{1,8})([a-z0-9+/]{4,4000})={0,2}", re.IGNORECASE)

Record = TypeVar("Record")


def mask(text: str, api_key: str | None = None) -> str:
    """Return the text with its secrets masked, in time proportional to its length."""
    if api_key is not None and api_key in text:  # first, because its digits may look like a card number
        text = text.replace(api_key, MASK)
    if text.isalpha() or _HARMLESS_TEXT.fullmatch(text) is not None:
        return text
    lower = _lower(text)
    if api_key is not None and "basic" in lower and any(map(text.__contains__, _encoded_parts(api_key))):
        text = _BASIC.sub(lambda match: _mask_basic(match, api_key), text)
        lower = _lower(text)
    if _ANY_DIGIT.search(text) is None:
        return text
    if any(map(lower.__contains__, _CODE_HINTS)):
        text = _mask_codes(text, lower)
    return _mask_numbers(text)


def _mask_codes(text: str, lower: str) -> str:
    """Mask the values of fields that are named like a card code."""
    pieces: list[str] = []
    done = 0
    for examined, name in enumerate(_LOWER_NAME.compiled.finditer(lower)):
        if name.start() < done:
            continue
        if examined > max(_MATCHES_MIN, len(text) // _CHARACTERS_PER_CODE):
            return "".join(pieces) + _mask_digits(text[done:])
        before = _AFTER_NAME.compiled.match(text, name.end())
        if before is None:
            continue
        end, masked = _mask_value(text, before.end(), before[0])
        if masked is not None:
            pieces += (text[done : before.end()], masked)
            done = end
    return "".join((*pieces, text[done:])) if pieces else text


def _mask_value(text: str, start: int, before: str) -> tuple[int, str | None]:
    """Mask the value of a card code; return its end, and None if it has no digit, like an error message."""
    is_json = before.rstrip().endswith(":")
    if text[start : start + 1] in ('"', "[", "{") and is_json:
        with suppress(ValueError, RecursionError):
            end = _DECODER.raw_decode(text, start)[1]
            return end, f'"{MASK}"' if _ANY_DIGIT.search(text[start:end]) is not None else None
    value = _VALUE.compiled.match(text, start)
    if value is None:  # a body that is cut off inside the value
        is_open = is_json and text[start : start + 1] in ("[", "{")
        return len(text), _mask_digits(text[start:]) if is_open else None
    if not any(map(str.isdigit, value[2])):
        return start, None
    return value.end(), f'"{MASK}"' if is_json and not value[1] else f"{value[1]}{MASK}"


def _mask_digits(text: str) -> str:
    data = text.encode("utf-8", "surrogatepass")
    return data.translate(_WITHOUT_DIGITS).decode("utf-8", "surrogatepass")


def _mask_numbers(text: str) -> str:
    """Mask card numbers, which are found in the shape of the text: all digits and gaps alike."""
    data = text.encode("utf-8", "surrogatepass")
    shape = data.translate(_UNDERSCORE) if b"_" in data else data
    for gap in _GAPS:
        if gap in shape:
            shape = shape.replace(gap, b"_" * len(gap))
    digits = shape
    shape = shape.translate(_SHAPE).replace(*_LONG)
    pieces: list[bytes] = []
    done = 0
    for examined, number in enumerate(_NUMBER.compiled.finditer(shape)):
        if examined > max(_MATCHES_MIN, len(shape) // _CHARACTERS_PER_NUMBER):
            rest = data[done:].translate(_WITHOUT_DIGITS)
            return b"".join((*pieces, rest)).decode("utf-8", "surrogatepass")
        start, end = number.span()
        is_number = _is_card_number(digits[start:end].translate(None, _ALL_BUT_DIGITS))
        if is_number and not _is_in_identifier(data, start, end):
            pieces += (data[done:start], NUMBER_MASK.encode())
            done = end
    return b"".join((*pieces, data[done:])).decode("utf-8", "surrogatepass") if pieces else text


def _is_card_number(digits: bytes) -> bool:
    number = digits.decode()
    prefix = _TWELVE_DIGIT_PREFIX if len(number) == SHORT_NUMBER_LENGTH else _PREFIX
    return prefix.fullmatch(number) is not None and is_luhn(number)


def _is_in_identifier(data: bytes, start: int, end: int) -> bool:
    """Whether digits belong to an identifier or to a stored card's token."""
    if (
        data[max(0, start - 1)] not in _IN_IDENTIFIERS
        and data[min(end, len(data) - 1)] not in _IN_IDENTIFIERS
    ):
        return False
    first = max(0, start - _IDENTIFIER_LENGTH)
    near = _IDENTIFIERS.compiled.finditer(data, first, end + _IDENTIFIER_LENGTH)
    return any(identifier.start() <= start and end <= identifier.end() for identifier in near)


@lru_cache(maxsize=64)
def _encoded_parts(api_key: str) -> tuple[str, ...]:
    """Return what is the same in all Base64 texts that contain the key, by the bytes before the key."""
    key = api_key.encode()
    return tuple(
        b64encode(b"x" * before + key).decode()[ceil(before * 8 / 6) : (before + len(key)) * 8 // 6]
        for before in range(3)
    )


def _lower(text: str) -> str:
    """Return the text with its letters in lower case, each in its place."""
    lower = text.lower()
    return lower if len(lower) == len(text) else text.translate(_LOWER)


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
        """Return the value of a field with its secrets masked; the field's name reveals a card code."""
        return MASK if _is_code(name, value) else self._mask_value(value)

    def _mask_value(self, value: Any) -> Any:
        if type(value) is str:  # enumeration members are not free text
            return mask(value, self.api_key)
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
            return (self._mask_value(value[0]), self.mask_field(value[0], value[1]))
        return tuple(map(self._mask_value, value))

    def masked_items(self, record: Mapping[Any, Any]) -> Iterator[tuple[Any, Any]]:
        """Yield the items of a record with card codes masked; booleans, such as results of checks, remain."""
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
    """Whether a value is a card code; a text without digits, such as an error message, is none."""
    if not isinstance(name, str) or isinstance(value, bool) or not value or not _is_code_name(name):
        return False
    return not isinstance(value, str) or any(map(str.isdigit, value))


def _is_code_name(name: str) -> bool:
    """Whether a field or a header is named like a card code."""
    return _is_known_code_name(name) if len(name) <= NAME_LENGTH_MAX else _CODE_NAME.search(name) is not None


@lru_cache(maxsize=1024)
def _is_known_code_name(name: str) -> bool:
    return _CODE_NAME.search(name) is not None  # cached, because names repeat


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


def _mask_basic(match: re.Match[str], api_key: str) -> str:
    """Mask a Basic authorization header that contains the key, even inside a longer text."""
    encoded = match[2]
    sent = b64decode(encoded + "=" * (-len(encoded) % 4)) if len(encoded) % 4 != 1 else b""
    return f"{match[1]}{MASK}" if api_key.encode() in sent else match[0]
