"""Fixtures with the wheels; the projects run in their own environments, see ``test_projects.py``."""

from pathlib import Path

import pytest

from tests.dist import distributions

collect_ignore_glob = ["projects/*"]


@pytest.fixture(scope="session")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """The wheels of all distributions, built from the checkout."""
    built = distributions(tmp_path_factory.mktemp("wheels") / "all")
    return [path for path in built if path.suffix == ".whl"]


@pytest.fixture(scope="session")
def wheel(wheels: list[Path]) -> Path:
    """The wheel of the main distribution."""
    return next(built for built in wheels if built.name.startswith("payment_sandbox-"))
