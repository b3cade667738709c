"""Masking of secrets: the API key, card numbers and card codes (CTL-29).

Fields that hold a code are known by their names. Other text is searched by one expression for card numbers
and by one for codes; identifiers are no text. The API key is masked as the project has it, also in Base64.
"""

import json
import re
from base64 import b64encode
from collections.abc import Container, Iterator, Mapping
from contextlib import suppress
from functools import lru_cache
from itertools import chain, islice, zip_longest
from typing import Any, Final, TypeVar

from payment_sandbox.kernel.patterns import Pattern, is_luhn

MASK: Final = "***"
SECRET_KINDS: Final = "a card number, a card code or an API key"
NUMBER_MASK: Final = "0"  # a digit, so that JSON stays valid
KEY_LENGTH_MIN: Final = 16  # shorter keys may be common words, which a configuration may contain anyway
ENCODED_LENGTH_MIN: Final = 8
MATCHES_MAX: Final = 20_000  # in a text with more, all digits are masked
JSON_LENGTH_MAX: Final = 2**16  # longer texts are searched as they are

_GAP: Final = r"[ \u00a0+-]|%20|%c2%a0|\\u00a0"
_NUMBER: Final = Pattern(  # in lower-case text
    # the first digit of a brand, after no other digit but those of an escape such as %20, before a number
    r"[2-6](?:(?<![0-9].)|(?<=%[0-9a-f]{2}.)|(?<=\\u[0-9a-f]{4}.))(?=[0-9]{3})(?:(?<!2)|(?=[2-7]))"
    rf"(?=(?:(?:{_GAP})?+[0-9]){{12}})"
    rf"(?=([0-9]{{12,18}}+(?![0-9])|[0-9]{{3,7}}+({_GAP})[0-9]{{1,13}}+(?:\2[0-9]{{1,13}}+){{0,4}}(?![0-9])))"
)
DIGITS_MIN: Final = 13
DIGITS_MAX: Final = 19
_CODE_NAME: Final = Pattern(
    "c(?:v[cv]|(?:vn|sc)2?(?![a-z0-9])|ard.?code)|security.?code|verification.?(?:code|value|number)",
    re.DOTALL,
)
_CODE: Final = Pattern(rf"(?:{_CODE_NAME.pattern})(?:.{{0,60}}?([0-9]{{3,}}))?+", re.DOTALL)
"""A name and, if there are any at most 60 characters later, three digits or more."""
_IDENTIFIER: Final = Pattern(
    "([0-9a-f](?<![0-9a-z].)(?:[0-9a-f]{7}-[0-9a-f]{4}-[1-8][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"
    "|[0-9a-f]{31})(?![0-9a-z]))"
)
"""A UUID or a stored card's token."""
_HOLE: Final = "\ue000"  # takes the place of an identifier
_DIGITS: Final = Pattern("[0-9]+")

Record = TypeVar("Record")


def mask(text: str, api_key: str | None = None) -> str:
    """Return the text with its secrets masked, in time proportional to its length."""
    if not may_have_secret(text, api_key):
        return text
    for spelling in _spellings(api_key):  # first, because its digits may look like a card number
        text = text.replace(spelling, MASK)
    if len(text) <= JSON_LENGTH_MAX and text.startswith(("{", "[", '"')):
        with suppress(ValueError, RecursionError):
            document = json.loads(text, object_pairs_hook=_unrepeated)
            masked = _mask_value(document, api_key)
            return text if masked == document else json.dumps(masked)
    if _HOLE in text:
        return _mask_secrets(text)
    parts = _IDENTIFIER.compiled.split(text)
    between = _mask_secrets(_HOLE.join(parts[::2])).split(_HOLE)
    return "".join(chain.from_iterable(zip_longest(between, parts[1::2], fillvalue="")))


def may_have_secret(text: str, api_key: str | None) -> bool:
    """Whether a text has the key, or anything like a card number or the name of a code; most have not."""
    if any(map(text.__contains__, _spellings(api_key))):
        return True
    if _HOLE not in text and r"\u" not in text:  # an escape may continue what looks like an identifier
        text = _IDENTIFIER.compiled.sub(_HOLE, text)
    lower = _lower(text)
    return _NUMBER.compiled.search(lower) is not None or _CODE_NAME.compiled.search(lower) is not None


