"""Folders and modules of the distributions."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
SOURCE: Final = ROOT / "sandbox"
MAIN: Final = SOURCE / "payment_sandbox"
WINGS: Final = tuple(
    sorted(file.parent for file in SOURCE.glob("*/__init__.py") if file.parent.name != MAIN.name)
)
PACKAGES: Final = (MAIN, *WINGS)


def sources() -> Iterator[Path]:
    """Yield every module of all packages."""
    for package in PACKAGES:
        yield from sorted(package.rglob("*.py"))


def module_name(path: Path) -> str:
    """Return the dotted name of a module."""
    return ".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__")
