"""Decoding of QR codes in pictures."""

from io import BytesIO

import zxingcpp
from PIL import Image

ONLY_QR = zxingcpp.BarcodeFormats(zxingcpp.BarcodeFormat.QRCode)


def read_code(image: Image.Image | bytes) -> str:
    """Return the content of the QR code in a picture.

    Other formats are disabled, since the modules of one code in a thousand resemble a bar code.
    """
    picture = Image.open(BytesIO(image)) if isinstance(image, bytes) else image
    texts = {code.text for code in zxingcpp.read_barcodes(picture, ONLY_QR)}
    (text,) = texts
    return str(text)
