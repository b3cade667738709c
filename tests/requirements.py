"""Prints the requirements of the distributions, for the lock files: ``python -m tests.requirements [dev]``.

Each distribution declares its own requirements; the lock has those of all distributions and their extras.
"""

import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
OMITTED_EXTRAS = ("mcp",)
"""Extras that the image and the single file leave out: they are large, and few users need them."""

PROJECTS = (ROOT, *sorted(file.parent for file in ROOT.glob("sandbox/*/pyproject.toml")))
"""The folders of all distributions."""


def declared(folder: Path) -> dict[str, Any]:
    """Read the ``pyproject.toml`` of a distribution."""
    return tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))


def name_of(requirement: str) -> str:
    """Return the normalised package name of a requirement."""
    return re.sub(r"[-_.]+", "-", re.split(r"[^\w.-]", requirement, maxsplit=1)[0]).lower()


def requirements(*, dev: bool) -> Iterator[str]:
    """Yield the external requirements of all distributions; with ``dev``, also those of development."""
    projects = [declared(folder) for folder in PROJECTS]
    ours = {project["project"]["name"] for project in projects}
    for project in projects:
        extras = project["project"].get("optional-dependencies", {})
        groups = [project["project"]["dependencies"]]
        groups += [requirement for extra, requirement in extras.items() if dev or extra not in OMITTED_EXTRAS]
        groups += project.get("dependency-groups", {}).values() if dev else []
        yield from (
            requirement for group in groups for requirement in group if name_of(requirement) not in ours
        )


if __name__ == "__main__":
    print("\n".join(sorted(set(requirements(dev="dev" in sys.argv[1:])))))
