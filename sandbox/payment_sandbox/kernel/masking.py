"""Masking of secrets in text: the API key, card numbers and card codes (CTL-29).

The key is masked exactly as the project has it, also in a Basic header; a card number as digits, alone or in
the usual groups; a card code as the value of a field with its name. Secrets in any other spelling are not
recognized.

Masking a text takes about 20 times as long as ``json.dumps``, because others wait meanwhile; up to 60 times
if it has nothing but identifiers and secrets. Numbers are searched in the *shape* of a text, in which all
digits are alike, because a pattern that begins with a literal is fast, and the check digits of all numbers
are calculated at once. Fields of card codes take longer: in a text with more than one in 300 characters,
all digits from there on are masked.
"""

import json
import re
from base64 import b64decode, b64encode
from collections.abc import Container, Iterator, Mapping
from contextlib import suppress
from functools import lru_cache
from io import BytesIO
from itertools import chain, zip_longest
from math import ceil
from typing import Any, Final, TypeVar

from payment_sandbox.kernel.ids import TOKEN_PATTERN
from payment_sandbox.kernel.patterns import Pattern

MASK: Final = "***"
SECRET_KINDS: Final = "a card number, a card code or an API key"
NUMBER_MASK: Final = "0"  # a digit, so that JSON stays valid
PAIR_LENGTH: Final = 2
NAME_LENGTH_MAX: Final = 1000  # also the names of all headers of a request and its response
KEY_LENGTH_MIN: Final = 16
"""Shorter API keys may be common words, which a configuration may contain anyway."""

_UUID: Final = "[0-9a-f]{8}-[0-9a-f]{4}-[1-8][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"
_HARMLESS_TEXT: Final = Pattern(
    rf"[a-z_-]{{0,40}}|{_UUID}|{TOKEN_PATTERN}|\d{{4}}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{{6}}\+00:00"
)
"""Words, identifiers and timestamps: most strings in a record match and skip the other checks."""

_SUBSTITUTES: Final = (
    (b"\xc2\xa0", b"\xf8"),
    (b"%20", b"\xf9"),
    (b"%C2%A0", b"\xfa"),
    (b"\\u00a0", b"\xfb"),
)
"""The long spellings of a gap between groups, and bytes that UTF-8 has not, which take their places."""
_DIGITS: Final = b"0123456789"
_SHAPE: Final = bytes(
    ord("0" if byte in b"0123456789" else "a" if byte in b"ABCDEFabcdef" else "_")
    if byte in b"0123456789ABCDEFabcdef +-\xf8\xf9\xfa\xfb"
    else byte
    if byte in b"%\xfd\xfe\xff"
    else ord(".")
    for byte in range(256)
)
"""Digits, hexadecimal letters and gaps."""
_ESCAPES: Final = (b"%00", b"%0a", b"%a0", b"%aa")
_TOO_LONG: Final = (b"0" * 20, b"9" * 20)
_NUMBER: Final = Pattern(
    rb"(0000(?<![09\xfd\xff]0000)"
    rb"(?:0{8,15}+END|_(?:0000_0000(?:_0000(?:_?0{1,3}+END|END)|END)|0{6}_0{4,6}+END)))".replace(
        b"END", rb"(?![09\xfe\xff])"
    )
)
"""A number in a form of card numbers, in the shape of a text."""
_DIGITS_MIN: Final = b"0" * 12
_IN_GROUPS: Final = (b"0000_0000_0000", b"0000_000000_0000")
"""Each number has this or one of these in its shape, which most texts have not."""
_OTHERS_MAX: Final = 100
"""The other numbers examined one by one, such as those of orders and articles; many are examined together."""
_HEXADECIMAL: Final = bytes(
    ord("0" if byte in b"0123456789abcdef" else "z" if byte in range(ord("g"), ord("z") + 1) else ".")
    if byte not in b"-\xf9\xfa\xfb"
    else byte
    for byte in range(256)
)
_LONG_HEXADECIMAL: Final = (b"0" * 41, b"z" * 33 + b"0" * 8)
_IDENTIFIER: Final = Pattern(rb"(00000000(?:-0000-0000-0000-0{12}|(?<![0z\xf9-\xfb]0{8})0{24}(?![0z])))")
"""An identifier or a stored card's token, whose digits may look like a card number, in this shape."""
_IN_IDENTIFIERS: Final = (b"-0000-0000-0000-", b"0" * 32)
_SUBSTITUTE: Final = ((b"\xfc", b"\xfd"), (b"\xfe", b"\xff"))
"""Bytes that take the places of identifiers, by whether these begin and end with a digit."""
_ANY_SUBSTITUTE: Final = bytes.maketrans(b"\xfd\xfe\xff", b"\xfc" * 3)
_LETTERS: Final = ord("a")
_DASH: Final = ord("-")
_ESCAPE_END: Final = Pattern(rb"%[0-9A-Fa-f]?\Z")
_GROUP_END: Final = Pattern(b"[0-9]{4,6}[a-f]")  # in 1111 1111abcd-...
_VERSIONS: Final = b"12345678"
_VARIANTS: Final = b"89ab"
_NOT_IN_NUMBERS: Final = bytes(set(range(256)) - set(_DIGITS) - set(b"\n"))
_BRANDS: Final = rb"6|5[0678]|(?=[0-9]{13})(?:[45]|3[0456789]|2(?:22[1-9]|2[3-9]|[3-6]|7[01]|720))"
"""The first digits of card numbers; only two brands have numbers of twelve digits."""
_OF_BRAND: Final = Pattern(_BRANDS)
_OF_NO_BRAND: Final = Pattern(rb"\n(?!%b)[0-9]+" % _BRANDS)
"""A line with a number of no card's brand."""
_WRONG: Final = b"\n1"  # a wrong check digit
_DIGITS_MAX: Final = 20  # an even number, one more than numbers have
_VALUES: Final = bytes.maketrans(_DIGITS + b" ", bytes(range(10)) + b"\0")
_DOUBLED: Final = bytes.maketrans(_DIGITS + b" ", bytes((0, 2, 4, 6, 8, 1, 3, 5, 7, 9, 0)))
_IS_MULTIPLE: Final = bytes(not value % 10 for value in range(256))

