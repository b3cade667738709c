"""Masks secrets in text: card numbers that somebody sent, their CVCs, and an API key (CTL-29)."""

import re
import unicodedata
from typing import Any, Final, TypeVar
from urllib.parse import unquote

from payment_sandbox.kernel.patterns import Pattern, is_luhn

MASK: Final = "***"
NUMBER_MASK: Final = "0"  # valid wherever a number is
DIGITS_MIN: Final = 12
DIGITS_MAX: Final = 19
CHECKS_MAX: Final = 1000  # of one run of digits; what is left then is masked unseen

_DIGITS: Final = Pattern(r"\d(?:[\s.,_/+\-\u00ad\u200b-\u200d\u2010-\u2015\u2060\u2212\ufeff]{0,3}\d){11,}")
_GROUP: Final = Pattern(r"\d+")
_SHORT: Final = Pattern(r"(?:5[0678]|6)\d*")  # the only cards with twelve digits
_PREFIX: Final = Pattern(r"(?:[456]|3[0456789]|2(?:22[1-9]|2[3-9]|[3-6]|7[01]|720))\d*")
_UUID: Final = Pattern("[0-9a-f]{8}-[0-9a-f]{4}-[1-8][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")
UUID_LENGTH: Final = 36

_HINTS: Final = ("cvc", "cvv", "cvn", "csc", "code", "verification")
_NAME: Final = (
    r"(?:(?:cvc|cvv|card.?code|security.?code|verification.?(?:code|value|number))[a-z0-9_-]{0,20}"
    r"|(?:cvn|csc)2?(?![a-z0-9]))"
)
_CODE: Final = Pattern(rf"({_NAME})([^a-z0-9]{{1,40}})([a-z0-9](?:[._-]?[a-z0-9]){{0,100}})", re.IGNORECASE)
_CODE_PARTS: Final = Pattern(rf"{_NAME}[\"'\\]{{0,4}}\s{{0,8}}:\s{{0,8}}(?=[\[{{])", re.IGNORECASE)
_BRACKET: Final = Pattern(r"[\[\]{}]")
_CODE_TAG: Final = Pattern(rf"(<[^<>]{{0,60}}{_NAME}[^<>]{{0,200}}>)([^<>]{{1,100}})", re.IGNORECASE)
_ESCAPE: Final = Pattern(r"\\+u([0-9a-f]{4})|&#(?:x([0-9a-f]{2,5})|(\d{2,5}));", re.IGNORECASE)

Record = TypeVar("Record")


def mask(text: str, api_key: str | None = None) -> str:
    """The text without secrets; it stays as it is if it has none.

    Secrets are also found if they are escaped, as in JSON, XML, or a URL.
    """
    plain = _plain(text)
    masked = _masked(plain, api_key)
    if masked == plain:
        return text
    as_written = _masked(text, api_key)
    left = _plain(as_written)
    return as_written if _masked(left, api_key) == left else masked


def _plain(text: str) -> str:
    """The text without what could hide a secret in it."""
    plain = text
    if "\0" in plain:  # UTF-16
        plain = plain.replace("\0", "")
    if "%" in plain:
        plain = unquote(plain, errors="replace")
    if "\\u" in plain or "&#" in plain:
        plain = _ESCAPE.sub(_unescaped, plain)
    return plain


class Masking:
    """Masks the secrets of one project in all that is kept beside its orders: the gate for every record."""

    def __init__(self) -> None:
        self.api_key: str | None = None  # in memory only, and only to find it in what is to be kept

    def text(self, text: str) -> str:
        """The text without secrets."""
        return mask(text, self.api_key)

    def record(self, record: Record) -> Record:
        """The record without secrets in any text, at any level."""
        masked: Any = self._masked(record)
        return masked  # type: ignore[no-any-return]

    def _masked(self, value: Any) -> Any:
        if type(value) is str:  # the members of an enumeration are no free text
            return mask(value, self.api_key)
        if isinstance(value, bytes):
            return self.text(value.decode(errors="surrogateescape")).encode(errors="surrogateescape")
        if isinstance(value, dict):
            return {self._masked(key): self._masked(inner) for key, inner in value.items()}
        if isinstance(value, list):
            return [self._masked(item) for item in value]
        if isinstance(value, tuple):
            items = [self._masked(item) for item in value]
            return type(value)(*items) if hasattr(value, "_fields") else tuple(items)
        return value


def _masked(text: str, api_key: str | None) -> str:
    lower = text.lower()
    if any(map(lower.__contains__, _HINTS)):
        text = _without_parts(text)
        text = _CODE_TAG.sub(rf"\1{MASK}", text)
        text = _CODE.sub(_mask_code, text)
    text = _DIGITS.sub(_mask_digits, text)
    return text.replace(api_key, MASK) if api_key else text


def _without_parts(text: str) -> str:
    """The text with a mask instead of each object or list that is the value of a CVC."""
    kept: list[str] = []
    at = 0
    for name in _CODE_PARTS.compiled.finditer(text):
        if name.start() >= at:
            kept += [text[at : name.end()], f'"{MASK}"']
            at = _end_of_value(text, name.end())
    return "".join([*kept, text[at:]])


def _end_of_value(text: str, begin: int) -> int:
    """Where an object or a list ends that begins there; the end of the text if it never does."""
    depth = 0
    for bracket in _BRACKET.compiled.finditer(text, begin):
        depth += 1 if bracket.group() in "[{" else -1
        if not depth:
            return bracket.end()
    return len(text)


def _mask_code(match: re.Match[str]) -> str:
    """A CVC has digits; what follows in words is a message about one."""
    name, between, value = match.groups()
    if not any(map(str.isdigit, value)):
        return match.group()
    is_bare = between.rstrip().endswith(":")  # in JSON it was a number
    return f'{name}{between}"{MASK}"' if is_bare else f"{name}{between}{MASK}"


def _unescaped(match: re.Match[str]) -> str:
    in_json, in_hexadecimal, in_decimal = match.groups()
    code = int(in_json or in_hexadecimal, 16) if in_json or in_hexadecimal else int(in_decimal)
    letter = chr(code)
    return match.group() if unicodedata.category(letter) in ("Cc", "Cs") else letter  # no part of a secret


def _mask_digits(match: re.Match[str]) -> str:
    """Mask the card numbers in a run of groups of digits, but leave identifiers alone."""
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
    """Mask card numbers; each begins and ends with a group."""
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
    """The group with which a card number ends that begins with ``first``, and how many were checked."""
    digits, checked = "", 0
    for index in range(first, len(groups)):
        digits += groups[index].group()
        if len(digits) > DIGITS_MAX:
            break
        if len(digits) >= DIGITS_MIN:
            checked += 1
            if _is_card_number(digits):
                return index, checked
    return None, checked


def _is_card_number(digits: str) -> bool:
    begin = "".join(str(int(digit)) for digit in digits[:4])  # other scripts have digits of their own
    prefix = _SHORT if len(digits) == DIGITS_MIN else _PREFIX
    return prefix.fullmatch(begin) is not None and is_luhn(digits)
