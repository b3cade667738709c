"""The wheel and environments, each made once and shared by all workers; the projects have their own environments."""

from pathlib import Path

import pytest

from tests.dist import wheel_and_sdist
from tests.howto.environments import environment_with
from tests.support.environments import made_once

collect_ignore_glob = ["projects/*"]


@pytest.fixture(scope="session")
def wheel(shared: Path) -> Path:
    """The wheel, built from the checkout."""
    folder = made_once(shared / "wheels", lambda folder: wheel_and_sdist(folder / "all"))
    return next((folder / "all").glob("*.whl"))


@pytest.fixture(scope="session")
def installed(shared: Path, wheel: Path) -> Path:
    """The programs of an environment with the wheel."""
    folder = made_once(shared / "environment", lambda folder: environment_with(folder, wheel))
    return folder / "bin"
