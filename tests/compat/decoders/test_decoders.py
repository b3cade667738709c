"""Each decoder reads the codes of bank QR requests, straight, compressed and turned, at four sizes."""

import json
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Final

import pytest
from PIL import Image

from payment_sandbox.ui.pages.bank_qr_page import qr_png
from tests.compat.packages import from_debian, python_with, version_in
from tests.howto.languages import install_from_npm
from tests.support.commands import run_program
from tests.support.tools import require

pytestmark = [pytest.mark.compat, pytest.mark.timeout(600)]
PROGRAMS: Final = Path(__file__).parent / "programs"
PATH: Final = "cb16df33-f267-4601-9428-f3b89ebf0675/e649f44a-7a07-4182-b88d-1d3645b76536"
URL: Final = f"http://127.0.0.1:8080/qr/{PATH}/"
SIZES: Final = (100, 150, 200, 2000)
PYTHON: Final = {
    "zxing-cpp": "zxing-cpp",
    "zbar": "pyzbar",
    "OpenCV": "opencv-contrib-python-headless",
    "WeChat's": "opencv-contrib-python-headless",
}
NODE: Final = {"jsQR": ("jsqr", "1"), "@zxing/library": ("@zxing/library", "0")}
FAILS: Final = {"@zxing/library": {"100 turned"}}
"""The images that a decoder does not read."""


def by_jpeg(image: Image.Image) -> Image.Image:
    """Return the image as a JPEG of quality 30 shows it."""
    file = BytesIO()
    image.save(file, "JPEG", quality=30)
    return Image.open(file).convert("L")


def turned(image: Image.Image) -> Image.Image:
    """Return the image turned by seven degrees."""
    return image.rotate(7, expand=True, fillcolor=255, resample=Image.Resampling.BICUBIC)


def images(folder: Path) -> list[str]:
    """Write the images; return their files."""
    for size in SIZES:
        straight = Image.open(BytesIO(qr_png(URL, size))).convert("L")
        for name, image in {
            "straight": straight,
            "JPEG": by_jpeg(straight),
            "turned": turned(straight),
        }.items():
            image.save(folder / f"{size} {name}.png")
    return sorted(map(str, folder.glob("*.png")))


@pytest.fixture
def check(tmp_path: Path, record_property: Callable[..., None]) -> Callable[..., None]:
    """Run a decoder; compare the images that it does not read with the table."""

    def check(command: list[str], name: str, version: str, **variables: str) -> None:
        result = run_program([*command, name, *images(tmp_path)], tmp_path, 500, **variables)
        assert result.returncode == 0, result.stderr[-3000:]
        failed = {image for image, text in json.loads(result.stdout).items() if text != URL}
        missing = f"all but {', '.join(sorted(failed))}" if failed else "all"
        record_property("tool", ("QR decoder", name, version, f"reads {missing}"))
        assert failed == FAILS.get(name, set())

    return check


@pytest.mark.parametrize("name", PYTHON)
def test_a_decoder_for_python(name: str, check: Callable[..., None]) -> None:
    """The decoder reads what the table does not except; pyzbar finds zbar in a folder."""
    python = python_with("decoders", [*sorted(set(PYTHON.values())), "numpy", "pillow"])
    (library,) = from_debian(["libzbar0"]).rglob("libzbar.so.0")
    version = version_in(python, PYTHON[name])
    check([python, str(PROGRAMS / "read.py")], name, version, LD_LIBRARY_PATH=str(library.parent))


@pytest.mark.parametrize("name", NODE)
def test_a_decoder_for_node(name: str, tmp_path: Path, check: Callable[..., None]) -> None:
    """The decoder reads what the table does not except."""
    require("nodejs", "npm")
    install_from_npm(tmp_path, {**dict(NODE.values()), "pngjs": "7"})
    (tmp_path / "read.mjs").write_text((PROGRAMS / "read.mjs").read_text())
    package = tmp_path / "node_modules" / NODE[name][0] / "package.json"
    check(["node", "read.mjs"], name, json.loads(package.read_text())["version"])
