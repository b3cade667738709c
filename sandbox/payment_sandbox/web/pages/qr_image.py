"""The image of a QR request: a QR code padded to exactly the requested size."""

import struct
from collections.abc import Iterator, Sequence
from functools import lru_cache
from io import BytesIO
from typing import Final
from zlib import compress, crc32

QUIET_ZONE_MODULES: Final = 4  # the margin that decoders need
SIGNATURE: Final = b"\x89PNG\r\n\x1a\n"
BLACK_AND_WHITE: Final = (1, 0, 0, 0, 0)  # one bit per pixel, greyscale, default methods


@lru_cache(maxsize=64)
def qr_png(content: str, size_pixels: int) -> bytes:
    """A square PNG, ``size_pixels`` wide, that decodes to ``content`` (QR-19, QR-26)."""
    import segno  # imported late: faster startup

    code = segno.make(content, error="l", boost_error=False, micro=False)
    return _png(list(_pixel_rows(code.matrix, size_pixels)), size_pixels)


@lru_cache(maxsize=64)
def qr_svg(content: str) -> str:
    """A square picture that stays sharp at any size."""
    import segno  # imported late: faster startup

    code = segno.make(content, error="m", micro=False)
    out = BytesIO()
    code.save(out, kind="svg", border=QUIET_ZONE_MODULES, light="#ffffff", omitsize=True, xmldecl=False)
    return out.getvalue().decode()


def _pixel_rows(matrix: Sequence[bytearray], size_pixels: int) -> Iterator[str]:
    """The image row by row, one character per pixel: 1 is white. The code is centred."""
    modules = len(matrix)
    scale = max(1, size_pixels // (modules + 2 * QUIET_ZONE_MODULES))
    before = (size_pixels - modules * scale) // 2
    after = size_pixels - modules * scale - before
    yield from ["1" * size_pixels] * before
    for row in matrix:
        dots = "".join("0" * scale if module else "1" * scale for module in row)
        yield from ["1" * before + dots + "1" * after] * scale
    yield from ["1" * size_pixels] * after


def _png(rows: Sequence[str], size_pixels: int) -> bytes:
    """The PNG of these rows; segno writes only PNGs whose size is a multiple of the code's."""
    row_bytes = (size_pixels + 7) // 8
    packed = {row: int(row.ljust(row_bytes * 8, "1"), 2).to_bytes(row_bytes) for row in set(rows)}
    data = b"".join(b"\0" + packed[row] for row in rows)
    header = struct.pack(">IIBBBBB", size_pixels, size_pixels, *BLACK_AND_WHITE)
    return SIGNATURE + _chunk(b"IHDR", header) + _chunk(b"IDAT", compress(data, 9)) + _chunk(b"IEND", b"")


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", crc32(kind + data))
