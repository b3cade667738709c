"""Seeded identifiers: one stream per kind, so that equal seeds and calls give equal identifiers."""

from hashlib import blake2b
from secrets import randbits, token_hex
from typing import Final

SEED_BITS = 63

TOKEN_PATTERN: Final = "[0-9a-f]{32}"
"""The form of generated keys and of the tokens of stored cards."""


def fresh_seed() -> int:
    """Return a random seed, for a project created without one."""
    return randbits(SEED_BITS)


def secret_key() -> str:
    """Return a random key, not derivable from stored data: 32 hexadecimal digits."""
    return token_hex(16)


class Ids:
    """A generator of identifiers; its whole state is the seed, the series and the ``counts`` by kind.

    Each series of a seed gives different identifiers; each reset of a project starts the next series.
    """

    __slots__ = ("_prefix", "counts", "seed", "series")

    def __init__(self, seed: int, counts: dict[str, int] | None = None, series: int = 0) -> None:
        self.seed = seed
        self.series = series
        self.counts: dict[str, int] = dict(counts or {})
        self._prefix = f"{seed}.{series}" if series else f"{seed}"

    def copy(self) -> "Ids":
        """Return a copy with the same state; discard it to undo its draws."""
        return Ids(self.seed, self.counts, self.series)

    def _draw(self, kind: str) -> bytes:
        count = self.counts[kind] = self.counts.get(kind, 0) + 1
        return blake2b(f"{self._prefix}:{kind}:{count}".encode(), digest_size=16).digest()

    def uuid(self, kind: str) -> str:
        """Return the next identifier of a kind: a version 4 UUID as a string."""
        text = self._draw(kind).hex()
        variant = "89ab"[int(text[16], 16) & 3]
        return f"{text[:8]}-{text[8:12]}-4{text[13:16]}-{variant}{text[17:20]}-{text[20:]}"

    def token(self, kind: str) -> str:
        """Return the next token of a kind: 32 hexadecimal digits."""
        return self._draw(kind).hex()

    def digits(self, kind: str, length: int) -> str:
        """Return the next string of ``length`` decimal digits (at most 36)."""
        return str(int.from_bytes(self._draw(kind)) % 10**length).zfill(length)

    def number(self, kind: str, below: int) -> int:
        """Return the next integer from 0 up to, but not including, ``below``."""
        return int.from_bytes(self._draw(kind)) % below
