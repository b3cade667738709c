"""The image of a QR request: a code padded to exactly the pixels that were asked for."""

from functools import lru_cache
from io import BytesIO
from typing import Final

QUIET_ZONE_MODULES: Final = 4  # what decoders need around the code


@lru_cache(maxsize=64)
def qr_png(content: str, size_pixels: int) -> bytes:
    """A PNG of exactly ``size_pixels`` squared that decodes to ``content`` (QR-19, QR-26)."""
    import segno  # here, because starting up is faster without them
    from PIL import Image

    code = segno.make(content, error="l", boost_error=False, micro=False)
    rows = [bytes(255 - 255 * module for module in row) for row in code.matrix]
    modules = len(rows)
    scale = max(1, size_pixels // (modules + 2 * QUIET_ZONE_MODULES))
    drawn = Image.frombytes("L", (modules, modules), b"".join(rows))
    drawn = drawn.resize((modules * scale, modules * scale), Image.Resampling.NEAREST)
    image = Image.new("L", (size_pixels, size_pixels), 255)
    offset_pixels = (size_pixels - modules * scale) // 2
    image.paste(drawn, (offset_pixels, offset_pixels))
    file = BytesIO()
    image.save(file, "PNG", optimize=True)
    return file.getvalue()
