"""Libraries that are loaded at their first use, and what to install if one is missing.

The comments say what a start without the library saves, in milliseconds of processor time.
"""

import json
import sys
from contextlib import suppress
from pathlib import Path
from shutil import which
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote

from payment_sandbox.loading import LazyModule

if TYPE_CHECKING:
    import asyncio as asyncio
    from importlib import metadata as metadata

    import freezegun as freezegun
    import markdown_it as markdown_it
    import platformdirs as platformdirs
    import segno as segno
    import trustme as trustme
    from babel import core as core
    from babel import dates as dates
    from babel import numbers as numbers
    from mdit_py_plugins import anchors as anchors
    from ruamel import yaml as yaml
else:
    asyncio = LazyModule("asyncio")  # 11 of a first test
    core = LazyModule("babel.core")  # these three: 7 of serve
    dates = LazyModule("babel.dates")
    numbers = LazyModule("babel.numbers")
    freezegun = LazyModule("freezegun")  # 22 of a first test
    anchors = LazyModule("mdit_py_plugins.anchors")  # these two: 17 of serve
    markdown_it = LazyModule("markdown_it")
    metadata = LazyModule("importlib.metadata")  # 8 of a command
    platformdirs = LazyModule("platformdirs")  # 4 of serve
    segno = LazyModule("segno")  # 6 of serve
    trustme = LazyModule("trustme")  # 29 of serve
    yaml = LazyModule("ruamel.yaml")  # 10 of serve, 12 of a first test

SERVER_EXTRA: Final = "payment-sandbox[server]"
MCP_EXTRA: Final = "payment-sandbox[mcp]"
TLS_EXTRA: Final = "payment-sandbox[tls]"
POSTGRESQL_EXTRA: Final = "payment-sandbox[postgresql]"
POSTGRESQL_LIBRARY: Final = "psycopg-binary"


class NotInstalled(Exception):
    """An extra is missing; the message contains the installation command."""

    def __init__(self, feature: str, extra: str) -> None:
        super().__init__(f"{feature} needs {extra}: {_pip()} install '{installable(extra)}'")


def _pip() -> str:
    """Return the pip of this environment: by its path unless it is the first on the PATH."""
    if "pipx" in Path(sys.prefix).parts:
        return "pipx runpip payment-sandbox"
    pip = Path(sys.prefix) / ("Scripts/pip.exe" if sys.platform == "win32" else "bin/pip")
    return str(pip) if pip.is_file() and which("pip") != str(pip) else "pip"


def installable(extra: str) -> str:
    """Return the extra with the clone that this package came from, or else with its name."""
    origin: dict[str, Any] = {}
    with suppress(metadata.PackageNotFoundError):  # the single file has no metadata
        origin = json.loads(metadata.distribution("payment-sandbox").read_text("direct_url.json") or "{}")
    clone = Path(unquote(origin.get("url", "").removeprefix("file://")))
    is_cloned = clone.is_absolute() and (clone / "pyproject.toml").is_file()
    return extra.replace("payment-sandbox", str(clone), 1) if is_cloned else extra


def missing_driver(error: ImportError) -> NotInstalled:
    """Return an error that names what to install for PostgreSQL: the extra, or a library for its driver.

    Raises:
        ImportError: the missing module is part of this package.
    """
    if error.name is not None and error.name.startswith(__package__):
        raise error
    is_missing = isinstance(error, ModuleNotFoundError)
    return NotInstalled("a state in PostgreSQL", POSTGRESQL_EXTRA if is_missing else POSTGRESQL_LIBRARY)


def missing_library(error: ModuleNotFoundError) -> NotInstalled:
    """Return an error that names the extra to install for a missing library.

    Raises:
        ModuleNotFoundError: the missing module is part of this package.
    """
    if error.name is None or error.name.startswith(__package__):
        raise error
    return NotInstalled(f"this feature (the library {error.name} is missing)", SERVER_EXTRA)
