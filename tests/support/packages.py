"""Folders and modules of both packages."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
SOURCE: Final = ROOT / "sandbox"
PACKAGES: Final = (SOURCE / "payment_sandbox", SOURCE / "pytest_payment_sandbox")


def sources() -> Iterator[Path]:
    """Yield every module of both packages."""
    for package in PACKAGES:
        yield from sorted(package.rglob("*.py"))


def module_name(path: Path) -> str:
    """Return the dotted name of a module."""
    return ".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__")
