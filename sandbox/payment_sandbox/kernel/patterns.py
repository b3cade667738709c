"""Regular expressions compiled on first use, for a fast startup."""

import re
from functools import cached_property
from typing import Any, AnyStr, Final, Generic


class Pattern(Generic[AnyStr]):
    """A lazily compiled regular expression, with the methods used by the sandbox."""

    def __init__(self, pattern: AnyStr, flags: int = 0) -> None:
        self.pattern: AnyStr = pattern
        self._flags = flags

    @cached_property
    def compiled(self) -> re.Pattern[AnyStr]:
        """The compiled expression."""
        return re.compile(self.pattern, self._flags)

    def search(self, text: AnyStr) -> re.Match[AnyStr] | None:
        """Return the first match in the text."""
        return self.compiled.search(text)

    def fullmatch(self, text: AnyStr) -> re.Match[AnyStr] | None:
        """Return the match if the whole text matches."""
        return self.compiled.fullmatch(text)

    def sub(self, replacement: Any, text: AnyStr) -> AnyStr:
        """Return the text with all matches replaced."""
        return self.compiled.sub(replacement, text)


FORBIDDEN_CHARACTER: Final = Pattern("[\ud800-\udfff\x00]")
"""Lone surrogates and NUL: JSON and YAML can escape them, but they are refused everywhere."""

UUID: Final = Pattern("([0-9a-f]{8})-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
"""An identifier; its first group is enough for readers to tell identifiers apart."""


def make_printable(text: str) -> str:
    """Escape the characters that would break the line or control a terminal."""
    if text.isprintable():
        return text
    return "".join(
        letter if letter.isprintable() else letter.encode("unicode_escape").decode() for letter in text
    )


_DOUBLED: Final = bytes.maketrans(b"0123456789", b"0246813579")


def is_luhn(number: str) -> bool:
    """Whether the check digit of a card number is correct."""
    digits = number.encode()[::-1]
    return (sum(digits[::2]) + sum(digits[1::2].translate(_DOUBLED)) - len(digits) * ord("0")) % 10 == 0
