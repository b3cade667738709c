"""Projects in other languages, with the packages that their users install."""

import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from tests.support.commands import run_program
from tests.support.documentation import ROOT
from tests.support.environments import cached
from tests.support.tools import unavailable

PROJECTS: Final = ROOT / "tests" / "howto" / "projects"
NODE_PACKAGE: Final = ROOT / "sandbox" / "node"
PHP_PACKAGE: Final = ROOT / "sandbox" / "php"


def fetched(command: list[str], folder: Path) -> None:
    """Run a command that fetches packages; if they are unavailable, the test is skipped, except in CI."""
    result = run_program(command, folder, 280)
    if result.returncode != 0:
        unavailable(
            f"{command[0]} could not fetch its packages: {result.stdout[-2000:]}{result.stderr[-2000:]}"
        )


def install_from_npm(folder: Path, packages: Mapping[str, str]) -> None:
    """Install packages of these versions, which are fetched once on a machine."""
    versions = [f"{name}@{version}" for name, version in packages.items()]

    def fetch(target: Path) -> None:
        (target / "package.json").write_text(json.dumps({"private": True}))
        fetched(["npm", "install", "--silent", "--no-audit", "--no-fund", *versions], target)

    modules = cached("npm", versions, fetch) / "node_modules"
    shutil.copytree(modules, folder / "node_modules", symlinks=True, dirs_exist_ok=True)


def install_for_node(folder: Path) -> None:
    """Copy the files that npm would publish into ``node_modules``."""
    published = json.loads((NODE_PACKAGE / "package.json").read_text())["files"]
    target = folder / "node_modules" / "payment-sandbox"
    target.mkdir(parents=True)
    for pattern in ("package.json", *published):
        for file in NODE_PACKAGE.glob(pattern):
            shutil.copy(file, target)


def install_for_php(folder: Path) -> None:
    """Let Composer install the package from the checkout as documented, without the network."""
    sources = {"repositories": {"sandbox": {"type": "path", "url": str(PHP_PACKAGE)}, "packagist.org": False}}
    manifest = json.loads((folder / "composer.json").read_text())
    (folder / "composer.json").write_text(json.dumps({**manifest, **sources}))
    variables = {"COMPOSER_ALLOW_SUPERUSER": "1", "COMPOSER_HOME": str(folder / ".composer")}
    install = ("composer", "install", "--no-interaction", "--quiet")
    result = run_program(install, folder, **variables)
    assert result.returncode == 0, result.stdout + result.stderr


INSTALL: Final[dict[str, Callable[[Path], None]]] = {"node": install_for_node, "php": install_for_php}


def copied(language: str, tmp_path: Path) -> Path:
    """Copy a language's project, and install the package that it needs."""
    folder = tmp_path / language
    shutil.copytree(PROJECTS / language, folder)
    if language in INSTALL:
        INSTALL[language](folder)
    return folder
