"""Prints the requirements in a lock file: ``python -m tests.requirements serve|dev``.

``requirements.lock`` has what ``make run`` and the image need, which is the server's.
"""

import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

ROOT = Path(__file__).parent.parent
EXTRAS: Final = {"serve": ("server", "tls", "postgresql"), "dev": ("server", "tls", "postgresql", "mcp")}
"""The extras in each lock file; ``mcp`` is large, and few users need it."""
BINARY: Final = "psycopg-binary"
"""The package for development that the image needs, too: it has no libpq of its own."""


def declared() -> dict[str, Any]:
    """Read ``pyproject.toml``."""
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def name_of(requirement: str) -> str:
    """Return the normalised package name of a requirement."""
    return re.sub(r"[-_.]+", "-", re.split(r"[^\w.-]", requirement, maxsplit=1)[0]).lower()


def requirements(lock: str) -> Iterator[str]:
    """Yield the external requirements in a lock file: of the server, or of development."""
    project = declared()["project"]
    groups = [project["dependencies"], *(project["optional-dependencies"][extra] for extra in EXTRAS[lock])]
    developing = declared()["dependency-groups"]["dev"]
    groups.append([each for each in developing if lock == "dev" or name_of(each) == BINARY])
    for group in groups:
        yield from (requirement for requirement in group if name_of(requirement) != project["name"])


if __name__ == "__main__":
    print("\n".join(sorted(set(requirements(sys.argv[1])))))
