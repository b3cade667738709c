"""Seeded identifiers: one stream per kind, so that the same seed and calls give the same text."""

from hashlib import blake2b
from secrets import randbits

SEED_BITS = 63


def fresh_seed() -> int:
    """A seed nobody can guess, for a project that asked for none."""
    return randbits(SEED_BITS)


class Ids:
    """Draws identifiers; ``counts`` (kind to number drawn) is its whole state besides seed and series.

    Every series of a seed draws other identifiers: each reset of a project begins the next one.
    """

    __slots__ = ("_prefix", "counts", "seed", "series")

    def __init__(self, seed: int, counts: dict[str, int] | None = None, series: int = 0) -> None:
        self.seed = seed
        self.series = series
        self.counts: dict[str, int] = dict(counts or {})
        self._prefix = f"{seed}.{series}" if series else f"{seed}"

    def copied(self) -> "Ids":
        """The same draws from here on, for who may have to take them back."""
        return Ids(self.seed, self.counts, self.series)

    def _draw(self, kind: str) -> bytes:
        count = self.counts[kind] = self.counts.get(kind, 0) + 1
        return blake2b(f"{self._prefix}:{kind}:{count}".encode(), digest_size=16).digest()

    def uuid(self, kind: str) -> str:
        """The next identifier of its kind, a version 4 UUID as text."""
        text = self._draw(kind).hex()
        variant = "89ab"[int(text[16], 16) & 3]
        return f"{text[:8]}-{text[8:12]}-4{text[13:16]}-{variant}{text[17:20]}-{text[20:]}"

    def token(self, kind: str) -> str:
        """The next token of its kind: 32 hexadecimal digits."""
        return self._draw(kind).hex()

    def digits(self, kind: str, length: int) -> str:
        """The next text of ``length`` decimal digits (at most 36)."""
        return str(int.from_bytes(self._draw(kind)) % 10**length).zfill(length)

    def number(self, kind: str, below: int) -> int:
        """The next whole number from 0 up to ``below``."""
        return int.from_bytes(self._draw(kind)) % below
