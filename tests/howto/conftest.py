"""Wheels and environments, each made once and shared by all workers; the projects have their own environments."""

from pathlib import Path

import pytest

from tests.dist import distributions
from tests.support.environments import environment_with, made_once

collect_ignore_glob = ["projects/*"]


@pytest.fixture(scope="session")
def wheels(shared: Path) -> list[Path]:
    """The wheels of all distributions, built from the checkout."""
    folder = made_once(shared / "wheels", lambda folder: distributions(folder / "all"))
    return sorted((folder / "all").glob("*.whl"))


@pytest.fixture(scope="session")
def wheel(wheels: list[Path]) -> Path:
    """The wheel of the main distribution."""
    return next(built for built in wheels if built.name.startswith("payment_sandbox-"))


@pytest.fixture(scope="session")
def installed(shared: Path, wheels: list[Path]) -> Path:
    """The programs of an environment with all wheels."""
    folder = made_once(shared / "environment", lambda folder: environment_with(wheels, folder))
    return folder / "bin"
