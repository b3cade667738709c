"""Decoding of QR codes in pictures and in SVG."""

import re
from io import BytesIO

import zxingcpp
from PIL import Image, ImageDraw

SCALE = 8
ONLY_QR = zxingcpp.BarcodeFormats(zxingcpp.BarcodeFormat.QRCode)


def read_code(image: Image.Image | bytes) -> str:
    """Return the content of the QR code in a picture.

    Other formats are disabled, since the modules of one code in a thousand resemble a bar code.
    """
    picture = Image.open(BytesIO(image)) if isinstance(image, bytes) else image
    texts = {code.text for code in zxingcpp.read_barcodes(picture, ONLY_QR)}
    (text,) = texts
    return str(text)


def read_svg(svg: str) -> str:
    """Return the content of an SVG code, whose modules are horizontal strokes, as segno draws them."""
    view_box = re.search(r'viewBox="0 0 (\d+) (\d+)"', svg)
    strokes = re.search(r'class="qrline"[^>]*d="([^"]+)"', svg) or re.search(
        r'stroke="#000"[^>]*d="([^"]+)"', svg
    )
    assert view_box is not None, svg[:200]
    assert strokes is not None, svg[:200]
    size = int(view_box[1])
    image = Image.new("L", (size * SCALE, size * SCALE), 255)
    draw = ImageDraw.Draw(image)
    x = y = 0.0
    for command, numbers in re.findall(r"([Mmh])([-\d. ]+)", strokes[1]):
        values = [float(number) for number in re.findall(r"-?[\d.]+", numbers)]
        if command == "M":
            x, y = values
        elif command == "m":
            x, y = x + values[0], y + values[1]
        else:
            top, end = (y - 0.5) * SCALE, x + values[0]
            draw.rectangle((x * SCALE, top, end * SCALE - 1, top + SCALE - 1), fill=0)
            x = end
    return read_code(image)