_CODE_HINTS: Final = (b"cv", b"csc", b"verification")
_CODE_WORD: Final = b"code"
_CODE_NAMES: Final = Pattern(
    b"code(?:%b)"
    % b"|".join(b"(?<=%b%bcode)" % (word, b"." * gap) for word in (b"card", b"security") for gap in range(5)),
    re.DOTALL,
)
"""The other names of card codes, with up to one character between their words: postal codes are frequent."""
_NAME: Final = (
    "(?:c(?:vc|vv|ard.?code|(?:vn|sc)2?(?![a-z0-9]))|security.?code|verification.?(?:code|value|number))"
)
_CODE_NAME: Final = Pattern(_NAME, re.IGNORECASE)
_FORM_ESCAPES: Final = tuple(
    (escape, character * 3)
    for escape, character in zip(("%20", "%22", "%27", "%3a", "%3d", "%5d"), " \"':=]", strict=True)
)
_QUOTES: Final = r"[\"'\\]{0,12}+"
_CODE_VALUES: Final = (
    r'(?<=")(?=[^"\\\d]*+\d)[^"\\]{1,100}(?=\\{0,3}")',
    r"\[(?=[^\[\]{}\d]*+\d)[^\[\]{}]{0,200}\]",
    r"\{(?=[^\[\]{}\d]*+\d)[^\[\]{}]{0,200}\}",
    f"(?=[a-z._-]*+[0-9])(?!{_NAME})[a-z0-9._-]{{1,100}}",
)
_CODE: Final = Pattern(
    rf'"(?=[^"\\]*+"\s*+:)(?:[^"\\cvs]++|(?!{_NAME})[cvs])*+{_NAME}[^"\\]*+"\s*+:\s*+'
    r'("(?:[^"\\\d]++|\\.)*+\d(?:[^"\\]++|\\.)*+(?:"|\Z)|\[[^\[\]{}"\d]*+\d[^\[\]{}"]*+\]|[\[{]'
    r"|[0-9.+-][0-9.e+-]*+)"
    rf"|{_NAME}[\w-]*+\]{{0,3}}+{_QUOTES}(?:[\s+:=]{{1,60}}+{_QUOTES}({'|'.join(_CODE_VALUES)}))?+",
    re.DOTALL,
)
"""A field that is named like a card code, in lower-case text: a field of JSON with its value in the first
group, or any other field with its value in the second. A name without a value matches, too, so that no text
is searched twice."""
_OF_JSON: Final = 1
_DECODER: Final = json.JSONDecoder()
_BASIC: Final = Pattern(r"(\bbasic[\s:]{1,8})((?a:[a-z0-9+/]{4,4000}))={0,2}", re.IGNORECASE)
_CODES_MIN: Final = 20
_CHARACTERS_PER_CODE: Final = 300
_WITHOUT_DIGITS: Final = bytes.maketrans(_DIGITS, NUMBER_MASK.encode() * 10)
_LOWER: Final = str.maketrans("ABCDEFGHIJKLMNOPQRSTUVWXYZ", "abcdefghijklmnopqrstuvwxyz")

