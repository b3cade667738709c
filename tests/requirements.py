"""Prints what the distributions need, for the lock files: ``python -m tests.requirements [dev]``.

Each distribution declares its own needs, and the lock has those of all of them, with their extras.
"""

import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
APART = ("mcp", "explore")
"""Extras that the image and the single file do without: they are large, and few need them."""

PROJECTS = (ROOT, *sorted(file.parent for file in ROOT.glob("sandbox/*/pyproject.toml")))
"""The folders of all distributions."""


def declared(folder: Path) -> dict[str, Any]:
    """Read the ``pyproject.toml`` of a distribution."""
    return tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))


def name_of(requirement: str) -> str:
    """Return the normalised name of what is required."""
    return re.sub(r"[-_.]+", "-", re.split(r"[^\w.-]", requirement, maxsplit=1)[0]).lower()


def requirements(*, dev: bool) -> Iterator[str]:
    """Yield the requirements of all distributions on others, and those of development."""
    projects = [declared(folder) for folder in PROJECTS]
    ours = {project["project"]["name"] for project in projects}
    for project in projects:
        extras = project["project"].get("optional-dependencies", {})
        groups = [project["project"]["dependencies"]]
        groups += [needed for extra, needed in extras.items() if dev or extra not in APART]
        groups += project.get("dependency-groups", {}).values() if dev else []
        yield from (needed for group in groups for needed in group if name_of(needed) not in ours)


if __name__ == "__main__":
    print("\n".join(sorted(set(requirements(dev="dev" in sys.argv[1:])))))
