"""Prints what a decoder reads in each image: python read.py DECODER IMAGE..."""

import json
import sys
from pathlib import Path

from PIL import Image

name, *files = sys.argv[1:]


def read(image: Image.Image) -> str:
    """Return the text of the code in an image."""
    if name == "zxing-cpp":
        import zxingcpp

        return "".join(code.text for code in zxingcpp.read_barcodes(image))
    if name == "zbar":
        from pyzbar.pyzbar import decode

        return "".join(code.data.decode() for code in decode(image))
    import cv2
    import numpy

    pixels = numpy.array(image)
    if name == "OpenCV":
        return cv2.QRCodeDetector().detectAndDecode(pixels)[0]
    return "".join(cv2.wechat_qrcode.WeChatQRCode().detectAndDecode(pixels)[0])


print(json.dumps({Path(file).stem: read(Image.open(file)) for file in files}))