Record = TypeVar("Record")


def mask(text: str, api_key: str | None = None) -> str:
    """Return the text with its secrets masked, in time proportional to its length."""
    if api_key is not None and api_key in text:  # first, because its digits may look like a card number
        text = text.replace(api_key, MASK)
    if text.isalpha() or _HARMLESS_TEXT.fullmatch(text) is not None:
        return text
    data = text.encode("utf-8", "surrogatepass")
    if not _may_have_secret(data, api_key):
        return text
    lower = data.lower()
    if api_key is not None and b"basic" in lower:
        text = _BASIC.sub(lambda match: _mask_basic(match, api_key), text)
    text, rest = _mask_codes(text, _lower(text)) if _may_have_code(lower) else (text, "")
    return _mask_numbers(text) + rest


def _may_have_secret(data: bytes, api_key: str | None = None) -> bool:
    """Whether a text in UTF-8 may have a secret; most have none, and are examined no further."""
    lower = data.lower()
    if _may_have_code(lower) or _may_have_number(_shorten_gaps(data)):
        return True
    if api_key is None:
        return False
    return api_key.encode() in data or (
        b"basic" in lower and any(map(data.__contains__, _encoded_parts(api_key)))
    )


def _may_have_code(lower: bytes) -> bool:
    if any(map(lower.__contains__, _CODE_HINTS)):
        return True
    return _CODE_WORD in lower and _CODE_NAMES.search(lower) is not None


def _may_have_number(data: bytes) -> bool:
    shape = _shape(data)
    if any(map(shape.__contains__, _IN_GROUPS)):
        return True
    place = shape.find(_DIGITS_MIN)
    for _ in range(_OTHERS_MAX):
        if place < 0:
            return False
        if _OF_BRAND.compiled.match(data, place) is not None:
            return True
        place += len(_DIGITS_MIN)
        while shape.startswith(b"0", place):
            place += 1
        place = shape.find(_DIGITS_MIN, place)
    return True


def _shorten_gaps(data: bytes) -> bytes:
    """Replace the long spellings of a gap between groups by a byte each."""
    for gap, byte in _SUBSTITUTES:
        if gap[0] in data:
            data = data.replace(gap, byte)
    return data


