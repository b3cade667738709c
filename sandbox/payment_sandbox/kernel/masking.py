"""Masking of secrets in text: the API key, card numbers and card codes (CTL-29).

Each pattern is bounded, so the time is proportional to the length of the text. The key is masked exactly as
the project has it, also in a Basic header; a card number as digits, alone or in the usual groups; a card code
as the value of a field with its name. Secrets in any other spelling are not recognized.
"""

import json
import re
from base64 import b64decode
from collections.abc import Container, Iterator, Mapping
from contextlib import suppress
from functools import lru_cache
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

_GAP: Final = r"(?:[ \u00a0+-]|%20|%C2%A0|\\u00a0)"  # a form encodes a space as + or %20
_GROUPS: Final = (
    "[0-9]{12,19}",
    f"[0-9]{{4}}{_GAP}[0-9]{{6}}{_GAP}[0-9]{{4,6}}",
    f"(?:[0-9]{{4}}{_GAP}){{2}}[0-9]{{4}}(?:{_GAP}[0-9]{{4}}(?:{_GAP}?[0-9]{{1,3}})?)?",
)
_ESCAPE: Final = "%[0-9A-Fa-f]{2}"
_NUMBER: Final = Pattern(
    f"{_IDENTIFIER}|{_ESCAPE}|(?:(?<![0-9])|(?<={_ESCAPE}))({'|'.join(_GROUPS)})(?![0-9])"
)
"""A card number, in its only group; identifiers and escapes match, too, so that no number begins in one."""
_GAPS: Final = Pattern(_GAP)
_TWELVE_DIGIT_PREFIX: Final = Pattern(r"(?:5[0678]|6)\d*")  # the only brands with twelve-digit numbers
_PREFIX: Final = Pattern(r"(?:[456]|3[0456789]|2(?:22[1-9]|2[3-9]|[3-6]|7[01]|720))\d*")
_CODE_HINTS: Final = ("cvc", "cvv", "cvn", "csc", "code", "verification")
_NAME: Final = (
    r"(?:cvc|cvv|card.?code|security.?code|verification.?(?:code|value|number)|(?:cvn|csc)2?(?![a-z0-9]))"
)
_CODE_NAME: Final = Pattern(_NAME, re.IGNORECASE)
_QUOTES: Final = r"(?:[\"'\\]|%2[27]){0,4}"
_SPACES: Final = r"(?:[\s+]|%20){0,20}"
_VALUES: Final = (
    r'(?<=")[^"\\]{1,100}(?=\\{0,3}")',
    r"\[[^\[\]{}]{0,200}\]",
    r"\{[^\[\]{}]{0,200}\}",
    f"(?!{_NAME})[a-z0-9._-]{{1,100}}",
)
_CODE: Final = Pattern(
    rf"({_NAME}[\w-]{{0,20}}(?:\]|%5d)?{_QUOTES}{_SPACES}(?:[\s:=]|%3[ad]){_SPACES})"
    rf"({_QUOTES})({'|'.join(_VALUES)})",
    re.IGNORECASE,
)
_BASIC: Final = Pattern(r"(\bbasic[\s:]{1,8})([a-z0-9+/]{4,4000})={0,2}", re.IGNORECASE)

Record = TypeVar("Record")


def mask(text: str, api_key: str | None = None) -> str:
    """Return the text with its secrets masked, in time proportional to its length."""
    if api_key is not None and api_key in text:  # first, because its digits may look like a card number
        text = text.replace(api_key, MASK)
    if text.isalpha() or _HARMLESS_TEXT.fullmatch(text) is not None:
        return text
    lower = text.lower()
    if api_key is not None and "basic" in lower:
        text = _BASIC.sub(lambda match: _mask_basic(match, api_key), text)
    if any(map(lower.__contains__, _CODE_HINTS)):
        text = _mask_codes(text)
    return _NUMBER.sub(_mask_number, text)


def _mask_codes(text: str) -> str:
    """Mask card codes: in a JSON document by the names of its fields, in any other text by patterns."""
    if text.lstrip()[:1] in ("{", "["):
        with suppress(ValueError, RecursionError):
            document = json.loads(text)
            masked = Masking().mask_record(document)
            return text if masked == document else json.dumps(masked, ensure_ascii=False)
    return _CODE.sub(_mask_code, text)


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


def _mask_code(match: re.Match[str]) -> str:
    """Mask the value of a card code's field; a value without digits, such as an error message, remains."""
    name, quote, value = match.groups()
    if not any(map(str.isdigit, value)):
        return match[0]
    is_json = name.rstrip().endswith(":") and not quote
    return f'{name}"{MASK}"' if is_json else f"{name}{quote}{MASK}"


def _mask_number(match: re.Match[str]) -> str:
    digits = _GAPS.sub("", match[1] or "")
    prefix = _TWELVE_DIGIT_PREFIX if len(digits) == SHORT_NUMBER_LENGTH else _PREFIX
    return NUMBER_MASK if prefix.fullmatch(digits) is not None and is_luhn(digits) else match[0]