@lru_cache(maxsize=64)
def _spellings(api_key: str | None) -> list[str]:
    """Return the key, and what all Base64 texts with it have in common, by the number of bytes before it."""
    key = (api_key or "").encode()
    texts = (b64encode(b"x" * before + key).decode() for before in range(3))
    parts = [text[-(-4 * n // 3) : 4 * (n + len(key)) // 3] for n, text in enumerate(texts)]
    return [api_key, *(part for part in parts if len(part) >= ENCODED_LENGTH_MIN)] if api_key else []


def _unrepeated(items: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(fields := dict(items)) < len(items):
        raise ValueError("the first of two values with the same name would be lost")
    return fields


def _mask_secrets(text: str) -> str:
    """Mask the card numbers in a text, and then the codes, which may stand beside a number."""
    for pattern, secret_mask in ((_NUMBER, NUMBER_MASK), (_CODE, MASK)):
        pieces: list[str] = []
        done = 0
        matches = list(islice(pattern.compiled.finditer(_lower(text)), MATCHES_MAX + 1))
        if len(matches) > MATCHES_MAX:
            return _DIGITS.sub(NUMBER_MASK, text)
        for match in matches:
            start, end = _find_number(match) if pattern is _NUMBER else match.span(1)
            if start >= done:
                pieces += (text[done:start], secret_mask)
                done = end
        text = "".join((*pieces, text[done:]))
    return text


def _find_number(match: re.Match[str]) -> tuple[int, int]:
    """Return where a number with a correct check digit is; other groups may follow it, such as a date."""
    start, gap = match.start(), match[2] or " "
    groups = match.string[start : match.end(1)].split(gap)
    while len(digits := "".join(groups)) >= DIGITS_MIN:
        if len(digits) <= DIGITS_MAX and is_luhn(digits):
            return start, start + len(gap.join(groups))
        groups.pop()
    return -1, -1


def _lower(text: str) -> str:
    return text.replace("\u0130", "i").lower()  # a Turkish letter becomes two: all others stay in place


class Masking:
    """Masks the secrets of one project in all records other than its orders."""

    api_key: str | None = None  # in memory only, and only to recognize the key in records

    def mask_text(self, text: str) -> str:
        """Return the text with its secrets masked."""
        return mask(text, self.api_key)

    def mask_record(self, record: Record, name: str = "") -> Record:
        """Return the record, or the value of a field with a name, with its secrets masked at every level."""
        masked: Any = _mask_value(record, self.api_key, name)
        return masked  # type: ignore[no-any-return]

    def secret_paths(self, document: Any, ignored: Container[str] = (), path: str = "") -> Iterator[str]:
        """Yield the paths of the secrets in a configuration, except under ``ignored`` keys."""
        masking = self.without_short_key()
        if isinstance(document, Mapping):
            for name, inner in document.items():
                below = f"{path}.{name}" if path else str(name)
                if name not in ignored and (is_code(name, inner) or masking.mask_record(name) != name):
                    yield masking.mask_text(below)
                elif name not in ignored:
                    yield from masking.secret_paths(inner, ignored, below)
        elif isinstance(document, list | tuple):
            for index, inner in enumerate(document):
                yield from masking.secret_paths(inner, ignored, f"{path}[{index}]")
        elif isinstance(document, str) and masking.mask_text(document) != document:
            yield masking.mask_text(path)

    def without_short_key(self) -> "Masking":
        """Return a masking that ignores a short API key, because it may be a common word."""
        return self if len(self.api_key or "") >= KEY_LENGTH_MIN else Masking()


def is_code(name: Any, value: Any) -> bool:
    """Whether the value of a field is a card code; truth values and texts without digits are none."""
    if not value or isinstance(value, bool) or _CODE_NAME.compiled.search(_lower(str(name))) is None:
        return False
    return not isinstance(value, str) or any(map(str.isdigit, value))


def _mask_value(value: Any, api_key: str | None, name: Any = "") -> Any:
    if name and is_code(name, value):
        return MASK
    if type(value) is str:  # enumeration members are not free text
        return mask(value, api_key)
    if isinstance(value, bytes):
        return mask(value.decode(errors="surrogateescape"), api_key).encode(errors="surrogateescape")
    if isinstance(value, dict):
        return {_mask_value(key, api_key): _mask_value(inner, api_key, key) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        masked = [_mask_value(item, api_key) for item in value]
        return masked if isinstance(value, list) else getattr(value, "_make", tuple)(masked)
    return 0 if _is_whole(value) and mask(str(value)) != str(value) else value


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) or (isinstance(value, float) and value.is_integer())