def _mask_codes(text: str, lower: str) -> tuple[str, str]:
    """Mask the values of fields named like a card code; return a rest whose digits are all masked apart."""
    pieces: list[str] = []
    copied = done = 0
    codes_max = max(_CODES_MIN, len(text) // _CHARACTERS_PER_CODE)
    for examined, code in enumerate(_CODE.compiled.finditer(_unescape(lower))):
        group = code.lastindex or 0
        start, end = code.span(group)
        if start < done:
            continue
        if group == _OF_JSON and text[start:end] in ("[", "{"):
            end = _value_end(text, start)
        if examined > codes_max or end < start:
            return "".join((*pieces, text[copied:start])), _mask_digits(text[start:])
        if not group:
            continue
        done = end
        if any(map(str.isdigit, text[start:end])):
            pieces += (text[copied:start], _code_mask(text, start, group))
            copied = end
    return "".join((*pieces, text[copied:])) if pieces else text, ""


def _code_mask(text: str, start: int, group: int) -> str:
    """Return the mask of a value, in quotes if it has none."""
    is_bare = group == _OF_JSON or text[max(0, start - 60) : start].rstrip().endswith(":")
    return f'"{MASK}"' if is_bare else MASK


def _unescape(text: str) -> str:
    """Replace escapes of a form's punctuation by as many characters."""
    if "%" in text:
        for escape, characters in _FORM_ESCAPES:
            text = text.replace(escape, characters)
    return text


def _value_end(text: str, start: int) -> int:
    """Return the end of a list or an object; -1 if it is cut off or wrong."""
    with suppress(ValueError, RecursionError):
        return _DECODER.raw_decode(text, start)[1]
    return -1


def _mask_digits(text: str) -> str:
    data = text.encode("utf-8", "surrogatepass")
    return data.translate(_WITHOUT_DIGITS).decode("utf-8", "surrogatepass")


def _mask_numbers(text: str) -> str:
    """Mask card numbers, except in identifiers."""
    data = _shorten_gaps(text.encode("utf-8", "surrogatepass"))
    if not _may_have_number(data):
        return text
    data, identifiers = _take_identifiers(data)
    parts = _read_parts(data, _NUMBER.compiled.split(_shape(data)))
    are_secret = _are_card_numbers(parts[1::2])
    if not any(are_secret):
        return text
    number_mask = NUMBER_MASK.encode()
    parts[1::2] = [
        number_mask if is_secret else part for is_secret, part in zip(are_secret, parts[1::2], strict=True)
    ]
    masked = b"".join(parts)
    if identifiers:
        between = masked.translate(_ANY_SUBSTITUTE).split(_SUBSTITUTE[0][0])
        masked = b"".join(chain.from_iterable(zip_longest(between, identifiers, fillvalue=b"")))
    for gap, byte in _SUBSTITUTES:
        masked = masked.replace(byte, gap)
    return masked.decode("utf-8", "surrogatepass")


def _shape(data: bytes) -> bytes:
    shape = data.translate(_SHAPE)
    if b"%" in shape:
        for escape in _ESCAPES:  # no number begins in an escape
            shape = shape.replace(escape, b"...")
    return shape.replace(*_TOO_LONG)


def _take_identifiers(data: bytes) -> tuple[bytes, list[bytes]]:
    """Return the text with a byte for each identifier, and the identifiers."""
    hexadecimal = data.translate(_HEXADECIMAL).replace(*_LONG_HEXADECIMAL)
    if not any(map(hexadecimal.__contains__, _IN_IDENTIFIERS)):
        return data, []
    parts = _read_parts(data, _IDENTIFIER.compiled.split(hexadecimal))
    identifiers: list[bytes] = []
    for place in range(1, len(parts), 2):
        identifier, before = parts[place], parts[place - 1][-5:]
        if before[-1:].isdigit() or (
            before[:4].isdigit() and _GROUP_END.compiled.match(identifier) is not None
        ):
            continue  # the end of a number
        if b"%" in before and _ESCAPE_END.search(before) is not None:
            continue
        if identifier[8] == _DASH and (identifier[14] not in _VERSIONS or identifier[19] not in _VARIANTS):
            continue
        parts[place] = _SUBSTITUTE[identifier[0] < _LETTERS][identifier[-1] < _LETTERS]
        identifiers.append(identifier)
    return b"".join(parts), identifiers


def _read_parts(data: bytes, parts: list[bytes]) -> list[bytes]:
    """Split a text like its shape."""
    return list(map(BytesIO(data).read, map(len, parts)))


def _are_card_numbers(numbers: list[bytes]) -> bytes:
    """Return 1 for each number that has a brand and a correct check digit, and 0 for each other.

    Each column of digits is an integer with a byte for each number, into which the sum of its digits fits.
    """
    if not numbers:
        return b""
    lines = b"\n".join((b"", *numbers, b"")).translate(None, _NOT_IN_NUMBERS)
    numbers = _OF_NO_BRAND.sub(_WRONG, lines).split(b"\n")[1:-1]
    digits = b"%20b" * len(numbers) % tuple(numbers)
    values = (digits.translate(_DOUBLED), digits.translate(_VALUES))
    columns = (values[place % 2][place::_DIGITS_MAX] for place in range(_DIGITS_MAX))
    return sum(map(int.from_bytes, columns)).to_bytes(len(numbers)).translate(_IS_MULTIPLE)


@lru_cache(maxsize=64)
def _encoded_parts(api_key: str) -> tuple[bytes, ...]:
    """Return what is the same in all Base64 texts that contain the key, by the bytes before the key."""
    key = api_key.encode()
    return tuple(
        b64encode(b"x" * before + key)[ceil(before * 8 / 6) : (before + len(key)) * 8 // 6]
        for before in range(3)
    )


def _lower(text: str) -> str:
    """Return the text with its letters in lower case, each in its place."""
    lower = text.lower()
    return lower if len(lower) == len(text) else text.translate(_LOWER)


class Masking:
    """Masks the secrets of one project in all records other than its orders."""

    def __init__(self, own_id: str = "") -> None:
        """``own_id`` is the id of the project, which most records contain."""
        self.api_key: str | None = None  # in memory only, and only to recognize the key in records
        self._own_id, self._own_path = f'"{own_id}"'.encode(), f"/{own_id}/".encode()

    def mask_text(self, text: str) -> str:
        """Return the text with its secrets masked."""
        return mask(text, self.api_key)

    def is_clean(self, data: bytes) -> bool:
        """Whether a text has no secrets; the project's own id, alone in its place, is not examined."""
        others = data.replace(self._own_id, b'""').replace(self._own_path, b"//")
        if not _may_have_secret(others, self.api_key):
            return True
        text = others.decode(errors="surrogateescape")
        return self.mask_text(text) == text

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
    if not isinstance(name, str) or isinstance(value, bool) or not value or not is_code_name(name):
        return False
    return not isinstance(value, str) or any(map(str.isdigit, value))


def is_code_name(name: str) -> bool:
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
