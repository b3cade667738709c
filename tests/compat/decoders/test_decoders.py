"""Each decoder of QR codes on the machine reads the codes of bank QR requests, straight and turned, large and small."""

from collections.abc import Callable
from io import BytesIO
from typing import Any

import pytest
from PIL import Image

from payment_sandbox.ui.pages.bank_qr_page import qr_png

pytestmark = pytest.mark.compat
PATH = "cb16df33-f267-4601-9428-f3b89ebf0675/e649f44a-7a07-4182-b88d-1d3645b76536"
URL = f"http://127.0.0.1:8080/qr/{PATH}/"
SIZES = (100, 150, 200, 2000)


def by_zxing(image: Image.Image) -> str:
    """Read a code with zxing-cpp."""
    codes = pytest.importorskip("zxingcpp").read_barcodes(image)
    return codes[0].text if codes else ""


def by_zbar(image: Image.Image) -> str:
    """Read a code with zbar."""
    codes = pytest.importorskip("pyzbar.pyzbar", exc_type=ImportError).decode(image)
    return codes[0].data.decode() if codes else ""


def by_opencv(image: Image.Image) -> str:
    """Read a code with OpenCV."""
    pixels: Any = pytest.importorskip("numpy").array(image)
    text: str = pytest.importorskip("cv2").QRCodeDetector().detectAndDecode(pixels)[0]
    return text


def by_jpeg(image: Image.Image) -> Image.Image:
    """Return the image as a JPEG of quality 30 shows it."""
    file = BytesIO()
    image.save(file, "JPEG", quality=30)
    return Image.open(file).convert("L")


def turned(image: Image.Image) -> Image.Image:
    """Return the image turned by seven degrees."""
    return image.rotate(7, expand=True, fillcolor=255, resample=Image.Resampling.BICUBIC)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("seen", [lambda image: image, by_jpeg, turned], ids=["straight", "JPEG", "turned"])
@pytest.mark.parametrize("read", [by_zxing, by_zbar, by_opencv], ids=["zxing-cpp", "zbar", "OpenCV"])
def test_a_decoder_reads_the_code(
    read: Callable[[Image.Image], str], seen: Callable[[Image.Image], Image.Image], size: int
) -> None:
    """The code is read at this size, as a browser shows it, compressed, and turned."""
    image = Image.open(BytesIO(qr_png(URL, size))).convert("L")
    assert read(seen(image)) == URL
