"""Projects in other languages: copies of them with the packages that they use, as their users install them."""

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from tests.support.documentation import ROOT

PROJECTS: Final = ROOT / "tests" / "howto" / "projects"
NODE_PACKAGE: Final = ROOT / "sandbox" / "node"
PHP_PACKAGE: Final = ROOT / "sandbox" / "php"


def require(*programs: str) -> None:
    """Skip where a program is missing, except in CI."""
    missing = [name for name in programs if shutil.which(name) is None]
    if missing:
        assert "CI" not in os.environ, f"not installed: {missing}"
        pytest.skip(f"not installed here: {', '.join(missing)}; .ci/run installs it")


def fetched(command: list[str], folder: Path) -> None:
    """Run a command that fetches packages; skip where they cannot be had, except in CI."""
    ran = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=280, check=False)
    if ran.returncode != 0 and "CI" not in os.environ:
        pytest.skip(f"{command[0]} could not fetch its packages")
    assert ran.returncode == 0, ran.stdout[-2000:] + ran.stderr[-2000:]


def install_for_node(folder: Path) -> None:
    """Put into ``node_modules`` what npm would publish, and nothing else."""
    published = json.loads((NODE_PACKAGE / "package.json").read_text())["files"]
    into = folder / "node_modules" / "payment-sandbox"
    into.mkdir(parents=True)
    for pattern in ("package.json", *published):
        for file in NODE_PACKAGE.glob(pattern):
            shutil.copy(file, into)


def install_for_php(folder: Path) -> None:
    """Have Composer install the package from the checkout, as the page says; it needs no network for that."""
    sources = {"repositories": {"sandbox": {"type": "path", "url": str(PHP_PACKAGE)}, "packagist.org": False}}
    own = json.loads((folder / "composer.json").read_text())
    (folder / "composer.json").write_text(json.dumps({**own, **sources}))
    ran = subprocess.run(
        ["composer", "install", "--no-interaction", "--quiet"],
        cwd=folder,
        env={**os.environ, "COMPOSER_ALLOW_SUPERUSER": "1", "COMPOSER_HOME": str(folder / ".composer")},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr


INSTALL: Final[dict[str, Callable[[Path], None]]] = {"node": install_for_node, "php": install_for_php}


def copied(language: str, tmp_path: Path) -> Path:
    """A copy of a language's project, with the package that it needs."""
    folder = tmp_path / language
    shutil.copytree(PROJECTS / language, folder)
    if language in INSTALL:
        INSTALL[language](folder)
    return folder
