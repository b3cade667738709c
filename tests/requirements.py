"""Prints the requirements in a lock file: ``python -m tests.requirements serve|image|dev``.

Each distribution declares its own requirements. ``requirements.lock`` has what ``make run`` needs, which is the
server's; the locks of the image and of development have those of all distributions.
"""

import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

ROOT = Path(__file__).parent.parent
EXTRAS: Final = {"serve": ("server", "tls"), "image": ("server", "tls"), "dev": ("server", "tls", "mcp")}
"""The extras in each lock file; ``mcp`` is large, and few users need it."""

PROJECTS = (ROOT, *sorted(file.parent for file in ROOT.glob("sandbox/*/pyproject.toml")))
"""The folders of all distributions."""


def declared(folder: Path) -> dict[str, Any]:
    """Read the ``pyproject.toml`` of a distribution."""
    return tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))


def name_of(requirement: str) -> str:
    """Return the normalised package name of a requirement."""
    return re.sub(r"[-_.]+", "-", re.split(r"[^\w.-]", requirement, maxsplit=1)[0]).lower()


def requirements(lock: str) -> Iterator[str]:
    """Yield the external requirements in a lock file: of the server, of all distributions, or of development."""
    projects = [declared(folder) for folder in (PROJECTS[:1] if lock == "serve" else PROJECTS)]
    ours = {project["project"]["name"] for project in projects}
    for project in projects:
        extras = project["project"].get("optional-dependencies", {})
        groups = [project["project"]["dependencies"], *(extras.get(extra, []) for extra in EXTRAS[lock])]
        groups += project.get("dependency-groups", {}).values() if lock == "dev" else []
        yield from (
            requirement for group in groups for requirement in group if name_of(requirement) not in ours
        )


if __name__ == "__main__":
    print("\n".join(sorted(set(requirements(sys.argv[1])))))
