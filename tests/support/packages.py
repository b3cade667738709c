"""Where the source of the distributions is."""

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
    """Every module of all packages."""
    for package in PACKAGES:
        yield from sorted(package.rglob("*.py"))


def module_name(path: Path) -> str:
    """The name under which a module is imported."""
    return ".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__")
